package nodes

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

func podOf(full *corev1.Pod) *pod {
	p := new(pod)
	if err := p.take(full); err != nil {
		panic(err)
	}
	return p
}

func nodeOf(full *corev1.Node) *node {
	n := new(node)
	n.take(full)
	return n
}

// stores is a ledger with the stores that the reflectors of nodes and pods write to. It counts the
// wake-ups.
type stores struct {
	ledger *capacity.Ledger
	nodes  *masked.Store[*node]
	pods   *masked.Store[*pod]
	woken  int
}

func newTestStores() *stores {
	w := &stores{ledger: capacity.NewLedger()}
	wake := func() { w.woken++ }
	w.nodes, w.pods = newStores(w.ledger, newGraceful(w.ledger, 0, wake), wake)
	return w
}

// free returns the free cpu of all nodes, in milli.
func free(ledger *capacity.Ledger) int64 {
	view := ledger.View([]capacity.Selection{{}})
	for i, column := range view.Columns {
		if column == capacity.CPU {
			return view.Pools[0].Free.At(i)
		}
	}
	return 0
}

func (w *stores) wants(t *testing.T, what string, milli int64, woken int) {
	t.Helper()
	if got := free(w.ledger); got != milli || w.woken != woken {
		t.Errorf("%s: free cpu %d, want %d; woken %d times, want %d", what, got, milli, w.woken, woken)
	}
}

func TestTheStoresKeepTheLedgerUpToDate(t *testing.T) {
	w := newTestStores()
	check := func(what string, err error, milli int64, woken int) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.wants(t, what, milli, woken)
	}
	check("a node", w.nodes.Add(nodeOf(aNode("n", list("cpu", "4")))), 4000, 1)
	check("a pod", w.pods.Add(podOf(aPod("p", "n", list("cpu", "1")))), 3000, 2)
	check("the same pod with another label", w.pods.Update(podOf(aPod("p", "n", list("cpu", "1"), podLabel("app", "web")))), 3000, 2)
	check("a larger pod", w.pods.Update(podOf(aPod("p", "n", list("cpu", "2")))), 2000, 3)
	check("a heartbeat", w.nodes.Update(nodeOf(aNode("n", list("cpu", "4")))), 2000, 3)
	check("a finished pod", w.pods.Update(podOf(aPod("p", "n", list("cpu", "2"), phase(corev1.PodSucceeded)))), 4000, 4)
	check("the pod runs again", w.pods.Update(podOf(aPod("p", "n", list("cpu", "2")))), 2000, 5)
	check("the pod is deleted", w.pods.Delete(podOf(aPod("p", "n", list("cpu", "2")))), 4000, 6)
	check("the node is deleted", w.nodes.Delete(nodeOf(aNode("n", nil))), 0, 7)
	check("a resync", w.pods.Resync(), 0, 7)
}

// After an interruption a watch continues with a full list, which omits what was deleted meanwhile.
func TestFault_ADeletionThatWasMissedPanics(t *testing.T) {
	w := newTestStores()
	for what, s := range map[string]interface{ Done() <-chan struct{} }{"nodes": w.nodes, "pods": w.pods} {
		select {
		case <-s.Done():
			t.Errorf("the store of %s is done before the first list", what)
		default:
		}
	}
	stays, goes := nodeOf(aNode("stays", list("cpu", "4"))), nodeOf(aNode("goes", list("cpu", "8")))
	p, q := podOf(aPod("p", "stays", list("cpu", "1"))), podOf(aPod("q", "stays", list("cpu", "2")))
	test.Must(t, w.nodes.Replace([]any{stays, goes}, "1"))
	test.Must(t, w.pods.Replace([]any{p, q}, "1"))
	w.wants(t, "after the first lists", 9000, 2)
	<-w.nodes.Done()
	<-w.pods.Done()
	_ = w.nodes.Replace([]any{stays}, "2")
	_ = w.pods.Replace([]any{q}, "2")
	w.wants(t, "after a list without a node and a pod", 2000, 4)
	_ = w.nodes.Replace([]any{stays}, "3")
	_ = w.pods.Replace([]any{q}, "3")
	w.wants(t, "after the same list again", 2000, 4)
	// Another pod now has the name of q, and p has failed.
	again := aPod("q", "stays", list("cpu", "3"))
	again.UID = "another"
	_ = w.pods.Replace([]any{podOf(again), podOf(aPod("p", "stays", list("cpu", "1"), phase(corev1.PodFailed)))}, "4")
	w.wants(t, "after a pod was created again under its name", 1000, 5)
}

// Two reflectors write and the evaluator reads, each in its own goroutine. The test runs under the
// race detector too.
func TestFault_OneMapWrittenByTwoInformersWithoutALock(t *testing.T) {
	const n = 500
	ledger := capacity.NewLedger()
	nodes, pods := newStores(ledger, newGraceful(ledger, grace, func() {}), func() {})
	stop := make(chan struct{})
	var writers, reader sync.WaitGroup
	writers.Go(func() {
		for i := range n {
			_ = nodes.Add(nodeOf(aNode(fmt.Sprintf("n%03d", i), list("cpu", "1"))))
			_ = nodes.Update(nodeOf(aNode(fmt.Sprintf("n%03d", i), list("cpu", "4"))))
		}
	})
	writers.Go(func() {
		for i := range n {
			p := podOf(aPod(fmt.Sprintf("p%03d", i), fmt.Sprintf("n%03d", n-1-i), list("cpu", "1")))
			_ = pods.Add(p)
			if i%2 == 0 {
				_ = pods.Delete(p)
			}
		}
	})
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if got := free(ledger); got < 0 || got > n*4000 {
					t.Errorf("free cpu %d, want 0 to %d", got, n*4000)
					return
				}
			}
		}
	})
	writers.Wait()
	close(stop)
	reader.Wait()
	if got, want := free(ledger), int64(n*4000-n/2*1000); got != want {
		t.Errorf("free cpu %d, want %d", got, want)
	}
}
