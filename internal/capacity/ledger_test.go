package capacity

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func node(name string, with ...func(*Node)) Node {
	n := Node{Name: name, State: Ready, Allocatable: Amounts{CPU: 8000, Memory: 32 << 30, Pods: 110}}
	for _, f := range with {
		f(&n)
	}
	return n
}

func pod(key, node, consumer string, milli int64) Pod {
	return Pod{Key: key, Node: node, Consumer: consumer, Requests: Amounts{CPU: milli}}
}

func labelled(l map[string]string) func(*Node) { return func(n *Node) { n.Labels = l } }
func unusable(n *Node)                         { n.State = NotReady }
func allocatable(a Amounts) func(*Node)        { return func(n *Node) { n.Allocatable = a } }
func tainted(t ...Taint) func(*Node)           { return func(n *Node) { n.Taints = t } }

// selector implements Selector with a function.
type selector struct {
	matches func(labels map[string]string) bool
	text    string
	keys    []string
}

func (s selector) Matches(labels map[string]string) bool { return s.matches(labels) }
func (s selector) Keys() []string                        { return s.keys }
func (s selector) String() string                        { return s.text }

// nodeFilter implements NodeFilter with a function, and counts the calls.
type nodeFilter struct {
	text   string
	admits func(*Node) bool
	calls  int
}

func (f *nodeFilter) Admits(n *Node) (bool, string) {
	f.calls++
	if f.admits(n) {
		return true, ""
	}
	return false, "left out by " + f.text
}

func (f *nodeFilter) String() string { return f.text }

var nothing = selector{func(map[string]string) bool { return false }, "nothing", nil}

// having selects labels that have the key, with one of the values if any are passed.
func having(key string, values ...string) selector {
	return selector{func(labels map[string]string) bool {
		value, ok := labels[key]
		return ok && (len(values) == 0 || slices.Contains(values, value))
	}, fmt.Sprint(key, values), []string{key}}
}

// without selects labels that do not have the key.
func without(key string) selector {
	return selector{func(labels map[string]string) bool { return labels[key] == "" }, "!" + key, []string{key}}
}

// tolerates is a Toleration of the taints with this key, or of all taints if it is empty.
type tolerates string

func (t tolerates) Tolerates(taint Taint) bool { return t == "" || string(t) == taint.Key }
func (t tolerates) String() string             { return string(t) }

// amounts returns the row as amounts by resource name, without amounts of 0.
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

// TestTheWorkedExample checks the example in the package comment.
func TestTheWorkedExample(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetNode(node("n2"))
	l.SetPod(pod("a", "n1", "", 2000))
	l.SetPod(pod("b", "n1", "rome", 3000))
	l.SetPod(pod("c", "n2", "oslo", 1000))
	v, p := everyNode(l)
	got := []int64{amounts(v, p.Allocatable)[CPU], amounts(v, p.Free)[CPU], amounts(v, p.InUse)[CPU]}
	if diff := cmp.Diff([]int64{16_000, 14_000, 4000}, got); diff != "" {
		t.Errorf("allocatable, free and in use: %s", diff)
	}
}

func TestPodsSeenBeforeTheirNodeCount(t *testing.T) {
	l := NewLedger()
	l.SetPod(pod("a", "n1", "", 2000))
	l.SetPod(pod("b", "n1", "rome", 3000))
	if v, p := everyNode(l); p.Nodes != 0 || amounts(v, v.Used.Of("rome").Everywhere)[CPU] != 3000 {
		t.Fatalf("before the node is known: %+v", v)
	}
	l.SetNode(node("n1"))
	v, p := everyNode(l)
	if diff := cmp.Diff(Amounts{CPU: 6000, Memory: 32 << 30, Pods: 109}, amounts(v, p.Free)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Amounts{CPU: 3000, Pods: 1}, amounts(v, v.Used.Of("rome").In(0))); diff != "" {
		t.Error(diff)
	}
}

