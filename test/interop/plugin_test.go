package interop

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	monitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
)

// plugin is a resource plugin like those for Liqo v0.9 and v0.10: a gRPC server of that time with its
// defaults and with Liqo's own generated code. It answers the same to everybody.
type plugin struct {
	monitors.UnimplementedResourceReaderServer
	address string

	mu          sync.Mutex
	amounts     map[string]string
	subscribers map[monitors.ResourceReader_SubscribeServer]struct{}
}

// startPlugin runs a plugin until the test ends.
func startPlugin(t *testing.T, amounts map[string]string) *plugin {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &plugin{address: listener.Addr().String(), amounts: amounts, subscribers: map[monitors.ResourceReader_SubscribeServer]struct{}{}}
	server := grpc.NewServer()
	monitors.RegisterResourceReaderServer(server, p)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return p
}

func (p *plugin) ReadResources(context.Context, *monitors.ClusterIdentity) (*monitors.PoolResourceList, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := &monitors.ResourceList{Resources: map[string]*resource.Quantity{}}
	for name, amount := range p.amounts {
		quantity := resource.MustParse(amount)
		list.Resources[name] = &quantity
	}
	return &monitors.PoolResourceList{ResourceLists: []*monitors.ResourceList{list}}, nil
}

func (p *plugin) RemoveCluster(context.Context, *monitors.ClusterIdentity) (*monitors.Empty, error) {
	return nil, status.Error(codes.Internal, "a source is asked and told nothing")
}

func (p *plugin) Subscribe(_ *monitors.Empty, stream monitors.ResourceReader_SubscribeServer) error {
	p.mu.Lock()
	p.subscribers[stream] = struct{}{}
	p.mu.Unlock()
	<-stream.Context().Done()
	p.mu.Lock()
	delete(p.subscribers, stream)
	p.mu.Unlock()
	return nil
}

// set changes what the plugin answers, and notifies of it.
func (p *plugin) set(t *testing.T, amounts map[string]string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.amounts = amounts
	for stream := range p.subscribers {
		if err := stream.Send(&monitors.ClusterIdentity{}); err != nil {
			t.Error(err)
		}
	}
}

func TestLiqoReadsAPluginThroughTheOperator(t *testing.T) {
	p := startPlugin(t, map[string]string{"cpu": "2", "memory": "2G", "pods": "10"})
	apply(t, policy("standard", `{class: gold, offer: {external: {address: "`+p.address+`"}, max: {memory: 1G}}}`))
	c := subscribe(t, readyOperator(t).grpc)
	c.offered(t, "rome", offers{"gold": {"cpu": "2", "memory": "1G", "pods": "10"}})

	p.set(t, map[string]string{"cpu": "2500m", "memory": "2G", "example.com/gpu": "3"})
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "2500m", "memory": "1G", "pods": "0", "example.com/gpu": "3"}})

	// What a plugin like node-labels-resources answers on full nodes is not taken.
	p.set(t, map[string]string{"cpu": "-1", "memory": "2G", "pods": "10"})
	edit(t, policy("standard", `{class: gold, offer: {external: {address: "`+p.address+`"}, max: {memory: 500M}}}`))
	c.expect(t, "rome")
	c.offered(t, "rome", offers{"gold": {"cpu": "2500m", "memory": "500M", "pods": "0", "example.com/gpu": "3"}})
}
