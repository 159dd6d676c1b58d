package capacity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsLeftOnAFullNodeIsNotFree(t *testing.T) {
	l := NewLedger()
	slots := func(n int64) func(*Node) {
		return allocatable(Amounts{CPU: 8000, Memory: 64, Pods: n, "nvidia.com/gpu": 4})
	}
	l.SetNode(node("small", slots(3)))
	l.SetNode(node("large", slots(110)))
	l.SetPod(pod("local", "small", "", 1000))
	l.SetPod(Pod{Key: "a", Node: "small", Consumer: "rome", Requests: Amounts{CPU: 500, "nvidia.com/gpu": 1}})
	type pool struct {
		Nodes                int
		Free, Blocked, InUse Amounts
		Full                 string
	}
	expect := func(when string, want pool) {
		t.Helper()
		v, p := everyNode(l)
		got := pool{p.Nodes, amounts(v, p.Free), amounts(v, p.Blocked), amounts(v, p.InUse), p.Full.String()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	open := pool{
		Nodes: 2, Free: Amounts{CPU: 15_000, Memory: 128, Pods: 112, "nvidia.com/gpu": 8}, Blocked: Amounts{},
		InUse: Amounts{CPU: 500, Pods: 1, "nvidia.com/gpu": 1},
	}
	expect("one slot left", open)

	full := pool{
		Nodes: 2, Free: Amounts{CPU: 8600, Memory: 64, Pods: 112, "nvidia.com/gpu": 5},
		Blocked: Amounts{CPU: 6400, Memory: 64, "nvidia.com/gpu": 3}, InUse: Amounts{CPU: 600, Pods: 2, "nvidia.com/gpu": 1},
		Full: "small is full: it takes 3 pods and has 3",
	}
	l.SetPod(pod("b", "small", "oslo", 100))
	expect("no slot left: only what consumers use counts", full)

	resized := full
	resized.Free = Amounts{CPU: 8700, Memory: 64, Pods: 112, "nvidia.com/gpu": 5}
	resized.Blocked = Amounts{CPU: 6300, Memory: 64, "nvidia.com/gpu": 3}
	resized.InUse = Amounts{CPU: 700, Pods: 2, "nvidia.com/gpu": 1}
	l.SetPod(pod("b", "small", "oslo", 200))
	expect("a pod of the full node was resized", resized)

	l.DeletePod("b")
	expect("a slot is left again", open)

	// The kubelet was told to take fewer pods than it has.
	l.SetNode(node("small", slots(1)))
	v, p := everyNode(l)
	if got := p.Full.String(); got != "small is full: it takes 1 pods and has 2" || amounts(v, p.Free)[CPU] != 8500 {
		t.Errorf("%s, %v are free", got, amounts(v, p.Free))
	}

	l.SetNode(node("small", slots(1), unusable))
	if v, p = everyNode(l); p.Full.Count != 0 || amounts(v, p.Free)[CPU] != 8000 || len(amounts(v, p.Blocked)) != 0 {
		t.Errorf("a node that is in no pool is full in it: %+v", p)
	}
	l.SetNode(node("small", slots(0)))
	l.DeletePod("local")
	l.DeletePod("a")
	v, p = everyNode(l)
	if diff := cmp.Diff(Amounts{CPU: 8000, Memory: 64, "nvidia.com/gpu": 4}, amounts(v, p.Blocked)); diff != "" {
		t.Errorf("a node that takes no pods at all (-want +got):\n%s", diff)
	}
	l.DeleteNode("small")
	if v, p = everyNode(l); p.Full.Count != 0 || len(amounts(v, p.Blocked)) != 0 {
		t.Errorf("a node that is gone is full: %+v", p)
	}
}

func TestANodeThatListsNoNumberOfPodsIsNotFull(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1", allocatable(Amounts{CPU: 8000})))
	l.SetPod(pod("a", "n1", "", 1000))
	if v, p := everyNode(l); p.Full.Count != 0 || amounts(v, p.Free)[CPU] != 7000 {
		t.Errorf("%d nodes are full, and %v are free", p.Full.Count, amounts(v, p.Free))
	}
}

func TestTheFirstFullNodesAreNamed(t *testing.T) {
	l := NewLedger()
	for i := range MaxUnusableNamed + 2 {
		l.SetNode(node(fmt.Sprint("n", i), allocatable(Amounts{CPU: 1000, Pods: 0})))
	}
	l.SetNode(node("n3", unusable))
	_, p := everyNode(l)
	want := "n0 is full: it takes 0 pods and has 0, n1 is full: it takes 0 pods and has 0, n2 is full: it takes 0 pods " +
		"and has 0, n3 is not Ready, n4 is full: it takes 0 pods and has 0, and 2 more"
	if got := p.Unusable.With(p.Full).String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTheNodesOfAGroupAreFullByWhatTheyHave also when what the group was given changes.
func TestTheNodesOfAGroupAreFullByWhatTheyHave(t *testing.T) {
	l := NewLedger()
	virtual := func(n *Node) { n.Virtual, n.Peer = true, "milan" }
	l.SetNode(node("v1", virtual))
	l.SetNode(node("v2", virtual))
	l.SetPod(pod("a", "v1", "", 1000))
	peers := []Selection{{Peers: &Peers{Depth: 1}}}
	given := func(pods int64) (full string, blocked int64) {
		l.SetGroups([]NodeGroup{{Key: "g", Nodes: []string{"v1", "v2"}, Given: Amounts{CPU: 8000, Memory: 1, Pods: pods}}})
		v := l.View(peers)
		return v.Pools[0].Full.String(), amounts(v, v.Pools[0].Blocked)[CPU]
	}
	if full, blocked := given(3); full != "v2 is full: it takes 0 pods and has 0" || blocked != 0 {
		t.Errorf("of 3 pods: %s, %d blocked", full, blocked)
	}
	want := "v1 is full: it takes 1 pods and has 1, v2 is full: it takes 0 pods and has 0"
	if full, blocked := given(1); full != want || blocked != 7000 {
		t.Errorf("of 1 pod: %s, %d blocked", full, blocked)
	}
}