func TestAPodWithoutANodeCountsForItsConsumerOnly(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	waiting := Pod{Key: "a", Consumer: "rome", Creator: "slice", Requests: Amounts{CPU: 3000}}
	l.SetPod(waiting)
	l.SetPod(Pod{Key: "b", Requests: Amounts{CPU: 2000}})
	want := Amounts{CPU: 3000, Pods: 1}
	v, p := everyNode(l)
	if diff := cmp.Diff(want, amounts(v, v.Used.Of("rome").By("slice"))); diff != "" {
		t.Error(diff)
	}
	if free, used := amounts(v, p.Free)[CPU], amounts(v, v.Used.Of("rome").In(0)); free != 8000 || len(used) > 0 {
		t.Errorf("on the node %d are free, want 8000, and rome uses %v", free, used)
	}
	waiting.Node = "n1"
	l.SetPod(waiting)
	v, _ = everyNode(l)
	if diff := cmp.Diff(want, amounts(v, v.Used.Of("rome").In(0))); diff != "" {
		t.Errorf("once it is bound: %s", diff)
	}
	l.DeletePod("a")
	if v, _ := everyNode(l); v.Used.Len() > 0 {
		t.Error("it counts after its end")
	}
}

func TestPodsOfADeletedNodeCountAgainWhenItReturns(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetPod(pod("a", "n1", "", 2000))
	l.DeleteNode("n1")
	if _, p := everyNode(l); p.Nodes != 0 {
		t.Fatal("a deleted node is still in the pool")
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
	want := Amounts{CPU: 7900, Memory: 1, Pods: 10, "nvidia.com/gpu": 2}
	if diff := cmp.Diff(want, amounts(v, p.Allocatable)); diff != "" {
		t.Error(diff)
	}
	l.SetNode(node("n1", allocatable(Amounts{CPU: 7900})))
	if v, _ = everyNode(l); slices.Contains(v.Columns, "nvidia.com/gpu") {
		t.Error("a resource that no node lists and no pod requests is still a column")
	}
}

func TestPodsOfOneNameInTwoNamespacesAreTwoPods(t *testing.T) {
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
		t.Errorf("an overcommitted node reduces the free cpu of another: %d, want 8000", amounts(v, p.Free)[CPU])
	}
}

func TestUnusableAndVirtualNodesOfferNothing(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("down", unusable))
	l.SetNode(node("virtual", func(n *Node) { n.Virtual = true }))
	l.SetPod(pod("a", "down", "rome", 1000))
	l.SetPod(pod("b", "virtual", "rome", 500))
	v, p := everyNode(l)
	if p.Nodes != 0 || amounts(v, p.Free)[CPU] != 0 || len(amounts(v, p.InUse)) != 0 {
		t.Errorf("pool %+v, want nothing", p)
	}
	if diff := cmp.Diff(Amounts{CPU: 1000, Pods: 1}, amounts(v, v.Used.Of("rome").Everywhere)); diff != "" {
		t.Errorf("pods on a node that is not ready count as use, pods on a virtual node do not: %s", diff)
	}
}

func TestSelectionByLabelsAndTaints(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("plain", labelled(map[string]string{"zone": "a"})))
	zoneB := labelled(map[string]string{"zone": "b"})
	l.SetNode(node("soft", tainted(Taint{Key: "soft", Effect: "PreferNoSchedule"}), zoneB))
	l.SetNode(node("gpu", tainted(Taint{Key: "gpu", Effect: NoSchedule}), zoneB))
	v := l.View([]Selection{
		{}, {Tolerations: []Toleration{tolerates("other"), tolerates("gpu")}},
		{Tolerations: []Toleration{tolerates("other")}},
		{Selector: having("zone", "b")}, {Selector: without("zone")},
	})
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

