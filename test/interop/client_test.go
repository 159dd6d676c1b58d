package interop

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	monitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
)

// offers are amounts in canonical form, by class and resource.
type offers map[string]map[string]string

// client is Liqo's own client, with a record of its notifications.
type client struct {
	*monitors.ExternalResourceMonitor
	// notified receives the notifications of Liqo's client, in order.
	notified notified
	// subscribed counts the streams that Liqo's client has opened.
	subscribed *atomic.Int64
}

// notified implements ResourceUpdateNotifier.
type notified chan string

func (n notified) NotifyChange(clusterID string) { n <- clusterID }

// subscriptions counts the calls of Subscribe.
type subscriptions struct {
	monitors.ResourceReaderClient
	count *atomic.Int64
}

func (s subscriptions) Subscribe(
	ctx context.Context, in *monitors.Empty, opts ...grpc.CallOption,
) (monitors.ResourceReader_SubscribeClient, error) {
	s.count.Add(1)
	return s.ResourceReaderClient.Subscribe(ctx, in, opts...)
}

// connect connects with this timeout. Liqo uses liqoConnects; most tests use more.
func connect(t *testing.T, address string, timeout time.Duration) *client {
	t.Helper()
	monitor, err := monitors.NewExternalMonitor(t.Context(), address, timeout)
	must(t, err)
	count := &atomic.Int64{}
	monitor.ResourceReaderClient = subscriptions{monitor.ResourceReaderClient, count}
	// The channel is larger than any test needs, so that it never blocks Liqo's goroutine.
	return &client{monitor, make(notified, 1<<20), count}
}

// subscribe connects, registers for notifications, and reads the first one.
func subscribe(t *testing.T, address string) *client {
	t.Helper()
	c := connect(t, address, stepTimeout)
	c.Register(t.Context(), c.notified)
	c.expect(t, "")
	return c
}

// expect requires exactly these notifications next.
func (c *client) expect(t *testing.T, ids ...string) {
	t.Helper()
	for _, want := range ids {
		select {
		case got := <-c.notified:
			if got != want {
				t.Fatalf("notified of %q, want %q", got, want)
			}
		case <-deadline(t).Done():
			t.Fatalf("not notified of %q", want)
		}
	}
}

// read reads like Liqo, with its deadline of 5 s.
func (c *client) read(ctx context.Context, id string) (offers, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lists, err := c.ReadResources(ctx, id)
	if err != nil {
		return nil, err
	}
	all := offers{}
	for _, list := range lists {
		if _, twice := all[list.PoolPrefix]; twice || list.PoolName != "" {
			return nil, fmt.Errorf("pool %q has the name %q: want each class once, without a name",
				list.PoolPrefix, list.PoolName)
		}
		amounts := map[string]string{}
		for resource, quantity := range list.Resources {
			if quantity == nil {
				return nil, fmt.Errorf("no quantity for %s, which makes Liqo panic", resource)
			}
			amounts[resource] = quantity.String()
		}
		all[list.PoolPrefix] = amounts
	}
	return all, nil
}

// offered reads once and compares the offers.
func (c *client) offered(t *testing.T, id string, want offers) {
	t.Helper()
	got, err := c.read(t.Context(), id)
	if err != nil {
		t.Fatalf("read %q: %v", id, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("offered to %q (-want +got):\n%s", id, diff)
	}
}
