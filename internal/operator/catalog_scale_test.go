package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	core "proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// The catalog is written for so many consumers, and so many of its objects a second. Their proportion
// stays, because at it the changes of all Offers, each written once in 10 s, reach the rate.
var (
	scaleConsumers = kubetest.Fewer(1000, 20)
	scaleQPS       = kubetest.Fewer(500, 20)
)

// The rest of the size of the catalog, and that of the changes meanwhile.
const (
	scaleClasses = 5
	scaleChanges = 15 * time.Second
	scaleTick    = 100 * time.Millisecond
	scalePods    = 20 // a tick: 200 a second
	// scaleLimit bounds the first writes.
	scaleLimit = 3 * time.Minute
)

// scaleNewest bounds the time after the last change until the newest state is there: an Offer is written
// once in 10 s, and all of them take 12 s at the rate. With the race detector, and beside the tests of
// other packages, a limit says nothing about the writer: the newest state must come at all.
func scaleNewest() time.Duration { return kubetest.Slower(30*time.Second, 20) }

// scalePeers are the tenants of the consumers.
type scalePeers []table.Tenant

func (p scalePeers) Tenants() []table.Tenant  { return p }
func (p scalePeers) StorageClasses() []string { return []string{"fast", "slow"} }

// TestTheCatalogOfManyConsumersIsWrittenInTimeAndUnderTheRate changes 200 pods a second, each of which
// changes what all consumers could have.
func TestTheCatalogOfManyConsumersIsWrittenInTimeAndUnderTheRate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	b := benchCluster(t, 1)
	for i := range scaleClasses {
		p := kubetest.Policy(fmt.Sprint("s", i), func(s *v1alpha1.ResourcePolicySpec) { s.Class = fmt.Sprint("s", i) })
		p.UID, p.Generation = types.UID(p.Name), 1
		b.policies.Set(p)
	}
	for i := range 20 {
		b.policies.Remove(benchPolicy(t, i, 1).Name)
	}
	api := rbac(t)
	for _, u := range readObjects(t, "../../config/components/catalog/role.yaml") {
		createAs(t, api, u)
	}
	peers := scaleTenants(t, api, b)
	b.Peers = func() table.Peers { return peers }
	b.Evaluate(time.Now())

	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	config.QPS = -1
	writing, err := dynamic.NewForConfig(config)
	test.Must(t, err)
	subject, err := catalog.ParseSubject(catalog.DefaultSubject)
	test.Must(t, err)
	w := catalog.NewWriter(catalog.Config{
		Client: writing, Table: b.table, Shapes: b.ledger.Shapes, QPS: scaleQPS,
		Publish: true, Bindings: []catalog.Binding{catalog.OfferBinding}, Subjects: []catalog.Subject{subject},
		Holding: func() bool { return true }, Recorder: &events.FakeRecorder{}, Restores: restore.New(),
		Log: logr.Discard(),
	})
	before := test.LiveHeap()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Start(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })

	objects := float64(scaleConsumers * (scaleClasses + 1))
	awaitMetric(t, w, "current", objects, scaleLimit)
	t.Logf("%.0f objects; the heap grew by %d MiB", objects, (test.LiveHeap()-before)>>20)
	writes, began := writesOf(t, w), time.Now()
	slowest := changePods(b, w)
	writes = writesOf(t, w) - writes
	took := time.Since(began)
	if most := float64(scaleQPS)*took.Seconds() + 1; writes > most {
		t.Errorf("%.0f writes in %v, want at most %.0f", writes, took, most)
	}
	t.Logf("%.0f writes in %v; the slowest evaluation took %v", writes, took, slowest)
	last := time.Now()
	awaitNewest(t, w, api, b)
	t.Logf("the newest state was there after %v", time.Since(last))
	if grown := test.LiveHeap() - before; grown > 256<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// scaleTenants creates the namespaces of the consumers and returns their tenants. At the end of the test it removes
