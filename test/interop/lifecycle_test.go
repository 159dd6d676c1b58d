package interop

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestAChangeWhileTheOperatorWasDownIsReadAfterItsRestart(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10", nvidia.com/gpu: "1"`))
	operator := readyOperator(t)
	c := subscribe(t, operator.grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10", "nvidia.com/gpu": "1"}})
	// What was offered must be written down before the crash. Otherwise the restarted operator
	// could not know of the gpu.
	await(t, "the status lists the gpu", func() error {
		return statusHas("standard", "nvidia.com/gpu")
	})
	operator.kill()
	edit(t, fixed("standard", "gold", `cpu: "5", memory: 2G, pods: "10"`))
	operator.start(t)
	// The first notification of the new stream stands for all consumers. From then on reads return
	// the present policy.
	c.expect(t, "")
	c.offered(t, "rome", offers{"gold": {"cpu": "5", "memory": "2G", "pods": "10", "nvidia.com/gpu": "0"}})
	// Liqo has read rome from this operator too, so the operator notifies it again.
	edit(t, fixed("standard", "gold", `cpu: "6", memory: 2G, pods: "10"`))
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "6", "memory": "2G", "pods": "10", "nvidia.com/gpu": "0"}})
}

func TestNoChangeIsLostOverManyCrashes(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "1", memory: 2G, pods: "10"`))
	operator := readyOperator(t)
	c := subscribe(t, operator.grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "1", "memory": "2G", "pods": "10"}})
	for cpu := 2; cpu <= 5; cpu++ {
		// The edit races with the crash: Liqo may get the offer from the old stream, the new one,
		// or both.
		edited := make(chan error, 1)
		go func() {
			manifest := fixed("standard", "gold", fmt.Sprintf(`cpu: "%d", memory: 2G, pods: "10"`, cpu))
			_, err := runKubectl(t.Context(), manifest, "apply", "-f", "-")
			edited <- err
		}()
		operator.kill()
		operator.start(t)
		must(t, <-edited)
		c.follow(t, "rome", offers{"gold": {"cpu": fmt.Sprint(cpu), "memory": "2G", "pods": "10"}})
	}
}

func TestAStopEndsStreamsWithoutABusyLoopOfLiqo(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	operator := readyOperator(t)
	c := subscribe(t, operator.grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
	before, since := c.subscribed.Load(), time.Now()
	operator.terminate(t)
	// Liqo subscribes again as soon as a stream ends, so a server must close the connection first.
	// If nothing listens, Liqo tries at most every 100 ms.
	again, most := c.subscribed.Load()-before, 3+int64(time.Since(since)/(100*time.Millisecond))
	if again > most {
		t.Errorf("Liqo subscribed %d times while the operator stopped: want at most %d", again, most)
	}
	await(t, "the port is free", func() error {
		if conn, err := net.Dial("tcp", operator.grpc); err == nil {
			_ = conn.Close()
			return fmt.Errorf("%s still accepts connections", operator.grpc)
		}
		return nil
	})
	if n := len(c.notified); n > 0 {
		t.Errorf("%d notifications while the operator stopped, the first names %q", n, <-c.notified)
	}
	operator.start(t)
	c.expect(t, "")
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
}

func TestTwoReplicasOfferTheSame(t *testing.T) {
	apply(t, fixed("standard", "gold", `cpu: "2", memory: 2G, pods: "10"`))
	want := offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}}
	var clients []*client
	for range 2 {
		operator := readyOperator(t, "--leader-elect", "--leader-election-namespace=default")
		c := subscribe(t, operator.grpc)
		c.offered(t, "rome", want)
		clients = append(clients, c)
	}
	edit(t, fixed("standard", "gold", `cpu: "3", memory: 2G, pods: "10"`))
	for _, c := range clients {
		c.expect(t, "rome")
		c.offered(t, "rome", offers{"gold": {"cpu": "3", "memory": "2G", "pods": "10"}})
	}
}

// follow reads once after each notification, as Liqo does, until it reads want. A missing
// notification ends in a timeout.
func (c *client) follow(t *testing.T, id string, want offers) {
	t.Helper()
	ctx := deadline(t)
	for {
		select {
		case <-c.notified:
		case <-ctx.Done():
			t.Fatalf("%s was not notified of %v", id, want)
		}
		got, err := c.read(ctx, id)
		if err != nil {
			// The operator that sent the notification is gone. The stream of the next one begins
			// with a notification.
			continue
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
}

func statusHas(policy, resource string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	status, err := runKubectl(ctx, "", "get", "resourcepolicy", policy, "-o", "jsonpath={.status}")
	if err == nil && !strings.Contains(status, resource) {
		err = fmt.Errorf("the status of %s does not name %s: %s", policy, resource, status)
	}
	return err
}
