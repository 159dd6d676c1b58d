package capacity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFilterDecidesOnUsableNodesOnly(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("big", allocatable(Amounts{CPU: 64_000})))
	l.SetNode(node("small"))
	l.SetNode(node("down", unusable))
	l.SetNode(node("elsewhere", labelled(map[string]string{"zone": "b"})))
	f := &nodeFilter{text: "size", admits: func(n *Node) bool { return n.Allocatable[CPU] > 8000 }}
	p := l.View([]Selection{{Selector: without("zone"), Filters: []NodeFilter{f}}}).Pools[0]
	if p.Nodes != 1 || f.calls != 2 {
		t.Errorf("%d nodes after %d calls, want 1 and 2", p.Nodes, f.calls)
	}
	want := Unusable{Count: 2, Filtered: 1, First: []UnusableNode{{"down", "not Ready"}, {"small", "left out by size"}}}
	if diff := cmp.Diff(want, p.Unusable); diff != "" {
		t.Error(diff)
	}
	l.SetNode(node("small", allocatable(Amounts{CPU: 16_000})))
	if p = l.View([]Selection{{Selector: without("zone"), Filters: []NodeFilter{f}}}).Pools[0]; p.Nodes != 2 || p.Unusable.Filtered != 0 {
		t.Errorf("after the node has grown: %d nodes, %d left out by the filter", p.Nodes, p.Unusable.Filtered)
	}
}

func TestFiltersAreAskedInOrder(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("both", unusable, labelled(map[string]string{"early": "", "late": ""})))
	l.SetNode(node("down", unusable, labelled(map[string]string{"late": ""})))
	l.SetNode(node("late", labelled(map[string]string{"late": "", "later": ""})))
	l.SetNode(node("later", labelled(map[string]string{"later": ""})))
	without := func(key string) NodeFilter {
		return &nodeFilter{text: key, admits: func(n *Node) bool { _, has := n.Labels[key]; return !has }}
	}
	s := Selection{Early: []NodeFilter{without("early")}, Filters: []NodeFilter{without("late"), without("later")}}
	want := Unusable{Count: 4, Filtered: 3, First: []UnusableNode{
		{"both", "left out by early"}, {"down", "not Ready"}, {"late", "left out by late"}, {"later", "left out by later"},
	}}
	if diff := cmp.Diff(want, l.View([]Selection{s}).Pools[0].Unusable); diff != "" {
		t.Error(diff)
	}
}

func TestReconsiderAsksFiltersAgain(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetNode(node("n2"))
	l.SetPod(Pod{Key: "a", Node: "n1", Consumer: "rome", Requests: Amounts{CPU: 1000}})
	admits := map[string]bool{}
	s := []Selection{{Filters: []NodeFilter{&nodeFilter{text: "known", admits: func(n *Node) bool { return admits[n.Name] }}}}}
	l.View(s)
	admits["n1"], admits["n2"] = true, true
	if p := l.View(s).Pools[0]; p.Nodes != 0 {
		t.Errorf("%d nodes before anything was reconsidered, want 0", p.Nodes)
	}
	if !l.Reconsider("n1", "unknown") || l.Reconsider("unknown") {
		t.Error("want changed exactly for a known node")
	}
	if p := l.View(s).Pools[0]; p.Nodes != 1 || p.InUse.At(0) != 1000 {
		t.Errorf("%d nodes with %d in use, want n1 with its pod", p.Nodes, p.InUse.At(0))
	}
}