func TestRequestsNearMaxInt64AreSubtractedExactly(t *testing.T) {
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
	taint := Taint{Key: "soft", Effect: "PreferNoSchedule"}
	steps := []struct {
		name string
		do   func() bool
		want bool
	}{
		{"new node", func() bool { return l.SetNode(node("n1")) }, true},
		{"heartbeat", func() bool { return l.SetNode(node("n1")) }, false},
		{"a taint that repels no pod", func() bool { return l.SetNode(node("n1", tainted(taint))) }, false},
		{"cordon", func() bool { return l.SetNode(node("n1", unusable)) }, true},
		{"new pod", func() bool { return l.SetPod(pod("a", "n1", "", 1)) }, true},
		{"the same pod", func() bool { return l.SetPod(pod("a", "n1", "", 1)) }, false},
		{"resize", func() bool { return l.SetPod(pod("a", "n1", "", 2)) }, true},
		{"pod deleted", func() bool { return l.DeletePod("a") }, true},
		{"pod deleted twice", func() bool { return l.DeletePod("a") }, false},
		{"unknown pod deleted", func() bool { return l.DeletePod("b") }, false},
		{"unknown node deleted", func() bool { return l.DeleteNode("n2") }, false},
		{"node deleted", func() bool { return l.DeleteNode("n1") }, true},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want {
			t.Errorf("%s: changed = %v, want %v", s.name, got, s.want)
		}
	}
	if len(l.nodes) != 0 || len(l.pods) != 0 || len(l.names.numbers) != 0 {
		t.Errorf("left over: %d nodes, %d pods, %d names", len(l.nodes), len(l.pods), len(l.names.numbers))
	}
}

func TestNodesInTheirGraceAreListedAndCount(t *testing.T) {
	l := NewLedger()
	inGrace := func(n *Node) { n.Grace = "not Ready" }
	for _, n := range []Node{node("b", inGrace), node("a", inGrace), node("c")} {
		l.SetNode(n)
	}
	if diff := cmp.Diff([]UnusableNode{{"a", "not Ready"}, {"b", "not Ready"}}, l.InGrace()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := l.View([]Selection{{}}).Pools[0].Nodes; n != 3 {
		t.Errorf("%d nodes count, want 3", n)
	}
	want := node("a")
	if changed := l.SetNode(want); !changed {
		t.Error("a node whose grace has ended has not changed")
	}
	got, known := l.Node("a")
	if diff := cmp.Diff(want, got); !known || diff != "" {
		t.Errorf("known: %v (-want +got):\n%s", known, diff)
	}
	if _, known := l.Node("d"); known || len(l.InGrace()) != 1 {
		t.Errorf("d is known: %v, in their grace: %v", known, l.InGrace())
	}
}

func TestUnusableExplainsEverySelectedNodeOutsideThePool(t *testing.T) {
	l := NewLedger()
	pool := map[string]string{"pool": "gold"}
	taint := []Taint{{Key: "dedicated", Value: "db", Effect: NoSchedule}}
	for _, n := range []Node{
		{Name: "usable", Labels: pool, State: Ready},
		{Name: "cordoned", Labels: pool, State: Cordoned},
		{Name: "away", Labels: pool},
		{Name: "tainted", Labels: pool, State: Ready, Taints: taint},
		{Name: "virtual", Labels: pool, State: Ready, Virtual: true, Peer: "oslo"},
		{Name: "other", State: Ready, Taints: taint},
	} {
		l.SetNode(n)
	}
	selections := []Selection{{Selector: having("pool", "gold")}}
	expectUnusable := func(want string) {
		t.Helper()
		if got := l.View(selections).Pools[0].Unusable.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expectUnusable("away is not Ready, cordoned is cordoned, tainted is tainted dedicated=db:NoSchedule, which is not tolerated")
	l.DeleteNode("tainted")
	l.SetNode(Node{Name: "away", Labels: pool, State: Ready})
	expectUnusable("cordoned is cordoned")
	for i := range MaxUnusableNamed {
		l.SetNode(Node{Name: fmt.Sprint("n", i), Labels: pool, State: Cordoned})
	}
	expectUnusable("cordoned is cordoned, n0 is cordoned, n1 is cordoned, n2 is cordoned, n3 is cordoned, and 1 more")
	l.SetNode(Node{Name: "cordoned", State: Cordoned})
	expectUnusable("n0 is cordoned, n1 is cordoned, n2 is cordoned, n3 is cordoned, n4 is cordoned")
}
