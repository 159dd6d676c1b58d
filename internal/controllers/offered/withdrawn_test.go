package offered

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// history is a sequence of evaluations, each noted by a Record.
type history struct {
	record *Record
	ledger *capacity.Ledger
	in     offer.Input
	last   *offer.Result
	// awaiting finds the policies that are gone.
	awaiting offer.Awaiting
}

func newHistory() *history {
	h := &history{
		record: NewRecord(nil, nil, metav1.NamespaceDefault, logr.Discard()), ledger: capacity.NewLedger(),
		in: offer.Input{Now: time.Unix(1_000_000, 0)},
	}
	h.record.now = func() time.Time { return h.in.Now }
	h.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{"cpu": 100_000}})
	return h
}

// evaluate evaluates and notes the snapshot.
func (h *history) evaluate() {
	h.awaiting.Update(&h.in)
	h.in.View = h.ledger.View(offer.Selections(h.in.Policies), "cpu", "memory", "example.com/gpu")
	h.last = offer.Evaluate(h.in.After(h.last))
	s := &table.Snapshot{Result: h.last, Input: h.in}
	for i := range h.in.Policies {
		p := h.in.Policies[i]
		h.in.Policies[i].Known, _ = table.AddNames(p.Known, h.last.Reports[p.Name].Offered, 64)
		s.Policies = append(s.Policies, table.Policy{Name: p.Name, Parsed: &p, Offered: p.Known})
	}
	h.record.Note(s)
}

// statuses returns what the statuses of the policies record.
func (h *history) statuses() []offer.PreviousOffers {
	var all []offer.PreviousOffers
	for _, p := range h.in.Policies {
		past := offer.PreviousOffers{
			Policy: p.Name, Class: p.Class, Reclaim: p.Reclaim, Complete: true, Names: p.Known,
			Offers: map[string]capacity.Amounts{},
		}
		for id, entry := range h.last.Entries.All {
			for _, o := range entry.Offers {
				if o.Policy == p.Name {
					past.Offers[id] = o.ByResource()
				}
			}
		}
		all = append(all, past)
	}
	return all
}

// restart returns the first evaluation of a process that starts with what is recorded, and its record.
func (h *history) restart(t interface{ Fatal(...any) }) (*offer.Result, *Record) {
	wanted := h.record.wanted()
	recorded := content{withdrawn: withdrawals{}}
	wanted.change(&recorded)
	object := &corev1.ConfigMap{}
	recorded.encode(object)
	next := NewRecord(nil, nil, metav1.NamespaceDefault, logr.Discard())
	next.now = h.record.now
	names, err := parse[map[string][]string](object.Data[dataKey])
	if err != nil {
		t.Fatal(err)
	}
	next.read.names = boundNames(names)
	if next.read.withdrawn, err = parse[withdrawals](object.Data[withdrawnKey]); err != nil {
		t.Fatal(err)
	}
	in := h.in.After(nil)
	in.Recorded = next.Previous(h.statuses(), nil)
	return offer.Evaluate(in), next
}

// reads returns the amounts that a consumer reads, by class.
func reads(r *offer.Result, id string) map[string]capacity.Amounts {
	all := map[string]capacity.Amounts{}
	for _, o := range r.Of(id).Offers {
		all[o.Class] = o.ByResource()
	}
	return all
}

