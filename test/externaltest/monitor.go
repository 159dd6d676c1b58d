// Package externaltest runs external resource monitors of Liqo v0.x for tests: real gRPC servers, as
// well-behaved or hostile as a test wants.
package externaltest

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// Monitor is an external resource monitor. It answers what Answer returns, and notifies its subscribers
// of what Notify is called with.
type Monitor struct {
	wire.UnimplementedResourceReaderServer
	// Address is the address of its listener, also after a Restart.
	Address string

	t       testing.TB
	options []grpc.ServerOption
	flat    bool

	mu          sync.Mutex
	server      *grpc.Server
	answer      func(ctx context.Context, id string) (*wire.PoolResourceList, error)
	subscribe   func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error
	subscribers map[chan string]struct{}
	reads       map[string]int
	removals    []string
	removing    func(id string) error
}

// Pools makes a monitor answer with pools.
const Pools = false

// Flat makes a monitor answer in the flat form.
const Flat = true

// Start runs a monitor until the test ends. It answers for nobody until a test sets an answer.
func Start(t testing.TB, flat bool, options ...grpc.ServerOption) *Monitor {
	t.Helper()
	m := &Monitor{
		t: t, options: options, flat: flat, Address: "127.0.0.1:0",
		subscribers: map[chan string]struct{}{}, reads: map[string]int{},
	}
	m.answer = func(context.Context, string) (*wire.PoolResourceList, error) { return &wire.PoolResourceList{}, nil }
	m.subscribe = m.serveSubscription
	m.removing = func(string) error { return nil }
	m.Restart()
	t.Cleanup(m.Kill)
	return m
}

// Restart starts the monitor again after Kill, at the same address.
func (m *Monitor) Restart() {
	m.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", m.Address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.Address = listener.Addr().String()
	server := grpc.NewServer(m.options...)
	if m.flat {
		desc := flat.ResourceReader_ServiceDesc
		desc.ServiceName = wire.ResourceReader_ServiceDesc.ServiceName
		server.RegisterService(&desc, flatMonitor{Monitor: m})
	} else {
		wire.RegisterResourceReaderServer(server, m)
	}
	m.mu.Lock()
	m.server = server
	m.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Kill ends the monitor and all its connections at once, as the end of its process would.
func (m *Monitor) Kill() {
	m.mu.Lock()
	server := m.server
	m.mu.Unlock()
	server.Stop()
}

// Answer sets how the monitor answers.
func (m *Monitor) Answer(answer func(ctx context.Context, id string) (*wire.PoolResourceList, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

// Offer makes the monitor answer these pairs of names and amounts to everybody, and notifies of it.
func (m *Monitor) Offer(pairs ...string) {
	m.Answer(func(context.Context, string) (*wire.PoolResourceList, error) { return Unnamed(pairs...), nil })
	m.Notify("")
}

// Subscribing replaces what the monitor does with a subscription.
func (m *Monitor) Subscribing(subscribe func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribe = subscribe
}

// Notify notifies all subscribers.
func (m *Monitor) Notify(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subscribers {
		s <- id
	}
}

// Subscribers returns the number of open subscriptions.
func (m *Monitor) Subscribers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.subscribers)
}

// Reads returns how often each ID was read.
func (m *Monitor) Reads() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.reads)
}

// Removals returns the IDs of the calls of RemoveCluster, in order.
func (m *Monitor) Removals() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.removals)
}

// Removing sets how the monitor answers RemoveCluster.
func (m *Monitor) Removing(removing func(id string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removing = removing
}

// ReadResources implements Liqo's service.
func (m *Monitor) ReadResources(ctx context.Context, of *wire.ClusterIdentity) (*wire.PoolResourceList, error) {
	m.mu.Lock()
	m.reads[of.GetClusterID()]++
	answer := m.answer
	m.mu.Unlock()
	return answer(ctx, of.GetClusterID())
}

// RemoveCluster implements Liqo's service.
func (m *Monitor) RemoveCluster(_ context.Context, of *wire.ClusterIdentity) (*wire.Empty, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removals = append(m.removals, of.GetClusterID())
	return &wire.Empty{}, m.removing(of.GetClusterID())
}

// Subscribe implements Liqo's service.
func (m *Monitor) Subscribe(_ *wire.Empty, stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
	m.mu.Lock()
	subscribe := m.subscribe
	m.mu.Unlock()
	return subscribe(stream)
}

func (m *Monitor) serveSubscription(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
	notified := make(chan string, 64)
	m.mu.Lock()
	m.subscribers[notified] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.subscribers, notified)
		m.mu.Unlock()
	}()
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case id := <-notified:
			if err := stream.Send(&wire.ClusterIdentity{ClusterID: id}); err != nil {
				return err
			}
		}
	}
}

// flatMonitor serves the flat form.
type flatMonitor struct {
	flat.UnsafeResourceReaderServer
	*Monitor
}

// ReadResources implements Liqo's service.
func (m flatMonitor) ReadResources(ctx context.Context, of *wire.ClusterIdentity) (*flat.ResourceList, error) {
	answer, err := m.Monitor.ReadResources(ctx, of)
	if err != nil || len(answer.GetResourceLists()) == 0 {
		return &flat.ResourceList{}, err
	}
	return &flat.ResourceList{Resources: answer.GetResourceLists()[0].GetResources()}, nil
}

// Amounts returns amounts from pairs of names and texts.
func Amounts(pairs ...string) map[string]*wire.Quantity {
	out := map[string]*wire.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &wire.Quantity{String_: &pairs[i+1]}
	}
	return out
}

// Unnamed returns an answer with one pool that has no name, as the old plugins answer.
func Unnamed(pairs ...string) *wire.PoolResourceList {
	return &wire.PoolResourceList{ResourceLists: []*wire.ResourceList{{Resources: Amounts(pairs...)}}}
}
