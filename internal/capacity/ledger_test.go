package capacity

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

func node(name string, with ...func(*Node)) Node {
	n := Node{Name: name, Usable: true, Allocatable: Amounts{CPU: 8000, Memory: 32 << 30, Pods: 110}}
	for _, f := range with {
		f(&n)
	}
	return n
}

func pod(key, node, consumer string, milli int64) Pod {
	return Pod{Key: key, Node: node, Consumer: consumer, Requests: Amounts{CPU: milli}}
}

func labelled(l map[string]string) func(*Node) { return func(n *Node) { n.Labels = l } }
func unusable(n *Node)                         { n.Usable = false }
func allocatable(a Amounts) func(*Node)        { return func(n *Node) { n.Allocatable = a } }
func tainted(t ...corev1.Taint) func(*Node)    { return func(n *Node) { n.Taints = t } }
func selecting(t *testing.T, s string) Selection {
	t.Helper()
	selector, err := labels.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return Selection{Selector: selector}
}

// amounts makes a row readable.
func amounts(v View, r Row) Amounts {
	a := Amounts{}
	for i, name := range v.Columns {
		if n := r.At(i); n != 0 {
			a[name] = n
		}
	}
	return a
}

func everyNode(l *Ledger) (View, Pool) {
	v := l.View([]Selection{{}})
	return v, v.Pools[0]
}

func TestPodsSeenBeforeTheirNodeCount(t *testing.T) {
	l := NewLedger()
	l.SetPod(pod("a", "n1", "", 2000))
	l.SetPod(pod("b", "n1", "rome", 3000))
	if v, p := everyNode(l); p.Nodes != 0 || amounts(v, v.Used["rome"])[CPU] != 3000 {
		t.Fatalf("before the node is known: %+v", v)
	}
	l.SetNode(node("n1"))
	v, p := everyNode(l)
	if diff := cmp.Diff(Amounts{CPU: 6000, Memory: 32 << 30, Pods: 109}, amounts(v, p.Free)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Amounts{CPU: 3000, Pods: 1}, amounts(v, p.Used["rome"])); diff != "" {
		t.Error(diff)
	}
}

func TestPodsOfANodeThatWentAndCameBackCountAgain(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetPod(pod("a", "n1", "", 2000))
	l.DeleteNode("n1")
	if _, p := everyNode(l); p.Nodes != 0 {
		t.Fatal("a node that is gone is still counted")
	}
	l.SetNode(node("n1"))
	if v, p := everyNode(l); amounts(v, p.Free)[CPU] != 6000 {
		t.Errorf("free cpu %d, want 6000", amounts(v, p.Free)[CPU])
	}
}

func TestAllocatableOfAKnownNodeIsRefreshed(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetNode(node("n1", allocatable(Amounts{CPU: 7900, Memory: 1, Pods: 10, "nvidia.com/gpu": 2})))
	v, p := everyNode(l)
	if diff := cmp.Diff(Amounts{CPU: 7900, Memory: 1, Pods: 10, "nvidia.com/gpu": 2}, amounts(v, p.Allocatable)); diff != "" {
		t.Error(diff)
	}
	l.SetNode(node("n1", allocatable(Amounts{CPU: 7900})))
	if v, p = everyNode(l); p.Listed[slices.Index(v.Columns, "nvidia.com/gpu")] {
		t.Error("a resource that the node lists no more is still listed")
	}
}

func TestPodsWithOneNameInTwoNamespacesAreTwoPods(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetPod(pod("uid-1", "n1", "", 1000))
	l.SetPod(pod("uid-2", "n1", "", 1000))
	l.DeletePod("uid-1")
	if v, p := everyNode(l); amounts(v, p.Free)[CPU] != 7000 {
		t.Errorf("free cpu %d, want 7000", amounts(v, p.Free)[CPU])
	}
}

func TestFreeIsNeverNegative(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("full"))
	l.SetNode(node("empty"))
	l.SetPod(pod("a", "full", "", 9000))
	if v, p := everyNode(l); amounts(v, p.Free)[CPU] != 8000 {
		t.Errorf("an overfull node takes from another: free cpu %d, want 8000", amounts(v, p.Free)[CPU])
	}
}

func TestUnusableAndVirtualNodesOfferNothing(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("down", unusable))
	l.SetNode(node("virtual", func(n *Node) { n.Virtual = true }))
	l.SetPod(pod("a", "down", "rome", 1000))
	l.SetPod(pod("b", "virtual", "rome", 500))
	v, p := everyNode(l)
	if p.Nodes != 0 || amounts(v, p.Free)[CPU] != 0 || len(p.Used) != 0 {
		t.Errorf("pool %+v, want nothing", p)
	}
	if diff := cmp.Diff(Amounts{CPU: 1000, Pods: 1}, amounts(v, v.Used["rome"])); diff != "" {
		t.Errorf("use on a node that is down still is use, on a virtual node it is not ours: %s", diff)
	}
}

