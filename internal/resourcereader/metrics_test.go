package resourcereader

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// counted returns the standard gRPC counters by name and labels, including zeros.
func counted(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	test.Must(t, err)
	all := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "grpc_server_") {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			key := strings.Join([]string{
				strings.TrimPrefix(f.GetName(), "grpc_server_"),
				labels["grpc_type"], labels["grpc_service"], labels["grpc_method"], labels["grpc_code"],
			}, " ")
			all[strings.TrimSpace(key)] = m.GetCounter().GetValue()
		}
	}
	return all
}

func TestEveryMethodHasCountersFromTheStart(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := New(Options{Table: published(nil), Endpoints: []Endpoint{{Address: "127.0.0.1:0"}}, Registerer: registry})
	test.Must(t, err)
	// A server for each form.
	s.newServer(Pools, insecure.NewCredentials()).Stop()
	s.newServer(Flat, insecure.NewCredentials()).Stop()
	want := map[string]float64{}
	for _, method := range []string{
		"unary resource_reader ReadResources",
		"unary resource_reader RemoveCluster",
		"server_stream resource_reader Subscribe",
		"unary grpc.health.v1.Health Check",
		"unary grpc.health.v1.Health List",
		"server_stream grpc.health.v1.Health Watch",
		"bidi_stream grpc.reflection.v1.ServerReflection ServerReflectionInfo",
		"bidi_stream grpc.reflection.v1alpha.ServerReflection ServerReflectionInfo",
	} {
		for _, name := range []string{"started_total ", "msg_received_total ", "msg_sent_total "} {
			want[name+method] = 0
		}
		for code := codes.OK; code <= codes.Unauthenticated; code++ {
			want["handled_total "+method+" "+code.String()] = 0
		}
	}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCallsAreCountedByTheirStatus(t *testing.T) {
	registry := prometheus.NewRegistry()
	broken := &offer.Entry{Offers: []*offer.Offer{nil}}
	r := start(
		t,
		published(map[string]*offer.Entry{"broken": broken, "rome": cpus(1)}),
		func(o *Options) { o.Registerer = registry },
	)
	conn := r.dial(t)
	c := wire.NewResourceReaderClient(conn)
	for id, code := range map[string]codes.Code{
		"rome": codes.OK, "oslo": codes.OK, "": codes.InvalidArgument, "broken": codes.Internal,
	} {
		_, err := read(timeout(t), c, id)
		wantCode(t, err, code)
	}
	if _, err := c.RemoveCluster(timeout(t), &wire.ClusterIdentity{ClusterID: "oslo"}); err != nil {
		t.Error(err)
	}
	checks := healthv1.NewHealthClient(conn)
	if _, err := checks.Check(timeout(t), &healthv1.HealthCheckRequest{Service: "unknown"}); err == nil {
		t.Error("an unknown service is healthy")
	}
	stream := subscribed(t, c)
	publish(r.table, map[string]*offer.Entry{"broken": broken, "rome": cpus(2)})
	next(t, stream)
	garbled, err := r.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}))).
		NewStream(timeout(t), &grpc.StreamDesc{ServerStreams: true}, "/resource_reader/Subscribe")
	test.Must(t, err)
	bad := []byte{0x0a, 0xff}
	test.Must(t, garbled.SendMsg(&bad))
	_ = garbled.CloseSend()
	wantCode(t, garbled.RecvMsg(&bad), codes.Internal)
	// Unknown methods are not counted.
	wantCode(
		t,
		conn.Invoke(timeout(t), "/resource_reader/NoSuchMethod", &wire.Empty{}, &wire.Empty{}),
		codes.Unimplemented,
	)
	r.shutdownNow(t)
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)

	const (
		reads    = "unary resource_reader ReadResources"
		removals = "unary resource_reader RemoveCluster"
		streams  = "server_stream resource_reader Subscribe"
		health   = "unary grpc.health.v1.Health Check"
		started  = "started_total "
		handled  = "handled_total "
		received = "msg_received_total "
		sent     = "msg_sent_total "
	)
	want := map[string]float64{
		started + reads: 4, received + reads: 4, sent + reads: 4,
		handled + reads + " OK": 2, handled + reads + " InvalidArgument": 1, handled + reads + " Internal": 1,
		started + removals: 1, received + removals: 1, sent + removals: 1, handled + removals + " OK": 1,
		started + health: 1, received + health: 1, sent + health: 1, handled + health + " NotFound": 1,
		started + streams: 2, received + streams: 2, sent + streams: 2,
		handled + streams + " Unavailable": 1, handled + streams + " Internal": 1,
	}
	test.Eventually(t, func() string {
		got := counted(t, registry)
		maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
		return cmp.Diff(want, got)
	})
}

func TestTheFlatFormIsCountedUnderTheCalledNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := start(
		t,
		published(map[string]*offer.Entry{"rome": cpus(1)}),
		form(Flat),
		func(o *Options) { o.Registerer = registry },
	)
	if _, err := readFlat(t, r.dial(t), "rome"); err != nil {
		t.Fatal(err)
	}
	subscribed(t, r.client(t))
	want := map[string]float64{
		"started_total unary resource_reader ReadResources":     1,
		"started_total server_stream resource_reader Subscribe": 1,
	}
	test.Eventually(t, func() string {
		got := counted(t, registry)
		maps.DeleteFunc(got, func(name string, n float64) bool { return n == 0 || !strings.HasPrefix(name, "started_total") })
		return cmp.Diff(want, got)
	})
}
