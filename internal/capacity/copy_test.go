package capacity

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// podsByKey returns the pods of a copy by key.
func podsByKey(c *Copy) map[string]Pod {
	all := map[string]Pod{}
	for p := range c.Pods {
		all[p.Key] = p
	}
	return all
}

func TestACopyMakesALedgerWithTheSameViewsAndDoesNotChange(t *testing.T) {
	resource := rapid.SampledFrom([]string{CPU, Memory, "gpu", "fpga"})
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger()
		change := func(step string) {
			for range rapid.IntRange(1, 12).Draw(t, step) {
				name := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node"))
				key := fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod"))
				amounts := Amounts(rapid.MapOf(resource, rapid.Int64Range(0, 9)).Draw(t, "amounts"))
				switch rapid.IntRange(0, 4).Draw(t, "event") {
				case 0:
					l.DeleteNode(name)
				case 1:
					l.DeletePod(key)
				case 2:
					l.SetNode(Node{Name: name, State: rapid.SampledFrom([]NodeState{Ready, NotReady, Cordoned}).Draw(t, "state"), Virtual: rapid.Bool().Draw(t, "virtual"), Allocatable: amounts})
				default:
					consumer := rapid.SampledFrom([]string{"", "rome", "oslo"}).Draw(t, "consumer")
					l.SetPod(Pod{Key: key, Node: name, Consumer: consumer, Creator: rapid.SampledFrom([]string{"", "slice"}).Draw(t, "creator"), Requests: amounts})
				}
			}
		}
		change("before")
		c := l.Copy()
		asked := []string{"fpga", "gpu"}
		want, pods := l.View([]Selection{{}}, asked...), podsByKey(c)
		got := c.Ledger().View([]Selection{{}}, asked...)
		// Uses share entries with earlier views, and rows may differ in zeros at their ends.
		compare := cmp.Options{
			cmp.Transformer("uses", func(u Uses) map[string]*Use { return maps.Collect(u.All) }),
			cmp.Transformer("row", func(r Row) string {
				for len(r) > 0 && r[len(r)-1] == 0 {
					r = r[:len(r)-1]
				}
				return fmt.Sprint([]int64(r))
			}),
		}
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Fatalf("views (-ledger +copy):\n%s", diff)
		}
		change("after")
		if diff := cmp.Diff(pods, podsByKey(c)); diff != "" {
			t.Fatalf("the copy changed with the ledger:\n%s", diff)
		}
	})
}

func TestPodsOfAConsumerAreInTheOrderOfNodesAndBounded(t *testing.T) {
	l := NewLedger()
	for _, p := range []Pod{pod("b", "n1", "rome", 1), pod("c", "n2", "rome", 1), pod("a", "n2", "rome", 1), pod("d", "n1", "oslo", 1), pod("e", "n1", "", 1)} {
		l.SetPod(p)
	}
	rome := l.PodsOf("rome")
	first, more := rome.FirstPods(2)
	if diff := cmp.Diff([]Pod{pod("b", "n1", "rome", 1), pod("a", "n2", "rome", 1)}, first); diff != "" || !more || rome.Len() != 3 {
		t.Errorf("of %d pods, with more %t: %s", rome.Len(), more, diff)
	}
	if first, more := l.PodsOf("rome").FirstPods(3); len(first) != 3 || more {
		t.Errorf("%d pods, more %t", len(first), more)
	}
	if first, more := l.PodsOf("nobody").FirstPods(3); len(first) != 0 || more {
		t.Errorf("nobody has %d pods, more %t", len(first), more)
	}
}

// fullLedger has 5,000 nodes and 50,000 pods, a tenth of them of 1,000 consumers.
func fullLedger() *Ledger {
	l := NewLedger()
	for i := range 5000 {
		l.SetNode(node(fmt.Sprintf("node-%04d", i)))
	}
	for i := range 50_000 {
		p := pod(fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i), fmt.Sprintf("node-%04d", i%5000), "", 100)
		if i%10 == 0 {
			p.Consumer = fmt.Sprintf("consumer-%04d", i/10%1000)
		}
		l.SetPod(p)
	}
	return l
}

// BenchmarkCopy measures copies of a ledger of 50,000 pods: for "one consumer" its lock is held all the
// time, for "everything" about half of it.
func BenchmarkCopy(b *testing.B) {
	l := fullLedger()
	b.Run("everything", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if l.Copy().Len() != 50_000 {
				b.Fatal("pods are missing")
			}
		}
	})
	b.Run("one consumer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if l.PodsOf("consumer-0001").Len() != 5 {
				b.Fatal("pods are missing")
			}
		}
	})
	b.Run("a new ledger", func(b *testing.B) {
		c := l.Copy()
		b.ReportAllocs()
		for b.Loop() {
			c.Ledger()
		}
	})
}