func TestARestartOffersTheSame(t *testing.T) {
	ids := []string{"lima", "oslo", "rome"}
	anyID := rapid.SampledFrom(ids)
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		for range rapid.IntRange(1, 8).Draw(t, "events") {
			name := fmt.Sprint("p", rapid.IntRange(0, 2).Draw(t, "policy"))
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0, 1:
				p := offer.Policy{
					Name: name, Version: fmt.Sprint(h.in.Now.Unix()), Class: rapid.SampledFrom([]string{"", "gold", "silver"}).Draw(t, "class"),
					Fixed:   capacity.Amounts{"cpu": rapid.Int64Range(0, 9).Draw(t, "cpu"), "memory": 1},
					Reclaim: rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict}).Draw(t, "reclaim"),
				}
				if rapid.Bool().Draw(t, "devices") {
					p.Fixed["example.com/gpu"] = 1
				}
				if rapid.Bool().Draw(t, "named") {
					p.Consumers.IDs = map[string]struct{}{anyID.Draw(t, "id"): {}}
				}
				if i := slices.IndexFunc(h.in.Policies, func(p offer.Policy) bool { return p.Name == name }); i >= 0 {
					p.Known = h.in.Policies[i].Known
				}
				h.in.Policies = append(without(h.in.Policies, name), p)
			case 2:
				h.in.Policies = without(h.in.Policies, name)
			case 3:
				h.in.Consumers = nil
				for _, id := range rapid.SliceOfDistinct(anyID, rapid.ID).Draw(t, "consumers") {
					h.in.Consumers = append(h.in.Consumers, offer.Consumer{ID: id})
				}
			case 4:
				id := anyID.Draw(t, "user")
				h.ledger.SetPod(capacity.Pod{Key: id, Node: "n", Consumer: id, Requests: capacity.Amounts{"cpu": rapid.Int64Range(0, 9).Draw(t, "requests")}})
			case 5:
				h.ledger.DeletePod(anyID.Draw(t, "ended"))
			case 6:
				if h.last != nil {
					h.last, h.record = h.restart(t)
				}
			}
			h.in.Now = h.in.Now.Add(time.Second)
			h.evaluate()
		}
		h.in.Now = h.in.Now.Add(offer.InheritedFor)
		h.evaluate()
		restarted, _ := h.restart(t)
		for _, id := range append(ids, "anybody") {
			if diff := cmp.Diff(reads(h.last, id), reads(restarted, id)); diff != "" {
				t.Fatalf("%s (-before +after the restart):\n%s", id, diff)
			}
		}
	})
}

func without(policies []offer.Policy, name string) []offer.Policy {
	return slices.DeleteFunc(slices.Clone(policies), func(p offer.Policy) bool { return p.Name == name })
}

func TestAClassStaysOnRecordWhileItsPolicyIsAwaited(t *testing.T) {
	h := newHistory()
	h.in.Grace, h.in.Consumers = offer.ReplaceGrace, []offer.Consumer{{ID: "rome"}}
	h.in.Policies = []offer.Policy{{Name: "p", Class: "gold", Fixed: capacity.Amounts{"cpu": 4000}}}
	h.evaluate()
	h.in.Policies = nil
	for range 2 {
		h.evaluate()
		w := h.record.wanted()
		want := withdrawals{"gold": {
			Since: h.in.Now.Unix(), Anyone: true, Names: []string{"cpu"}, Held: map[string]capacity.Amounts{"rome": {"cpu": 4000}},
		}}
		if diff := cmp.Diff(want, w.withdrawn, cmpopts.EquateEmpty()) + cmp.Diff([]string{"cpu"}, w.names.byClass["gold"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	h.in.Now = h.in.Now.Add(offer.ReplaceGrace)
	h.evaluate()
	if w := h.record.wanted(); !slices.Equal(w.withdrawn["gold"].Zeros, []string{"rome"}) || len(w.names.byClass["gold"]) != 1 {
		t.Errorf("after the grace: %v, %v", w.withdrawn, w.names.byClass)
	}
}

func TestAClassLeavesTheRecordWhenNothingIsOwedAnyLonger(t *testing.T) {
	h := newHistory()
	h.in.Consumers = []offer.Consumer{{ID: "rome"}}
	h.in.Policies = []offer.Policy{{Name: "gold", Class: "gold", Fixed: capacity.Amounts{"cpu": 1}}}
	recorded := content{withdrawn: withdrawals{}}
	classes := func() []string {
		h.evaluate()
		wanted := h.record.wanted()
		wanted.change(&recorded)
		return slices.Sorted(maps.Keys(recorded.names.byClass))
	}
	requireClasses := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, classes()); diff != "" {
			t.Errorf("recorded classes (-want +got):\n%s", diff)
		}
	}
	requireClasses("gold")
	h.in.Policies = nil
	requireClasses("gold")
	wanted := h.record.wanted()
	result, err := (&reconciler{Record: h.record, text: wanted.text()}).Reconcile(t.Context(), reconcile.Request{})
	if test.Must(t, err); result.RequeueAfter != day {
		t.Errorf("the next look at the record is after %v, want a day", result.RequeueAfter)
	}
	want := withdrawals{"gold": {Since: h.in.Now.Unix(), Anyone: true, Names: []string{"cpu"}, Zeros: []string{"rome"}}}
	if diff := cmp.Diff(want, recorded.withdrawn, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.in.Now = h.in.Now.Add(offer.OwedFor - time.Second)
	requireClasses("gold")
	h.in.Now = h.in.Now.Add(time.Second)
	requireClasses()
	if len(recorded.withdrawn) > 0 {
		t.Errorf("%v is left", recorded.withdrawn)
	}

	// A class in which nobody was offered anything.
	h.in.Policies = []offer.Policy{{Name: "zinc", Class: "zinc", Fixed: capacity.Amounts{"cpu": 1}, Consumers: offer.Scope{Selector: nobody{}}}}
	requireClasses("zinc")
	h.in.Policies = nil
	requireClasses("zinc")
	if diff := cmp.Diff(withdrawals{"zinc": {Since: h.in.Now.Unix()}}, recorded.withdrawn); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.in.Now = h.in.Now.Add(offer.OwedFor)
	requireClasses()
}

func TestARestartDoesNotProlongWhatIsOwed(t *testing.T) {
	const gpu = "example.com/gpu"
	base := map[string]capacity.Amounts{"base": {"cpu": 1}}
	for class, want := range map[string]map[string]capacity.Amounts{
		"gold": {"base": {"cpu": 1}, "gold": {"cpu": 0, gpu: 0}}, "base": {"base": {"cpu": 1, gpu: 0}},
	} {
		h := newHistory()
		h.in.Consumers = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "gold"}}}
		h.in.Policies = []offer.Policy{{Name: "base", Class: "base", Fixed: capacity.Amounts{"cpu": 1}}, {
			Name: "gold", Class: class, Priority: 1, Fixed: capacity.Amounts{"cpu": 1, gpu: 1},
			Consumers: offer.Scope{Selector: labelled{}},
		}}
		h.evaluate()
		h.in.Consumers = nil
		h.evaluate()
		h.in.Now = h.in.Now.Add(offer.OwedFor - time.Second)
		h.last, h.record = h.restart(t)
		if diff := cmp.Diff(want, reads(h.last, "rome")); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		h.in.Now = h.in.Now.Add(time.Second)
		h.evaluate()
		if diff := cmp.Diff(base, reads(h.last, "rome")); diff != "" {
			t.Errorf("a week after it has left (-want +got):\n%s", diff)
		}
	}
}

