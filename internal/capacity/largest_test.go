package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func all(string) bool { return true }

func TestTheLargestPodIsWhatOneUsableNodeHasFree(t *testing.T) {
	l := NewLedger()
	in := func(zone string) func(*Node) { return labelled(map[string]string{"zone": zone}) }
	of := func(cpu, gib, gpus int64) func(*Node) {
		return allocatable(Amounts{CPU: cpu, Memory: gib << 30, Pods: 10, "nvidia.com/gpu": gpus, "example.com/other": 5})
	}
	l.SetNode(node("big", in("a"), of(8000, 64, 0)))
	l.SetNode(node("small", in("a"), of(6000, 60, 0)))
	l.SetNode(node("gpus", in("b"), of(4000, 64, 2)))
	l.SetNode(node("roomy", in("b"), of(6000, 128, 0)))
	l.SetNode(node("huge", in("b"), of(9000, 999, 9), unusable))
	l.SetPod(pod("p", "big", "", 1500))
	l.SetPod(pod("q", "big", "rome", 1000))
	largest := func(s Selection) Amounts {
		return l.Shapes([]ShapeQuery{{s, func(name string) bool { return name != "example.com/other" }}})[0].Largest
	}
	for name, tc := range map[string]struct {
		of   Selection
		want Amounts
	}{
		// Of big the pods have left 5.5 cpu: it has less cpu than small, and more memory.
		"cpu and memory":       {Selection{Selector: having("zone", "a")}, Amounts{CPU: 6000, Memory: 60 << 30, Pods: 10, "nvidia.com/gpu": 0}},
		"scarce devices":       {Selection{Selector: having("zone", "b")}, Amounts{CPU: 4000, Memory: 64 << 30, Pods: 10, "nvidia.com/gpu": 2}},
		"without usable nodes": {Selection{Selector: nothing}, nil},
	} {
		if diff := cmp.Diff(tc.want, largest(tc.of)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	// A node on which no pod starts is not the largest: one whose cpu is all requested, or whose
	// pod slots are used up.
	l.SetPod(pod("r", "small", "oslo", 9000))
	want := Amounts{CPU: 5500, Memory: 64 << 30, Pods: 8, "nvidia.com/gpu": 0}
	if diff := cmp.Diff(want, largest(Selection{Selector: having("zone", "a")})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	l.SetNode(node("big", in("a"), allocatable(Amounts{CPU: 8000, Memory: 64 << 30, Pods: 2})))
	if got := largest(Selection{Selector: having("zone", "a")}); got != nil {
		t.Errorf("of full nodes: %v", got)
	}
}

func TestRoomsAreTheUsableNodesThatWithTheMostFreeFirst(t *testing.T) {
	l := NewLedger()
	of := func(cpu, memory int64) func(*Node) { return allocatable(Amounts{CPU: cpu, Memory: memory, Pods: 10}) }
	in := func(zone string) func(*Node) { return labelled(map[string]string{"zone": zone}) }
	for name, with := range map[string]func(*Node){"c": of(6000, 64), "a": of(6000, 64), "b": of(6000, 128), "d": of(7000, 64)} {
		l.SetNode(node(name, with, in("a")))
	}
	l.SetNode(node("huge", of(9000, 999), in("a"), unusable))
	l.SetNode(node("other", of(9000, 999), in("b")))
	l.SetPod(pod("p", "d", "", 1500))
	l.SetPod(pod("q", "d", "rome", 9000))
	all := []Room{
		{"b", Amounts{CPU: 6000, Memory: 128, Pods: 10}, Amounts{CPU: 6000, Memory: 128, Pods: 10}},
		{"a", Amounts{CPU: 6000, Memory: 64, Pods: 10}, Amounts{CPU: 6000, Memory: 64, Pods: 10}},
		{"c", Amounts{CPU: 6000, Memory: 64, Pods: 10}, Amounts{CPU: 6000, Memory: 64, Pods: 10}},
		{"d", Amounts{CPU: 7000, Memory: 64, Pods: 10}, Amounts{CPU: 0, Memory: 64, Pods: 8}},
	}
	for most, want := range map[int][]Room{0: nil, 2: all[:2], 9: all} {
		if got, nodes := l.Rooms(Selection{Selector: having("zone", "a")}, most); cmp.Diff(want, got) != "" || nodes != len(all) {
			t.Errorf("%d of %d (-want +got)\n%s", most, nodes, cmp.Diff(want, got))
		}
	}
	if got, nodes := l.Rooms(Selection{Selector: nothing}, 9); got != nil || nodes != 0 {
		t.Errorf("%v of %d nodes", got, nodes)
	}
}
