package capacity

import (
	"fmt"
	"runtime"
	"testing"

	"proffer.dev/proffer/test"
)

// sizeOf returns the bytes that a new ledger and its View take.
func sizeOf(build func() *Ledger) int64 {
	before := test.LiveHeap()
	l := build()
	v := l.View([]Selection{{}})
	after := test.LiveHeap()
	runtime.KeepAlive(l)
	runtime.KeepAlive(v)
	return after - before
}

// ordinaryLedger returns a ledger of 100 nodes and 1,000 pods. A fifth of the pods belong to 20
// consumers.
func ordinaryLedger() *Ledger {
	l := NewLedger()
	for i := range 100 {
		l.SetNode(node(fmt.Sprintf("n%02d", i)))
	}
	for i := range 1000 {
		p := pod(fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i), fmt.Sprintf("n%02d", i%100), "", 100)
		if i%5 == 0 {
			p.Consumer, p.Creator = fmt.Sprintf("consumer-%02d", i/5%20), fmt.Sprintf("slice-%02d", i/5%20)
		}
		l.SetPod(p)
	}
	return l
}

// madeUp returns requests of a pod for resources that do not exist.
func madeUp(pod, names int) Amounts {
	a := Amounts{CPU: 100, Memory: 1 << 20}
	for i := range names {
		a[fmt.Sprintf("made-up.example.com/pod-%d-resource-%05d", pod, i)] = 1
	}
	return a
}

func TestMadeUpResourceNamesTakeMemoryOnlyInTheirPods(t *testing.T) {
	without := sizeOf(ordinaryLedger)
	with := sizeOf(func() *Ledger {
		l := ordinaryLedger()
		for i := range 8 {
			p := Pod{Key: fmt.Sprint("hostile-", i), Node: "n01", Requests: madeUp(i, 10_000)}
			if i%2 == 0 {
				p.Consumer = "consumer-01"
			}
			l.SetPod(p)
		}
		return l
	})
	t.Logf("1,000 pods on 100 nodes take %d KiB; with 8 pods of 10,000 names, %d KiB", without>>10, with>>10)
	// The ledger counts 64 names per pod, each about 40 bytes long.
	if more := with - without; more > 512<<10 {
		t.Errorf("8 pods of 10,000 made-up names take %d KiB more", more>>10)
	}
}

// No node bounds the number of pods that wait.
func TestPodsWithoutANodeTakeLittleMemory(t *testing.T) {
	without := sizeOf(ordinaryLedger)
	for name, tc := range map[string]struct {
		names int
		most  int64
	}{
		"ordinary": {0, 384}, "with made-up names": {MaxPodResources, 2048},
	} {
		const waiting = 4_000
		with := sizeOf(func() *Ledger {
			l := ordinaryLedger()
			for i := range waiting {
				l.SetPod(Pod{
					Key: fmt.Sprintf("7f1c2d3e-0000-4000-8000-%012d", i), Consumer: "consumer-01", Creator: "slice-01",
					Requests: madeUp(i, tc.names),
				})
			}
			return l
		})
		each := (with - without) / waiting
		t.Logf("%s: %d bytes each", name, each)
		if each > tc.most {
			t.Errorf("%s: %d pods that wait take %d bytes each, want at most %d", name, waiting, each, tc.most)
		}
	}
}

func TestUnusedResourceNamesAreReleased(t *testing.T) {
	l := ordinaryLedger()
	l.View([]Selection{{}})
	before := test.LiveHeap()
	for round := range 200 {
		for i := range 8 {
			l.SetPod(Pod{
				Key:      fmt.Sprint("hostile-", i),
				Node:     "n01",
				Consumer: "consumer-01",
				Requests: madeUp(8*round+i, MaxPodResources),
			})
		}
		l.View([]Selection{{}})
	}
	for i := range 8 {
		l.DeletePod(fmt.Sprint("hostile-", i))
	}
	more := test.LiveHeap() - before
	if len(l.names.numbers) != 3 || len(l.names.infos) > 3+9*MaxPodResources {
		t.Errorf("%d of 102,400 names left; the table holds %d", len(l.names.numbers), len(l.names.infos))
	}
	if more > 256<<10 {
		t.Errorf("%d KiB left", more>>10)
	}
	runtime.KeepAlive(l)
}
