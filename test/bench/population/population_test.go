package population

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

var size = Size{Nodes: 100, Pods: 1_000, Consumers: 20}

func TestAFifthOfThePodsWasSentByConsumers(t *testing.T) {
	sent := map[string]int{}
	for i := range size.Pods {
		sent[pod(i, size).Labels["offloading.liqo.io/origin"]]++
	}
	if sent[""] != 800 || len(sent) != 1+size.Consumers {
		t.Errorf("%d pods of the cluster itself and %d consumers with pods, want 800 and %d", sent[""], len(sent)-1,
			size.Consumers)
	}
	for id, n := range sent {
		if id != "" && n != 10 {
			t.Errorf("%s has %d pods, want 10", id, n)
		}
	}
}

func TestPodsHaveDifferentNames(t *testing.T) {
	seen := sets.New[string]()
	add := func(p *corev1.Pod) { seen.Insert(p.Namespace + "/" + p.Name) }
	for i := range size.Pods {
		add(pod(i, size))
	}
	for i := range size.finished() {
		add(finishedPod(i, size))
	}
	for i := range size.shadows() {
		add(shadowPod(i, size))
	}
	if want := size.Pods + size.finished() + size.shadows(); len(seen) != want {
		t.Errorf("%d names for %d pods", len(seen), want)
	}
}

// A very large cluster, with as many pods as Kubernetes supports.
func TestThePodsOfTheLargestClusterHaveDifferentNames(t *testing.T) {
	const nodes, pods = 15_000, 150_000
	seen := sets.New[string]()
	for i := range pods {
		seen.Insert(podName(i))
	}
	for i := range nodes {
		seen.Insert(nodeName(i))
	}
	if want := nodes + pods; len(seen) != want {
		t.Errorf("%d names for %d nodes and pods", len(seen), want)
	}
}

// Decoding should cost what it costs in production. The API server adds managed fields and
// defaults.
func TestObjectsAreAsLargeAsUsual(t *testing.T) {
	pods, nodes := 0, 0
	for i := range 100 {
		pods += pod(i, size).Size()
		nodes += node(i).Size()
	}
	if pods /= 100; pods < 2_000 || pods > 4_000 {
		t.Errorf("a pod has %d bytes, want 2,000 to 4,000", pods)
	}
	if nodes /= 100; nodes < 6_000 || nodes > 12_000 {
		t.Errorf("a node has %d bytes, want 6,000 to 12,000", nodes)
	}
}

func TestWritersOfChurnDoNotShareAPod(t *testing.T) {
	const writers = 7
	owner := map[string]int{}
	for w := range writers {
		c := (&Client{}).Churn(size, w, writers)
		for range 2 * size.Pods / writers {
			p := c.next()
			if before, known := owner[p.Name]; known && before != w {
				t.Fatalf("%s is changed by writers %d and %d", p.Name, before, w)
			}
			owner[p.Name] = w
		}
	}
	if len(owner) != size.Pods {
		t.Errorf("%d pods are changed, want all %d", len(owner), size.Pods)
	}
}
