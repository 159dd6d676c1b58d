package capacity

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAPodWithTooManyResourceNamesKeepsTheListedOnes(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	l := NewLedger()
	l.SetNode(node("n1", allocatable(Amounts{CPU: 8000, Memory: 1 << 30, Pods: 110, gpu: 8})))
	p := Pod{Key: "hostile", Node: "n1", Consumer: "rome", Requests: Amounts{CPU: 3000, Memory: 1 << 20, gpu: 5}}
	for i := range 1000 {
		// These names sort first, but must not displace the resources that the node lists.
		p.Requests[fmt.Sprintf("a.before.all.others/%04d", i)] = 1
	}
	l.SetPod(p)
	v, pool := everyNode(l)
	if got := amounts(v, pool.InUse); got[CPU] != 3000 || got[Memory] != 1<<20 || got[gpu] != 5 || got[Pods] != 1 {
		t.Errorf("in use: %v", got)
	}
	if n := len(l.pods["hostile"].requests); n != MaxPodResources+1 { // one more for pods
		t.Errorf("%d names counted, want %d", n, MaxPodResources+1)
	}
	if changed := l.SetPod(p); changed {
		t.Error("setting the same pod again reports a change")
	}
}

// A pod that waits may ask for more listed resources than fit into the bound of what no node lists.
func TestAPodThatWaitsCountsWithAllThatNodesList(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	lists := Amounts{CPU: 8000, Memory: 1 << 30, Pods: 110, gpu: 8}
	for i := range MaxUnboundResources {
		lists[fmt.Sprintf("devices.example.com/%d", i)] = 10
	}
	l := NewLedger()
	l.SetNode(node("n1", allocatable(lists)))
	p := Pod{Key: "hostile", Consumer: "rome", Requests: Amounts{CPU: 3000, Memory: 1 << 20, gpu: 5}}
	for name := range lists {
		if p.Requests[name] == 0 && name != Pods {
			p.Requests[name] = 1
		}
	}
	for i := range 1000 {
		p.Requests[fmt.Sprintf("a.before.all.others/%04d", i)] = int64(i % 2)
	}
	l.SetPod(p)
	v, _ := everyNode(l)
	if got := amounts(v, v.Used.Of("rome").Everywhere); got[gpu] != 5 || got[CPU] != 3000 || got["devices.example.com/7"] != 1 {
		t.Errorf("in use: %v", got)
	}
	if n, want := len(l.pods["hostile"].requests), len(lists); n != want {
		t.Errorf("%d names counted, want %d", n, want)
	}
	if changed := l.SetPod(p); changed {
		t.Error("setting the same pod again reports a change")
	}
}

func TestANodeWithTooManyResourceNamesKeepsCPUMemoryAndPods(t *testing.T) {
	all := Amounts{CPU: 8000, Memory: 1 << 30, Pods: 110}
	for i := range 1000 {
		all[fmt.Sprintf("a.before.all.others/%04d", i)] = 1
	}
	l := NewLedger()
	l.SetNode(node("n1", allocatable(all)))
	v, pool := everyNode(l)
	if got := amounts(v, pool.Allocatable); len(got) != MaxNodeResources || got[CPU] != 8000 || got[Memory] != 1<<30 ||
		got[Pods] != 110 {
		t.Errorf("%d names listed with cpu %d, memory %d, pods %d", len(got), got[CPU], got[Memory], got[Pods])
	}
	if l.SetNode(node("n1", allocatable(maps.Clone(all)))) {
		t.Error("setting the same node again reports a change")
	}
	l.DeleteNode("n1")
	if v, _ := everyNode(l); len(v.Columns) != 3 || len(l.names.numbers) != 3 {
		t.Errorf("%d names left, want 3", len(l.names.numbers))
	}
}

func TestBoundedKeepsNamesByRankThenAlphabetically(t *testing.T) {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{CPU, Memory, Pods, "nvidia.com/gpu"}),
		rapid.StringMatching(`[a-d]{1,3}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.MapOf(name, rapid.Int64Range(0, 9)).Draw(t, "amounts")
		listed := rapid.SliceOf(name).Draw(t, "listed")
		most := rapid.IntRange(3, 12).Draw(t, "most")
		lists := func(name string) bool { return slices.Contains(listed, name) }
		kept := Amounts(a).Bounded(most, lists)
		if len(kept) != min(most, len(a)) {
			t.Fatalf("%d of %d names kept, limit %d", len(kept), len(a), most)
		}
		rank := func(name string) int {
			switch {
			case name == CPU || name == Memory || name == Pods:
				return 0
			case lists(name):
				return 1
			}
			return 2
		}
		for name, amount := range a {
			got, ok := kept[name]
			if ok && got != amount {
				t.Fatalf("%s is %d, want %d", name, got, amount)
			}
			for other := range kept {
				if !ok && (rank(other) > rank(name) || rank(other) == rank(name) && other > name) {
					t.Fatalf("%s was kept instead of %s", other, name)
				}
			}
		}
	})
}

func TestUseByCreatorExistsWhileTheCreatorHasPods(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	of := func(key, creator string, milli int64) Pod {
		p := pod(key, "n1", "rome", milli)
		p.Creator = creator
		return p
	}
	l.SetPod(of("a", "slice-1", 1000))
	l.SetPod(of("b", "slice-1", 500))
	l.SetPod(of("c", "slice-2", 200))
	l.SetPod(of("d", "", 100))
	l.SetPod(Pod{Key: "e", Node: "n1", Creator: "slice-1", Requests: Amounts{CPU: 7000}})
	first, _ := everyNode(l)
	l.DeletePod("a")
	l.SetPod(of("c", "slice-1", 200))
	second, _ := everyNode(l)
	l.DeletePod("b")
	l.DeletePod("c")
	third, _ := everyNode(l)
	by := func(v View, creator string) int64 { return amounts(v, v.Used.Of("rome").By(creator))[CPU] }
	if by(first, "slice-1") != 1500 || by(first, "slice-2") != 200 {
		t.Errorf("first view: slice-1 uses %d, slice-2 %d", by(first, "slice-1"), by(first, "slice-2"))
	}
	if by(second, "slice-1") != 700 || second.Used.Of("rome").By("slice-2") != nil {
		t.Errorf("second view: slice-1 uses %d, slice-2 %v", by(second, "slice-1"), second.Used.Of("rome").By("slice-2"))
	}
	if third.Used.Of("rome").By("slice-1") != nil || by(first, "slice-1") != 1500 {
		t.Error("a creator without pods has use, or the first view changed")
	}
	if third.Used.Of("oslo").By("slice-1") != nil {
		t.Error("a consumer without pods has use by a creator")
	}
}

func TestSharedNodesDoNotDependOnHowASelectorIsWritten(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("a", labelled(map[string]string{"zone": "a", "disk": "ssd"})))
	l.SetNode(node("b", labelled(map[string]string{"zone": "b", "disk": "ssd"})))
	l.SetNode(node("c", labelled(map[string]string{"zone": "b"})))
	v := l.View([]Selection{
		{Selector: having("zone")},
		{Selector: having("zone", "a", "b")},
		{Selector: having("disk")},
		{Selector: without("disk")},
	})
	want := [][]int{{3, 3, 2, 1}, {3, 3, 2, 1}, {2, 2, 2, 0}, {1, 1, 0, 1}}
	for i, p := range v.Pools {
		if !slices.Equal(p.Shared, want[i]) {
			t.Errorf("pool %d of %d nodes shares %v, want %v", i, p.Nodes, p.Shared, want[i])
		}
	}
}
