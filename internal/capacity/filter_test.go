package capacity

import (
	"fmt"
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
	p := l.View([]Selection{{Selector: without("zone"), Filter: f}}).Pools[0]
	if p.Nodes != 1 || f.calls != 2 {
		t.Errorf("%d nodes after %d calls, want 1 and 2", p.Nodes, f.calls)
	}
	want := Unusable{Count: 2, Filtered: 1, First: []UnusableNode{{"down", "not Ready"}, {"small", "left out by size"}}}
	if diff := cmp.Diff(want, p.Unusable); diff != "" {
		t.Error(diff)
	}
	l.SetNode(node("small", allocatable(Amounts{CPU: 16_000})))
	if p = l.View([]Selection{{Selector: without("zone"), Filter: f}}).Pools[0]; p.Nodes != 2 || p.Unusable.Filtered != 0 {
		t.Errorf("after the node has grown: %d nodes, %d left out by the filter", p.Nodes, p.Unusable.Filtered)
	}
}

// TestAFilterIsAskedOnceAboutEachStateOfANode also with pods, other columns and other selections.
func TestAFilterIsAskedOnceAboutEachStateOfANode(t *testing.T) {
	l := NewLedger()
	f := &nodeFilter{text: "all", admits: func(*Node) bool { return true }}
	with, both := []Selection{{Filter: f}}, []Selection{{Filter: f}, {Selector: having("zone"), Filter: f}, {}}
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
			{Filter: &nodeFilter{text: text}}, {Filter: &nodeFilter{text: text}, Tolerations: []Toleration{tolerates(text)}},
			{Filter: &nodeFilter{text: text}, Selector: having(text)}, {Tolerations: []Toleration{tolerates(text)}},
		} {
			if keys[s.Key()] {
				t.Errorf("%q is the key of two selections", s.Key())
			}
			keys[s.Key()] = true
		}
	}
}