func TestSelectionByLabelsAndTaints(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	soft := corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}
	l := NewLedger()
	l.SetNode(node("plain", labelled(map[string]string{"zone": "a"})))
	l.SetNode(node("soft", tainted(soft), labelled(map[string]string{"zone": "b"})))
	l.SetNode(node("gpu", tainted(gpu), labelled(map[string]string{"zone": "b"})))
	tolerant := Selection{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}}}
	intolerant := Selection{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "no"}}}
	v := l.View([]Selection{{}, tolerant, intolerant, selecting(t, "zone in (b)"), selecting(t, "!zone")})
	var got []int
	for _, p := range v.Pools {
		got = append(got, p.Nodes)
	}
	if diff := cmp.Diff([]int{2, 3, 2, 1, 0}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bool{true, true, true, true, false}, v.Pools[0].Overlaps); diff != "" {
		t.Errorf("pools that share a node: %s", diff)
	}
}

func TestRequestsAtTheTopOfInt64AreTakenOffAgainExactly(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetPod(pod("a", "n1", "", math.MaxInt64))
	l.SetPod(pod("b", "n1", "", math.MaxInt64))
	l.SetPod(pod("c", "n1", "", 1000))
	if v, p := everyNode(l); amounts(v, p.Free)[CPU] != 0 {
		t.Fatalf("free cpu %d, want 0", amounts(v, p.Free)[CPU])
	}
	l.DeletePod("a")
	l.DeletePod("b")
	if v, p := everyNode(l); amounts(v, p.Free)[CPU] != 7000 {
		t.Errorf("free cpu %d, want 7000", amounts(v, p.Free)[CPU])
	}
}

func TestChangedIsFalseWhenNothingThatMattersChanged(t *testing.T) {
	l := NewLedger()
	taint := corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}
	steps := []struct {
		name string
		do   func() bool
		want bool
	}{
		{"new node", func() bool { return l.SetNode(node("n1")) }, true},
		{"heartbeat", func() bool { return l.SetNode(node("n1")) }, false},
		{"a taint that keeps nobody away", func() bool { return l.SetNode(node("n1", tainted(taint))) }, false},
		{"cordon", func() bool { return l.SetNode(node("n1", unusable)) }, true},
		{"new pod", func() bool { return l.SetPod(pod("a", "n1", "", 1)) }, true},
		{"the same pod", func() bool { return l.SetPod(pod("a", "n1", "", 1)) }, false},
		{"resize", func() bool { return l.SetPod(pod("a", "n1", "", 2)) }, true},
		{"pod gone", func() bool { return l.DeletePod("a") }, true},
		{"pod gone twice", func() bool { return l.DeletePod("a") }, false},
		{"a pod never seen", func() bool { return l.DeletePod("b") }, false},
		{"a node never seen", func() bool { return l.DeleteNode("n2") }, false},
		{"node gone", func() bool { return l.DeleteNode("n1") }, true},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want {
			t.Errorf("%s: changed = %v, want %v", s.name, got, s.want)
		}
	}
	if len(l.nodes) != 0 || len(l.pods) != 0 {
		t.Errorf("left over: %d nodes, %d pods", len(l.nodes), len(l.pods))
	}
}

// world is the plain truth that a ledger must agree with.
type world struct {
	nodes map[string]Node
	pods  map[string]Pod
}

// recount adds everything up from the objects, with integers of any size.
func (w world) recount(s Selection, columns []string) (allocatable, free Amounts, used map[string]Amounts) {
	sumAllocatable, sumFree := map[string]*big.Int{}, map[string]*big.Int{}
	sumUsed := map[string]map[string]*big.Int{}
	into := func(m map[string]*big.Int, name string, n *big.Int) {
		if m[name] == nil {
			m[name] = new(big.Int)
		}
		m[name].Add(m[name], n)
	}
	for _, n := range w.nodes {
		if !s.Matches(&n) {
			continue
		}
		local := map[string]*big.Int{}
		for _, p := range w.pods {
			if p.Node != n.Name {
				continue
			}
			m := local
			if p.Consumer != "" {
				if sumUsed[p.Consumer] == nil {
					sumUsed[p.Consumer] = map[string]*big.Int{}
				}
				m = sumUsed[p.Consumer]
			}
			into(m, Pods, big.NewInt(1))
			for name, amount := range p.Requests {
				into(m, name, big.NewInt(amount))
			}
		}
		for name, amount := range n.Allocatable {
			into(sumAllocatable, name, big.NewInt(amount))
			left := big.NewInt(amount)
			if local[name] != nil {
				left.Sub(left, local[name])
			}
			if left.Sign() > 0 {
				into(sumFree, name, left)
			}
		}
	}
	held := func(m map[string]*big.Int) Amounts {
		a := Amounts{}
		for _, name := range columns {
			if n := m[name]; n != nil && n.Sign() > 0 {
				a[name] = math.MaxInt64
				if n.IsInt64() {
					a[name] = n.Int64()
				}
			}
		}
		return a
	}
	used = map[string]Amounts{}
	for consumer, m := range sumUsed {
		used[consumer] = held(m)
	}
	return held(sumAllocatable), held(sumFree), used
}

