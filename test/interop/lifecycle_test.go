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
	// What was offered is written down before the crash: without that nobody could tell that there was a gpu.
	await(t, "the status lists the gpu", func() error {
		return statusHas("standard", "nvidia.com/gpu")
	})
	operator.kill()
	edit(t, fixed("standard", "gold", `cpu: "5", memory: 2G, pods: "10"`))
	operator.start(t)
	// The new stream says that everything may have changed, and from then on what is read is the policy of today.
	c.expect(t, "")
	c.offered(t, "rome", offers{"gold": {"cpu": "5", "memory": "2G", "pods": "10", "nvidia.com/gpu": "0"}})
	// Liqo has read rome from this operator too, so it is named again.
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
		// The edit and the crash race each other: the offer reaches Liqo by the old stream, the new one, or both.
		edited := make(chan error, 1)
		go func() {
			_, err := runKubectl(t.Context(), fixed("standard", "gold", fmt.Sprintf(`cpu: "%d", memory: 2G, pods: "10"`, cpu)), "apply", "-f", "-")
			edited <- err
		}()
		operator.kill()
		operator.start(t)
		if err := <-edited; err != nil {
			t.Fatal(err)
		}
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
	// Liqo subscribes again at once when a stream ends, so a server that stops has to send it away first: where nobody
	// listens, Liqo tries no more than every 100 ms.
	again, most := c.subscribed.Load()-before, 3+int64(time.Since(since)/(100*time.Millisecond))
	if again > most {
		t.Errorf("Liqo subscribed %d times while the operator stopped: at most %d are its pace", again, most)
	}
	await(t, "the port is free", func() error {
		if conn, err := net.Dial("tcp", operator.grpc); err == nil {
			_ = conn.Close()
			return fmt.Errorf("somebody listens at %s", operator.grpc)
		}
		return nil
	})
	if n := len(c.notified); n > 0 {
		t.Errorf("%d notifications while the operator stopped, the first of %q", n, <-c.notified)
	}
	operator.start(t)
	c.expect(t, "")
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "2G", "pods": "10"}})
}

func TestTwoOperatorsOfferTheSame(t *testing.T) {
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

// follow reads once after each notification, as Liqo does, until it reads want. One notification too few ends in the deadline.
func (c *client) follow(t *testing.T, id string, want offers) {
	t.Helper()
	ctx := deadline(t)
	for {
		select {
		case <-c.notified:
		case <-ctx.Done():
			t.Fatalf("%s was not told of %v", id, want)
		}
		got, err := c.read(ctx, id)
		if err != nil {
			// The operator that sent the notification is gone: the stream of the next one begins with another.
			continue
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
}

func statusHas(policy, resource string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := runKubectl(ctx, "", "get", "resourcepolicy", policy, "-o", "jsonpath={.status}")
	if err == nil && !strings.Contains(status, resource) {
		err = fmt.Errorf("the status of %s does not name %s: %s", policy, resource, status)
	}
	return err
}
