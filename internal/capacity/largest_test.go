package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLargestPodIsWhatOneUsableNodeHasFree(t *testing.T) {
	l := NewLedger()
	in := func(zone string) func(*Node) { return labelled(map[string]string{"zone": zone}) }
	of := func(cpu, memory int64) func(*Node) { return allocatable(Amounts{CPU: cpu, Memory: memory, Pods: 10}) }
	l.SetNode(node("big", in("a"), of(8000, 64)))
	l.SetNode(node("small", in("a"), of(6000, 64)))
	l.SetNode(node("roomy", in("b"), of(6000, 128)))
	l.SetNode(node("huge", in("b"), of(9000, 999), unusable))
	l.SetPod(pod("p", "big", "", 1500))
	l.SetPod(pod("q", "big", "rome", 1000))
	zoneA, zoneB, all := Selection{Selector: having("zone", "a")}, Selection{Selector: having("zone", "b")}, Selection{}
	want := []Amounts{
		{CPU: 6000, Memory: 64, Pods: 10}, {CPU: 6000, Memory: 128, Pods: 10}, {CPU: 6000, Memory: 128, Pods: 10}, nil,
	}
	if diff := cmp.Diff(want, l.Largest([]Selection{zoneA, zoneB, all, {Selector: nothing}})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// More requested than there is leaves nothing, not less than nothing.
	l.DeleteNode("small")
	l.SetPod(pod("r", "big", "oslo", 9000))
	if diff := cmp.Diff([]Amounts{{CPU: 0, Memory: 64, Pods: 7}}, l.Largest([]Selection{zoneA})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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