// TestAFilterIsAskedOnceAboutEachStateOfANode also with pods, other columns and other selections.
func TestAFilterIsAskedOnceAboutEachStateOfANode(t *testing.T) {
	l := NewLedger()
	f := &nodeFilter{text: "all", admits: func(*Node) bool { return true }}
	with, both := []Selection{{Filters: []NodeFilter{f}}}, []Selection{{Filters: []NodeFilter{f}}, {Selector: having("zone"), Filters: []NodeFilter{f}}, {}}
	expect := func(after string, calls int) {
		t.Helper()
		if f.calls != calls {
			t.Fatalf("%d calls after %s, want %d", f.calls, after, calls)
		}
	}
	for i := range 3 {
		l.SetNode(node(fmt.Sprint("n", i)))
	}
	l.View(with)
	expect("the first view", 3)
	l.SetPod(Pod{Key: "a", Node: "n0", Consumer: "rome", Requests: Amounts{CPU: 1, "example.com/new": 1}})
	l.View(with, "example.com/new")
	l.DeletePod("a")
	l.View(with)
	expect("pods of a new resource", 3)
	l.SetNode(node("n0"))
	l.View(both)
	l.View(with)
	expect("other selections", 3)
	l.SetNode(node("n0", labelled(map[string]string{"zone": "a"})))
	l.View(both)
	expect("a label", 4)
	l.View(nil)
	l.View(with)
	expect("it was gone", 7)
}

func TestSelectionsOfDifferentFiltersHaveDifferentKeys(t *testing.T) {
	keys := map[string]bool{}
	for _, text := range []string{"a", "b", "1\x01a"} {
		for _, s := range []Selection{
			{Early: []NodeFilter{&nodeFilter{text: text}}},
			{Filters: []NodeFilter{&nodeFilter{text: text}}}, {Filters: []NodeFilter{&nodeFilter{text: text}}, Tolerations: []Toleration{tolerates(text)}},
			{Filters: []NodeFilter{&nodeFilter{text: text}}, Selector: having(text)}, {Tolerations: []Toleration{tolerates(text)}},
		} {
			if keys[s.Key()] {
				t.Errorf("%q is the key of two selections", s.Key())
			}
			keys[s.Key()] = true
		}
	}
}

// contentFilter is a ContentFilter.
type contentFilter struct{ nodeFilter }

func (*contentFilter) ReadsContentOnly() {}

// TestManyFiltersAreAskedOnlyAboutWhatHasChanged counts, because time says little on a busy machine.
func TestManyFiltersAreAskedOnlyAboutWhatHasChanged(t *testing.T) {
	const nodes, filters = 200, 100
	l, all, selections := NewLedger(), []*contentFilter{}, []Selection{}
	add := func() {
		f := &contentFilter{nodeFilter{text: fmt.Sprint(len(all)), admits: func(n *Node) bool { return n.Name > "n100" }}}
		all, selections = append(all, f), append(slices.Clip(selections), Selection{Filters: []NodeFilter{f}})
	}
	expect := func(after string, want int) {
		t.Helper()
		l.View(selections)
		calls := 0
		for _, f := range all {
			calls, f.calls = calls+f.calls, 0
		}
		if calls != want {
			t.Errorf("%d questions after %s, want %d", calls, after, want)
		}
	}
	for i := range nodes {
		l.SetNode(node(fmt.Sprintf("n%03d", i)))
	}
	for range filters {
		add()
	}
	expect("the start", nodes*filters)
	l.SetPod(Pod{Key: "a", Node: "n150", Consumer: "rome", Requests: Amounts{CPU: 1}})
	expect("a pod", 0)
	l.SetNode(node("n150", unusable))
	expect("a node that is not Ready", 0)
	l.SetNode(node("n150"))
	expect("its return", 0)
	l.Reconsider("n150")
	expect("what another filter says", 0)
	l.SetNode(node("n150", labelled(map[string]string{"zone": "a"})))
	expect("a label", filters)
	add()
	expect("another policy", nodes)
}

func TestAPodDoesNotHaveTheSharesOfPoolsCountedAgain(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	selections := []Selection{{}, {Selector: without("zone")}}
	before := l.View(selections).Pools[0]
	l.SetPod(Pod{Key: "a", Node: "n1", Consumer: "rome", Requests: Amounts{CPU: 1000}})
	after := l.View(selections).Pools[0]
	if &before.Shared[0] != &after.Shared[0] || after.InUse.At(0) != 1000 {
		t.Error("they are counted again, or the pod is not")
	}
	l.SetNode(node("n2"))
	if p := l.View(selections).Pools[0]; p.Shared[1] != 2 || before.Shared[1] != 1 {
		t.Errorf("%d nodes are shared, and were %d before", p.Shared[1], before.Shared[1])
	}
}
