package placement

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

const (
	// worldLabel is the label of the nodes of one random world. Its pods select them.
	worldLabel = "test.proffer.dev/world"
	// placedLabel marks the pods that kube-scheduler has to place.
	placedLabel = "test.proffer.dev/placed"
	gpu         = "nvidia.com/gpu"
)

// ofWorld selects the nodes of a world.
type ofWorld string

func (w ofWorld) Matches(labels map[string]string) bool { return labels[worldLabel] == string(w) }
func (w ofWorld) Keys() []string                        { return []string{worldLabel} }
func (w ofWorld) String() string                        { return worldLabel + "=" + string(w) }

func (w ofWorld) query() capacity.ShapeQuery {
	return capacity.ShapeQuery{Selection: capacity.Selection{Selector: w}, Admits: func(string) bool { return true }}
}

// unbounded is a bound of everything that the nodes have.
var unbounded = capacity.Amounts{
	capacity.CPU: math.MaxInt64, capacity.Memory: math.MaxInt64, capacity.Pods: math.MaxInt64, gpu: math.MaxInt64,
	"ephemeral-storage": math.MaxInt64,
}

// As many pods of the size of each shape as it has nodes are placed, each on a node of its own, and
// a pod of the size of the largest one.
func TestPodsOfTheSizesThatAreShownArePlaced(t *testing.T) {
	const worlds = 30
	runScheduler(t)
	ledger := follow(t)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var queries []capacity.ShapeQuery
	var created []client.Object
	for i := range worlds {
		w := ofWorld(fmt.Sprint("w", i))
		queries = append(queries, w.query())
		created = append(created, createWorld(t, w, random)...)
	}
	awaitCounted(t, ledger, created)
	shown := ledger.Shapes(queries)
	rounds := make([][]*corev1.Pod, capacity.MaxShapes+1)
	for i := range shown {
		w := ofWorld(fmt.Sprint("w", i))
		shapes := shown[i].Within(unbounded)
		for k, shape := range shapes.List {
			for n := range shape.Nodes {
				rounds[k] = append(rounds[k], podOf(w, n, shape.Free))
			}
		}
		if shapes.Largest != nil {
			rounds[capacity.MaxShapes] = append(rounds[capacity.MaxShapes], podOf(w, 0, shapes.Largest))
		}
	}
	for k, pods := range rounds {
		t.Logf("round %d: %d pods", k, len(pods))
		place(t, pods)
	}
	if len(rounds[1]) < worlds/2 {
		t.Errorf("only %d nodes are of second shapes: the worlds are too small", len(rounds[1]))
	}
}

func TestWhereNoPodIsPlacedNoShapeIsShown(t *testing.T) {
	runScheduler(t)
	ledger := follow(t)
	const w = ofWorld("full")
	node := func(name string, allocatable corev1.ResourceList) client.Object {
		return nodestest.Node(name, allocatable, nodestest.NodeLabel(worldLabel, string(w)), nodestest.NodeLabel(corev1.LabelHostname, name))
	}
	created := []client.Object{
		node("full", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "1")), nodestest.Pod("last", "full", nodestest.List("cpu", "1")),
		node("without-slots", nodestest.List("cpu", "8", "memory", "8Gi")),
	}
	for _, o := range created {
		kubetest.Create(t, o)
	}
	awaitCounted(t, ledger, created)
	if got := ledger.Shapes([]capacity.ShapeQuery{w.query()})[0]; got.List != nil || got.Largest != nil {
		t.Errorf("got %+v", got)
	}
	pod := kubetest.Create(t, podOf(w, 0, capacity.Amounts{capacity.CPU: 1}))
	test.Eventually(t, func() string {
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if why := unscheduled(pod); !strings.Contains(why, "Too many pods") {
			return fmt.Sprintf("the pod is on %q: %s", pod.Spec.NodeName, why)
		}
		return ""
	})
}