func TestTheLedgerEqualsARecountAfterAnyOrderOfEvents(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 62}))
	resource := rapid.SampledFrom([]string{CPU, Memory, "nvidia.com/gpu", "example.com/fpga"})
	every := []Selection{{}, {Selector: labels.Nothing()}, {Selector: labels.SelectorFromSet(labels.Set{"zone": "a"})},
		{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
	rapid.Check(t, func(t *rapid.T) {
		selections := every
		l, w := NewLedger(), world{nodes: map[string]Node{}, pods: map[string]Pod{}}
		nodeName := rapid.SampledFrom([]string{"n1", "n2", "n3"})
		podKey := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("p", rapid.IntRange(0, 9).Draw(t, "pod")) })
		t.Repeat(map[string]func(*rapid.T){
			"set node": func(t *rapid.T) {
				n := Node{
					Name: nodeName.Draw(t, "name"), Usable: rapid.IntRange(0, 4).Draw(t, "usable") > 0,
					Virtual:     rapid.IntRange(0, 5).Draw(t, "virtual") == 0,
					Labels:      map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")},
					Allocatable: rapid.MapOf(resource, amount).Draw(t, "allocatable"),
				}
				if rapid.Bool().Draw(t, "tainted") {
					n.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
				}
				l.SetNode(n)
				w.nodes[n.Name] = n
			},
			"delete node": func(t *rapid.T) {
				name := nodeName.Draw(t, "name")
				l.DeleteNode(name)
				delete(w.nodes, name)
			},
			"set pod": func(t *rapid.T) {
				p := Pod{
					Key: podKey.Draw(t, "key"), Node: nodeName.Draw(t, "node"),
					Consumer: rapid.SampledFrom([]string{"", "", "rome", "oslo"}).Draw(t, "consumer"),
					Requests: rapid.MapOf(resource, amount).Draw(t, "requests"),
				}
				l.SetPod(p)
				w.pods[p.Key] = p
			},
			"delete pod": func(t *rapid.T) {
				key := podKey.Draw(t, "key")
				l.DeletePod(key)
				delete(w.pods, key)
			},
			"some are all there are": func(t *rapid.T) {
				drop := rapid.IntRange(0, 2)
				for _, key := range slices.Sorted(maps.Keys(w.pods)) {
					if drop.Draw(t, "drop pod") == 0 {
						delete(w.pods, key)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
					if drop.Draw(t, "drop node") == 0 {
						delete(w.nodes, name)
					}
				}
				pods, known := len(l.pods), 0
				for _, a := range l.nodes {
					if a.node != nil {
						known++
					}
				}
				if got, want := l.ReplacePods(maps.Values(w.pods)), pods != len(w.pods); got != want {
					t.Fatalf("%d of %d pods: changed is %v", len(w.pods), pods, got)
				}
				if got, want := l.ReplaceNodes(maps.Values(w.nodes)), known != len(w.nodes); got != want {
					t.Fatalf("%d of %d nodes: changed is %v", len(w.nodes), known, got)
				}
			},
			"select others": func(t *rapid.T) {
				others := rapid.Permutation(every).Draw(t, "selections")
				selections = others[:rapid.IntRange(0, len(others)).Draw(t, "of them")]
			},
			"": func(t *rapid.T) {
				v := l.View(selections)
				for i, s := range selections {
					wantAllocatable, wantFree, wantUsed := w.recount(s, v.Columns)
					gotUsed := map[string]Amounts{}
					for consumer, row := range v.Pools[i].Used {
						gotUsed[consumer] = amounts(v, row)
					}
					for _, c := range []struct {
						what      string
						got, want any
					}{
						{"allocatable", amounts(v, v.Pools[i].Allocatable), wantAllocatable},
						{"free", amounts(v, v.Pools[i].Free), wantFree},
						{"used", gotUsed, wantUsed},
					} {
						if diff := cmp.Diff(c.want, c.got); diff != "" {
							t.Fatalf("selection %d, %s: %s", i, c.what, diff)
						}
					}
				}
			},
		})
	})
}