// labelled selects consumers with a tier.
type labelled struct{ nobody }

func (labelled) Matches(labels map[string]string) bool { return labels["tier"] != "" }
func (labelled) Keys() []string                        { return []string{"tier"} }

// nobody selects no consumer.
type nobody struct{}

func (nobody) Matches(map[string]string) bool { return false }
func (nobody) Keys() []string                 { return nil }
func (nobody) String() string                 { return "nobody" }

func TestWithdrawalsHaveBounds(t *testing.T) {
	h := newHistory()
	for i := range maxListed + 1 {
		h.in.Consumers = append(h.in.Consumers, offer.Consumer{ID: fmt.Sprintf("consumer-%05d", i)})
	}
	h.in.Policies = []offer.Policy{{Name: "gold", Class: "gold", Fixed: capacity.Amounts{"cpu": 1}}}
	h.evaluate()
	h.in.Policies = nil
	h.evaluate()
	wanted := h.record.wanted()
	if w := wanted.withdrawn["gold"]; !w.Everyone || len(w.Zeros) > 0 {
		t.Errorf("%d consumers are listed, everyone: %t", len(w.Zeros), w.Everyone)
	}
	many := withdrawals{}
	for i := range maxClasses {
		of := withdrawal{Held: map[string]capacity.Amounts{}}
		for k := range maxListed {
			of.Zeros = append(of.Zeros, fmt.Sprintf("consumer-%05d", k))
		}
		of.Held[strings.Repeat("x", 253)] = capacity.Amounts{"cpu": int64(i)}
		many[fmt.Sprint("class-", i)] = of
	}
	text := many.encode()
	if len(text) > maxWithdrawnBytes {
		t.Fatalf("%d bytes", len(text))
	}
	shorter, err := parse[withdrawals](text)
	if err != nil || len(shorter) != maxClasses || !shorter["class-0"].Everyone || shorter["class-0"].Held == nil {
		t.Errorf("%d classes, %v", len(shorter), err)
	}
}