// createWorld creates nodes with pods of this cluster and of a consumer.
func createWorld(t *testing.T, w ofWorld, random *rand.Rand) (created []client.Object) {
	t.Helper()
	upTo := func(most int64) int64 { return random.Int64N(most + 1) }
	list := func(amounts capacity.Amounts) corev1.ResourceList {
		maps.DeleteFunc(amounts, func(_ string, amount int64) bool { return amount == 0 && random.IntN(2) == 0 })
		return quantity.ListOf(amounts)
	}
	for i := range 4 + random.IntN(8) {
		name := fmt.Sprintf("%s-%d", string(w), i)
		size := int64(1) << random.IntN(5)
		node := nodestest.Node(name, list(capacity.Amounts{
			capacity.CPU: size*1000 + upTo(999)*upTo(1), capacity.Memory: size<<32 + upTo(1<<30)*upTo(1), capacity.Pods: upTo(5),
			gpu: upTo(8) * upTo(1), "ephemeral-storage": 100 << 30,
		}), nodestest.NodeLabel(worldLabel, string(w)), nodestest.NodeLabel(corev1.LabelHostname, name))
		node.Spec.Unschedulable = random.IntN(8) == 0
		created = append(created, kubetest.Create(t, node))
		for k := range random.IntN(4) {
			requests := func() corev1.ResourceList {
				return list(capacity.Amounts{capacity.CPU: upTo(size * 500), capacity.Memory: upTo(size << 31), "ephemeral-storage": upTo(1 << 30)})
			}
			pod := nodestest.Pod(fmt.Sprintf("%s-%d", name, k), name, requests())
			pod.Spec.InitContainers = []corev1.Container{{
				Name: "init", Image: "image", Resources: corev1.ResourceRequirements{Requests: requests()},
			}}
			if of := &pod.Spec.Containers[0].Resources; random.IntN(3) == 0 && node.Status.Allocatable[gpu] != (resource.Quantity{}) {
				of.Requests[gpu], of.Limits = resource.MustParse("1"), nodestest.List(gpu, "1")
			}
			if random.IntN(2) == 0 {
				nodestest.PodLabel("offloading.liqo.io/origin", "rome")(pod)
			}
			created = append(created, kubetest.Create(t, pod))
		}
	}
	return created
}

// awaitCounted waits until the account has all nodes and pods.
func awaitCounted(t *testing.T, ledger *capacity.Ledger, created []client.Object) {
	t.Helper()
	pods := map[string]bool{}
	var nodes []*corev1.Node
	for _, o := range created {
		switch o := o.(type) {
		case *corev1.Pod:
			pods[string(o.UID)] = true
		case *corev1.Node:
			nodes = append(nodes, o)
		}
	}
	test.Eventually(t, func() string {
		for _, n := range nodes {
			counted, known := ledger.Node(n.Name)
			switch {
			case !known, counted.State == capacity.NotReady, len(counted.Taints) > 0:
				return n.Name + " is not Ready"
			case len(counted.Allocatable) != len(n.Status.Allocatable):
				return n.Name + " has no amounts"
			}
		}
		left := len(pods)
		for p := range ledger.Copy().Pods {
			if pods[p.Key] {
				left--
			}
		}
		if left > 0 {
			return fmt.Sprint(left, " pods are missing")
		}
		return ""
	})
}

// podOf returns a pod of this size, of which there is one on each node of a world at most.
func podOf(w ofWorld, n int, size capacity.Amounts) *corev1.Pod {
	size = maps.Clone(size)
	maps.DeleteFunc(size, func(name string, amount int64) bool { return amount == 0 || name == capacity.Pods })
	pod := nodestest.Pod(fmt.Sprintf("placed-%s-%d", string(w), n), "", quantity.ListOf(size), nodestest.PodLabel(placedLabel, string(w)))
	if size[gpu] > 0 {
		pod.Spec.Containers[0].Resources.Limits = nodestest.List(gpu, fmt.Sprint(size[gpu]))
	}
	pod.Spec.NodeSelector = map[string]string{worldLabel: string(w)}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{placedLabel: string(w)}}, TopologyKey: corev1.LabelHostname,
		}},
	}}
	return pod
}

// place waits until kube-scheduler has placed all pods, and deletes them.
func place(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	api := kubetest.API(t)
	for _, p := range pods {
		test.Must(t, api.Create(t.Context(), p))
	}
	test.Eventually(t, func() string {
		for _, p := range pods {
			test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			if p.Spec.NodeName == "" {
				return fmt.Sprintf("%s, which requests %v, has no node: %s", p.Name, p.Spec.Containers[0].Resources.Requests, unscheduled(p))
			}
		}
		return ""
	})
	for _, p := range pods {
		kubetest.Remove(t, p)
	}
}

// unscheduled returns why kube-scheduler has not placed a pod.
func unscheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
