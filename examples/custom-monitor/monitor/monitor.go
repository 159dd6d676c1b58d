// Package monitor answers what each consumer may use. Replace Load by your own source of amounts, such
// as a database of contracts.
package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"proffer.dev/proffer/proto/resourcereader"
)

// MaxConsumers bounds the consumers that are remembered.
const MaxConsumers = 10_000

// Amounts are texts such as 1500m or 4Gi, by the name of the resource.
type Amounts map[string]string

// Monitor is the server of the protocol. It is safe for concurrent use.
type Monitor struct {
	resourcereader.UnimplementedResourceReaderServer

	mu sync.Mutex
	// amounts maps the cluster IDs of consumers to their amounts. All other consumers have those of the empty ID.
	amounts map[string]Amounts
	// asked holds the time of the first question about each consumer, until it is removed. Keep here what
	// you need to know of a consumer.
	asked map[string]time.Time
	// changed is closed, and replaced, when amounts change.
	changed chan struct{}
}

// New returns a monitor without amounts.
func New() *Monitor {
	return &Monitor{amounts: map[string]Amounts{}, asked: map[string]time.Time{}, changed: make(chan struct{})}
}

// Load replaces the amounts by those of a file, and notifies the subscribers if they differ.
func (m *Monitor) Load(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var amounts map[string]Amounts
	if err := json.Unmarshal(text, &amounts); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.EqualFunc(m.amounts, amounts, maps.Equal) {
		m.amounts = amounts
		close(m.changed)
		m.changed = make(chan struct{})
	}
	return nil
}

// ReadResources answers what a consumer may use. It is asked about the empty ID too: that answer is for
// consumers that are not known yet.
func (m *Monitor) ReadResources(
	_ context.Context, of *resourcereader.ClusterIdentity,
) (*resourcereader.PoolResourceList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := of.GetClusterID()
	amounts, known := m.amounts[id]
	if !known {
		amounts, known = m.amounts[""]
	}
	if !known {
		return nil, status.Errorf(codes.NotFound, "no amounts for %q", id)
	}
	if m.asked[id].IsZero() && id != "" && len(m.asked) < MaxConsumers {
		m.asked[id] = time.Now()
	}
	pool := &resourcereader.ResourceList{Resources: map[string]*resourcereader.Quantity{}}
	for name, amount := range amounts {
		pool.Resources[name] = &resourcereader.Quantity{String_: &amount}
	}
	return &resourcereader.PoolResourceList{ResourceLists: []*resourcereader.ResourceList{pool}}, nil
}

// Subscribe notifies of changes until the client leaves. The empty ID stands for all consumers.
func (m *Monitor) Subscribe(
	_ *resourcereader.Empty, stream grpc.ServerStreamingServer[resourcereader.ClusterIdentity],
) error {
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
			if err := stream.Send(&resourcereader.ClusterIdentity{}); err != nil {
				return err
			}
		}
	}
}

// RemoveCluster forgets a consumer that is gone. It may be called twice, and about consumers that the
// monitor does not know.
func (m *Monitor) RemoveCluster(
	_ context.Context, of *resourcereader.ClusterIdentity,
) (*resourcereader.Empty, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since, known := m.asked[of.GetClusterID()]; known {
		log.Printf("%s is gone; it was asked about since %v", of.GetClusterID(), since.Format(time.RFC3339))
		delete(m.asked, of.GetClusterID())
	}
	return &resourcereader.Empty{}, nil
}
