package nodes

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

// naming lets a pod request n resources that do not exist.
func naming(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		requests := p.Spec.Containers[0].Resources.Requests
		for i := range n {
			requests[corev1.ResourceName(fmt.Sprintf("a.made-up.example.com/%s-%05d", p.Name, i))] = resource.MustParse("1")
		}
	}
}

func marshal(t *testing.T, o interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	data, err := o.Marshal()
	test.Must(t, err)
	return data
}

func TestAnObjectWithTooManyResourceNamesKeepsTheOnesThatMatter(t *testing.T) {
	var logged []string
	ledger, seen := capacity.NewLedger(), make(chan struct{})
	d := newDecoder(ledger, seen, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	data := marshal(t, aPod("hostile", "n", list("cpu", "3", "memory", "1Gi", "nvidia.com/gpu", "5"), naming(10_000)))
	if err := d.newPod().Unmarshal(data); !errors.Is(err, errNodesFirst) {
		t.Fatalf("before the nodes are known: %v, want %v", err, errNodesFirst)
	}
	n := d.newNode()
	test.Must(t, n.Unmarshal(marshal(t, aNode("n", list("cpu", "8", "nvidia.com/gpu", "8")))))
	ledger.SetNode(n.Node)
	close(seen)
	for range 3 {
		p := d.newPod()
		test.Must(t, p.Unmarshal(data))
		if r := p.Requests; len(r) != capacity.MaxPodResources || r["cpu"] != 3000 || r["memory"] != 1<<30 ||
			r["nvidia.com/gpu"] != 5 {
			t.Fatalf("%d names with cpu %d, memory %d, GPUs %d", len(r), r["cpu"], r["memory"], r["nvidia.com/gpu"])
		}
	}
	many := aNode("many", list("cpu", "8"))
	for i := range 1000 {
		many.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("a.made-up.example.com/%05d", i))] = resource.MustParse("1")
	}
	if err := n.Unmarshal(marshal(t, many)); err != nil || len(n.Allocatable) != capacity.MaxNodeResources ||
		n.Allocatable["cpu"] != 8000 {
		t.Errorf("a node lists %d resources, cpu %d: %v", len(n.Allocatable), n.Allocatable["cpu"], err)
	}
	if pods := testutil.ToFloat64(d.excess.read.WithLabelValues("pod")); pods != 3 {
		t.Errorf("%v pods with too many names counted, want 3", pods)
	}
	if len(logged) != 2 || !strings.Contains(logged[0], `"name"="hostile"`) ||
		!strings.Contains(logged[0], `"namespace"="default"`) {
		t.Errorf("logged %q, want one line for the namespace and one for the node", logged)
	}
	if len(d.cache.byKept) != 0 {
		t.Error("requests that were cut are in the cache")
	}
	for i := range 2 * maxSources {
		d.excess.report("pod", fmt.Sprint("namespace-", i), "p", 65, 64)
	}
	if len(d.excess.logged) != maxSources || len(logged) != maxSources {
		t.Errorf("%d lines logged for %d sources, want %d", len(logged), len(d.excess.logged), maxSources)
	}
}

// The test measures everything from the bytes of a list to the sums of the ledger.
func TestMadeUpResourceNamesTakeLittleMemory(t *testing.T) {
	full := &corev1.PodList{}
	for i := range 1000 {
		full.Items = append(full.Items, *aPod(fmt.Sprintf("p%04d", i), fmt.Sprintf("n%02d", i%100), list("cpu", "100m")))
	}
	ordinary := asSent(t, full)
	for i := range 8 {
		full.Items = append(full.Items, *aPod(fmt.Sprintf("hostile-%d", i), "n00", list("cpu", "100m"),
			podLabel(liqo.OriginLabel, "rome"), naming(10_000)))
	}
	hostile := asSent(t, full)
	memoryOf := func(data []byte) int64 {
		before := test.LiveHeap()
		ledger := capacity.NewLedger()
		nodes, pods := newStores(ledger, newGraceful(ledger, 0, func() {}), func() {})
		for i := range 100 {
			_ = nodes.Add(nodeOf(aNode(fmt.Sprintf("n%02d", i), list("cpu", "8"))))
		}
		d := decoderOf(ledger)
		l, err := masked.ReadList(strings.NewReader(string(data)), d.newPod)
		test.Must(t, err)
		all := make([]any, len(l.Items))
		for i, p := range l.Items {
			all[i] = p
		}
		_ = pods.Replace(all, "1")
		view := ledger.View([]capacity.Selection{{}})
		after := test.LiveHeap()
		runtime.KeepAlive(ledger)
		runtime.KeepAlive(view)
		runtime.KeepAlive(d)
		runtime.KeepAlive(pods)
		return after - before
	}
	without, with := memoryOf(ordinary), memoryOf(hostile)
	runtime.KeepAlive(ordinary)
	runtime.KeepAlive(hostile)
	t.Logf("1,000 pods on 100 nodes take %d KiB; with 8 pods of 10,000 names, %d KiB", without>>10, with>>10)
	if more := with - without; more > 1<<20 {
		t.Errorf("8 pods of 10,000 made-up names take %d KiB more", more>>10)
	}
}