// what was published to them: no controller collects it. The namespaces stay, as those of newTenant do.
func scaleTenants(t *testing.T, api client.Client, b *bench) (peers scalePeers) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range scaleConsumers {
		id := fmt.Sprintf("scale-%04d", i)
		*b.consumers.all = append(*b.consumers.all, offer.Consumer{ID: id})
		peers = append(peers, table.Tenant{Consumer: id, Namespace: id, Name: id, UID: "uid-of-" + id})
		group.Go(func() error {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}
			return client.IgnoreAlreadyExists(api.Create(t.Context(), namespace))
		})
	}
	test.Must(t, group.Wait())
	t.Cleanup(func() {
		var group errgroup.Group
		group.SetLimit(8)
		for _, peer := range peers {
			group.Go(func() error { return removePublished(context.WithoutCancel(t.Context()), api, peer.Namespace) })
		}
		test.Check(t, group.Wait())
	})
	return peers
}

// changePods changes pods at the rate, evaluates as the engine does, and returns how long the slowest
// evaluation took.
func changePods(b *bench, w *catalog.Writer) (slowest time.Duration) {
	ticker := time.NewTicker(scaleTick)
	defer ticker.Stop()
	for turn, began := 0, time.Now(); time.Since(began) < scaleChanges; turn++ {
		<-ticker.C
		for i := range scalePods {
			b.ledger.SetPod(benchPod((turn*scalePods+i)*4%(10*benchNodes), 1, int64(300+turn)))
		}
		start := time.Now()
		b.Evaluate(start)
		slowest = max(slowest, time.Since(start))
		w.Wake()
	}
	return slowest
}

// awaitNewest waits until every Offer has what is available in the last snapshot. It asks the API
// server only when the writer knows of nothing to write: a list of all Offers takes the API server as
// long as hundreds of writes.
func awaitNewest(t *testing.T, w *catalog.Writer, api client.Client, b *bench) {
	t.Helper()
	latest := core.New(b.table.Current(), b.ledger.Shapes, nil)
	want := map[string]string{}
	for _, tenant := range latest.Tenants() {
		entries := latest.In(tenant)
		for i := range entries {
			cpu := core.StatusOf(tenant.Consumer, &entries[i], time.Now()).Available["cpu"]
			want[tenant.Namespace+"/"+entries[i].Class] = cpu.String()
		}
	}
	if len(want) != scaleConsumers*scaleClasses {
		t.Fatalf("the catalog has %d entries", len(want))
	}
	test.EventuallyWithin(t, scaleNewest(), func() string {
		if waiting := sumOf(t, w, "proffer_catalog_objects", "state", "waiting"); waiting > 0 {
			return fmt.Sprintf("%.0f objects wait", waiting)
		}
		got := offersOf(t, api)
		stale := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(key string) bool { return got[key] == want[key] })
		switch {
		case len(stale) > 0:
			return fmt.Sprintf("%d of %d Offers are not the newest: %s has %q, want %q", len(stale), len(want), stale[0], got[stale[0]], want[stale[0]])
		case len(got) != len(want):
			return fmt.Sprintf("%d Offers exist, want %d", len(got), len(want))
		}
		return ""
	})
}

// awaitMetric waits until this many objects have the state.
func awaitMetric(t *testing.T, w *catalog.Writer, state string, want float64, limit time.Duration) {
	t.Helper()
	test.EventuallyWithin(t, limit, func() string { return cmp.Diff(want, sumOf(t, w, "proffer_catalog_objects", "state", state)) })
}

func writesOf(t *testing.T, w *catalog.Writer) float64 {
	t.Helper()
	return sumOf(t, w, "proffer_catalog_writes_total", "result", "written")
}

// sumOf adds up the series of a metric with this label.
func sumOf(t *testing.T, c prometheus.Collector, metric, label, value string) (sum float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	test.Must(t, registry.Register(c))
	families, err := registry.Gather()
	test.Must(t, err)
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			if labelOf(m, label) == value {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func labelOf(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
