package catalog

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// world is a provider.
type world struct {
	ledger    *capacity.Ledger
	policies  []offer.Policy
	consumers []offer.Consumer
	slices    []grant.Slice
	tenants   []table.Tenant
}

// newWorld returns a provider with active tenants of these consumers, and one node of 10 cpu.
func newWorld(policies []offer.Policy, consumers ...string) *world {
	w := &world{ledger: capacity.NewLedger(), policies: policies}
	for _, id := range consumers {
		w.consumers = append(w.consumers, offer.Consumer{ID: id})
		w.tenants = append(w.tenants, table.Tenant{Consumer: id, Namespace: "liqo-tenant-" + id, Name: id})
	}
	w.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 10_000}})
	return w
}

func gold(edits ...func(*offer.Policy)) []offer.Policy {
	p := offer.Policy{Name: "gold", Class: "gold", Nodes: &offer.Nodes{Percent: 100}}
	for _, edit := range edits {
		edit(&p)
	}
	return []offer.Policy{p}
}

func cpu(cores int64) capacity.Amounts { return capacity.Amounts{capacity.CPU: cores * 1000} }

func (w *world) holds(consumer string, cores int64) *world {
	w.slices = append(w.slices, grant.Slice{
		Key: fmt.Sprint("ns/s", len(w.slices)), Consumer: consumer, Class: "gold", Created: int64(len(w.slices)), Request: cpu(cores),
		Granted: cpu(cores), GrantedBy: "gold", GrantedIn: "gold",
	})
	return w
}

// Tenants implements table.Peers.
func (w *world) Tenants() []table.Tenant { return w.tenants }

// StorageClasses implements table.Peers.
func (w *world) StorageClasses() []string { return []string{"fast", "slow"} }

// decisions are those of one evaluation.
type decisions struct {
	asked   []grant.Slice
	answers []grant.Answer
}

func (d decisions) Granted() map[string]map[string]capacity.Amounts {
	return table.CountGrants(d.asked, d.answers, table.GrantedAndDecided).Granted()
}
func (d decisions) GrantedBy() map[string]map[string][]string {
	return table.CountGrants(d.asked, d.answers, table.GrantedAndDecided).GrantedBy()
}
func (decisions) Under(string) table.PolicyGrants                             { return table.PolicyGrants{} }
func (d decisions) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return d }
func (d decisions) All(yield func(table.DecidedSlice) bool) {
	for i := range d.asked {
		if !yield(table.DecidedSlice{Slice: d.asked[i], Answer: &d.answers[i]}) {
			return
		}
	}
}

func (w *world) snapshot() *table.Snapshot {
	in := offer.Input{
		Policies: w.policies, Consumers: w.consumers, View: w.ledger.View(offer.Selections(w.policies), offer.ResourceNames(w.policies)...),
	}
	d := decisions{asked: w.slices, answers: grant.Allocate(offer.NewAllocationInput(in), w.slices)}
	in.Grants = d.Granted()
	var policies []table.Policy
	for i := range w.policies {
		policies = append(policies, table.Policy{Name: w.policies[i].Name, Parsed: &w.policies[i]})
	}
	return table.New().Publish(table.Snapshot{
		Result: offer.Evaluate(in), Input: in, Policies: policies, Slices: d, Peers: w, Time: time.Unix(1000, 0),
	})
}

func (w *world) catalog() *Catalog { return New(w.snapshot(), w.ledger.Shapes, nil) }

// shown is an entry as far as a consumer sees it.
type shown struct {
	Class                    string
	Available, Held, Ceiling capacity.Amounts
	Largest                  capacity.Amounts
	Storage                  []string
	Reason                   v1alpha1.CatalogReason
	Message                  string
}

func show(entries []Entry) []shown {
	var all []shown
	for i := range entries {
		e := &entries[i]
		s := shown{
			Class: e.Class, Held: e.Held, Largest: e.Shapes().Largest, Storage: e.StorageClasses, Reason: e.Reason(), Message: e.Message(),
			Available: capacity.Amounts{}, Ceiling: capacity.Amounts{},
		}
		for k := range e.Resources {
			r := &e.Resources[k]
			s.Available[r.Resource], s.Ceiling[r.Resource] = e.Available(r), r.Ceiling
		}
		all = append(all, s)
	}
	return all
}

func TestAnEntryShowsWhatIsAvailableHeldAndTheMost(t *testing.T) {
	c := newWorld(gold(func(p *offer.Policy) { p.Max = cpu(6) }), "oslo", "rome").holds("oslo", 5).holds("rome", 2).catalog()
	storage := []string{"fast", "slow"}
	for id, want := range map[string]shown{
		"rome": {
			"gold", cpu(3), cpu(2), cpu(6), nil, storage, v1alpha1.CatalogAvailable, "cpu 3: all that is left",
		},
		"oslo": {
			"gold", cpu(1), cpu(5), cpu(6), nil, storage, v1alpha1.CatalogAvailable, "cpu 1: a cluster has at most 6 of this class, and this one holds 5",
		},
		"lima": {
			"gold", cpu(3), nil, cpu(6), nil, storage, v1alpha1.CatalogNotPeered,
			"this cluster cannot ask before it has peered, with one Tenant; it could have cpu 3: all that is left",
		},
	} {
		if diff := cmp.Diff([]shown{want}, show(c.Of(id))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", id, diff)
		}
	}
}

func TestTheStateOfATenantDecidesWhatIsAvailable(t *testing.T) {
	for _, tc := range []struct {
		state  table.TenantState
		want   int64
		reason v1alpha1.CatalogReason
	}{
		{table.TenantActive, 8, v1alpha1.CatalogAvailable},
		{table.TenantCordoned, 0, v1alpha1.CatalogCordoned},
		{table.TenantDrained, 0, v1alpha1.CatalogDrained},
	} {
		w := newWorld(gold(), "rome").holds("rome", 2)
		w.tenants[0].State = tc.state
		c := w.catalog()
		got := show(c.Of("rome"))[0]
		if got.Reason != tc.reason || !maps.Equal(got.Available, cpu(tc.want)) {
			t.Errorf("%v: %+v", tc.state, got)
		}
		if in := show(c.In(w.tenants[0])); !cmp.Equal(in, []shown{got}) {
			t.Errorf("in its namespace: %+v", in)
		}
	}
	// Of two tenants each shows its own state, and the consumer has what the better one allows.
	w := newWorld(gold(), "rome")
	w.tenants = append(w.tenants, table.Tenant{Consumer: "rome", Namespace: "other", State: table.TenantDrained})
	c := w.catalog()
	reasons := []v1alpha1.CatalogReason{c.Of("rome")[0].Reason(), c.In(w.tenants[0])[0].Reason(), c.In(w.tenants[1])[0].Reason()}
	if want := []v1alpha1.CatalogReason{v1alpha1.CatalogAvailable, v1alpha1.CatalogAvailable, v1alpha1.CatalogDrained}; !slices.Equal(reasons, want) {
		t.Errorf("got %v", reasons)
	}
}

func TestOnlyClassesInForceThatAreNotHiddenAreShown(t *testing.T) {
	policy := func(name, class string, edit func(*offer.Policy)) offer.Policy {
		p := offer.Policy{Name: name, Class: class, Fixed: cpu(2)}
		edit(&p)
		return p
	}
	c := newWorld([]offer.Policy{
		policy("a", "gold", func(*offer.Policy) {}),
		policy("b", "hidden", func(p *offer.Policy) { p.Catalog.Hidden = true }),
		policy("c", "dry", func(p *offer.Policy) { p.DryRun = true }),
		policy("d", "", func(*offer.Policy) {}),
		policy("e", "oslo", func(p *offer.Policy) { p.Consumers = offer.Scope{IDs: map[string]struct{}{"oslo": {}}} }),
	}, "rome", "oslo").catalog()
	for id, want := range map[string][]string{"rome": {"gold"}, "oslo": {"gold", "oslo"}, "lima": {"gold"}} {
		var got []string
		for _, e := range c.Of(id) {
			got = append(got, e.Class)
			if nodes := e.Shapes(); nodes.List != nil || nodes.Largest != nil {
				t.Errorf("fixed amounts have shapes: %+v", nodes)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}

func TestAClassWithoutCPUMemoryOrPodsLeftIsExhausted(t *testing.T) {
	w := newWorld(gold(), "rome", "oslo").holds("oslo", 10)
	w.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 10_000, capacity.Memory: 1 << 30}})
	got := show(w.catalog().Of("rome"))[0]
	want := shown{
		"gold", capacity.Amounts{capacity.CPU: 0, capacity.Memory: 1 << 30}, nil, capacity.Amounts{capacity.CPU: 10_000, capacity.Memory: 1 << 30},
		nil, []string{"fast", "slow"}, v1alpha1.CatalogExhausted,
		"cpu 0: nothing is left; memory 1Gi: all that is left",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestShapesAreAtMostWhatAConsumerHoldsAndCouldHave(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) {
		p.Max, p.Resources = cpu(6), []string{capacity.CPU, capacity.Memory, capacity.Pods}
	}), "oslo", "rome")
	w.holds("oslo", 5).holds("rome", 2)
	for name, cores := range map[string]int64{"n": 10, "o": 4, "p": 4, "full": 99} {
		pods := int64(110)
		if name == "full" {
			pods = 0
		}
		w.ledger.SetNode(capacity.Node{Name: name, State: capacity.Ready, Allocatable: capacity.Amounts{
			capacity.CPU: cores * 1000, capacity.Memory: cores << 30, capacity.Pods: pods, "example.com/other": 1,
		}})
	}
	w.ledger.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: 100}})
	shape := func(nodes int, cores, gib int64) capacity.Shape {
		return capacity.Shape{Nodes: nodes, Free: capacity.Amounts{capacity.CPU: cores * 1000, capacity.Memory: gib << 30}}
	}
	c := w.catalog()
	for id, want := range map[string]capacity.Shapes{
		// Each holds or could have 6 cores of the 10 that n has.
		"rome": {
			Largest: capacity.Amounts{capacity.CPU: 6000, capacity.Memory: 10 << 30, capacity.Pods: 109},
			List:    []capacity.Shape{shape(1, 6, 10), shape(2, 4, 4)},
		},
		"oslo": {
			Largest: capacity.Amounts{capacity.CPU: 6000, capacity.Memory: 10 << 30, capacity.Pods: 109},
			List:    []capacity.Shape{shape(1, 6, 10), shape(2, 4, 4)},
		},
	} {
		if diff := cmp.Diff(want, c.Of(id)[0].Shapes()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", id, diff)
		}
	}
}

func TestAConsumerWithoutAnythingHasNoShapes(t *testing.T) {
	amounts := capacity.Amounts{capacity.CPU: 10_000, capacity.Memory: 10 << 30, capacity.Pods: 110}
	w := newWorld(gold(func(p *offer.Policy) { p.Paused = true }), "oslo", "rome")
	w.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: amounts})
	w.slices = append(w.slices, grant.Slice{
		Key: "ns/s", Consumer: "oslo", Class: "gold", Request: amounts, Granted: amounts, GrantedBy: "gold", GrantedIn: "gold",
	})
	c := w.catalog()
	if got := c.Of("rome")[0].Shapes(); got.List != nil || got.Largest != nil {
		t.Errorf("one that can have nothing: %+v", got)
	}
	want := capacity.Shapes{Largest: amounts, List: []capacity.Shape{{Nodes: 1, Free: capacity.Amounts{capacity.CPU: 10_000, capacity.Memory: 10 << 30}}}}
	if diff := cmp.Diff(want, c.Of("oslo")[0].Shapes()); diff != "" {
		t.Errorf("one that holds it: (-want +got)\n%s", diff)
	}
}

func TestNothingIsAvailableOfAClassThatIsPausedOrStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    func(*offer.Policy)
		reason  v1alpha1.CatalogReason
		message string
	}{
		"paused": {
			func(p *offer.Policy) { p.Paused = true }, v1alpha1.CatalogPaused,
			"the provider has paused this class for this cluster: ResourceSlices keep what they have, and nothing more is granted",
		},
		"paused for it": {
			func(p *offer.Policy) { p.PausedConsumers = map[string]int64{"rome": 0} }, v1alpha1.CatalogPaused,
			"the provider has paused this class for this cluster: ResourceSlices keep what they have, and nothing more is granted",
		},
		"paused for another": {
			func(p *offer.Policy) { p.PausedConsumers = map[string]int64{"oslo": 0} }, v1alpha1.CatalogAvailable, "cpu 8: all that is left",
		},
		"stopped": {
			func(p *offer.Policy) { p.Stopped = true }, v1alpha1.CatalogStopped,
			"the provider has stopped this class: nothing more is granted, and what ResourceSlices have may be taken back",
		},
	} {
		got := show(newWorld(gold(tc.edit), "rome").holds("rome", 2).catalog().Of("rome"))[0]
		available := tc.reason == v1alpha1.CatalogAvailable
		if got.Reason != tc.reason || got.Message != tc.message || (got.Available[capacity.CPU] > 0) != available {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

var anyConsumer = rapid.SampledFrom([]string{"rome", "oslo", "lima"})

// drawWorld draws a pool, its policies, and slices of which some wait.
func drawWorld(t *rapid.T) *world {
	policies := gold(func(p *offer.Policy) {
		p.Nodes.Percent = rapid.SampledFrom([]int64{50, 100, 150}).Draw(t, "percent")
		p.Slices.DenyExcess = rapid.Bool().Draw(t, "deny")
		if rapid.Bool().Draw(t, "limited") {
			p.Max = cpu(rapid.Int64Range(1, 10).Draw(t, "max"))
		}
	})
	w := newWorld(policies, "lima", "oslo", "rome")
	for range rapid.IntRange(0, 4).Draw(t, "slices") {
		w.holds(anyConsumer.Draw(t, "holder"), rapid.Int64Range(0, 4).Draw(t, "holds"))
		w.slices[len(w.slices)-1].Request = cpu(rapid.Int64Range(0, 6).Draw(t, "asks"))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
		w.ledger.SetPod(capacity.Pod{
			Key: fmt.Sprint(i), Node: "n", Consumer: rapid.OneOf(anyConsumer, rapid.Just("")).Draw(t, "of"), Requests: cpu(rapid.Int64Range(0, 3).Draw(t, "requests")),
		})
	}
	return w
}

func TestWhatIsAvailableIsGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		id := anyConsumer.Draw(t, "asker")
		got := show(w.catalog().Of(id))
		ask := func(amounts capacity.Amounts) *grant.Answer {
			next := *w
			next.slices = append(slices.Clip(w.slices), grant.Slice{Key: "ns/new", Consumer: id, Class: "gold", Created: 1000, Request: amounts})
			answers := next.snapshot().Slices.(decisions).answers
			return &answers[len(answers)-1]
		}
		if a := ask(got[0].Available); got[0].Available[capacity.CPU] > 0 && !a.Whole() {
			t.Fatalf("%v is available: %s", got[0].Available, a.Explain(""))
		}
		more := maps.Clone(got[0].Available)
		more[capacity.CPU]++
		if a := ask(more); a.Whole() && a.Verdict == grant.Accept {
			t.Fatalf("%v is available, and %v granted", got[0].Available, more)
		}
	})
}

// The slices of oslo and lima go to oslo, to lima, or to further consumers.
func TestNothingOfOtherConsumersShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(gold(), "lima", "oslo", "rome")
		for range rapid.IntRange(0, 5).Draw(t, "slices") {
			w.holds(anyConsumer.Draw(t, "holder"), rapid.Int64Range(1, 2).Draw(t, "holds"))
		}
		before := show(w.catalog().Of("rome"))
		for i := range w.slices {
			if s := &w.slices[i]; s.Consumer != "rome" {
				s.Consumer = rapid.SampledFrom([]string{"oslo", "lima", "bonn", "wien"}).Draw(t, "new holder")
			}
		}
		w.consumers, w.tenants = append(w.consumers, offer.Consumer{ID: "bonn"}), w.tenants[1:]
		if diff := cmp.Diff(before, show(w.catalog().Of("rome")), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAnEntryListsWhoStandsBehindIt(t *testing.T) {
	shows := gold(func(p *offer.Policy) {
		p.Nodes.Selection.Peers, p.Catalog.ShowProviders = &capacity.Peers{Depth: 1}, true
	})
	w := newWorld(shows, "oslo", "rome")
	for i, id := range []string{"paris", "oslo", "lima", "oslo"} {
		w.ledger.SetNode(capacity.Node{Name: fmt.Sprint(id, i), State: capacity.Ready, Virtual: true, Peer: id, Allocatable: cpu(1)})
	}
	providers := Providers{
		"oslo":  {{ClusterID: "oslo", Class: "gold", Title: "near"}, {ClusterID: "oslo", Class: "silver"}},
		"paris": {{ClusterID: "paris", Class: "gold"}},
		"milan": {{ClusterID: "milan", Class: "gold"}}, // It gives nothing to the pool.
	}
	listed := func(providers Providers, consumer string) (all []string) {
		c := New(w.snapshot(), w.ledger.Shapes, providers)
		for _, e := range c.Of(consumer) {
			for _, p := range StatusOf(consumer, &e, time.Unix(0, 0)).Providers {
				all = append(all, p.ClusterID+" "+p.Class)
			}
		}
		return all
	}
	for consumer, want := range map[string][]string{
		"rome": {"oslo gold", "oslo silver", "paris gold"}, "oslo": {"paris gold"}, "unknown": {"oslo gold", "oslo silver", "paris gold"},
	} {
		if diff := cmp.Diff(want, listed(providers, consumer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", consumer, diff)
		}
	}
	for i := range 100 {
		providers["paris"] = append(providers["paris"], v1alpha1.OfferProvider{ClusterID: "paris", Class: fmt.Sprint(i)})
	}
	if got := len(listed(providers, "rome")); got != v1alpha1.MaxOfferProviders {
		t.Errorf("%d are listed", got)
	}
	w.policies[0].Catalog.ShowProviders = false
	if got := listed(providers, "rome"); got != nil {
		t.Errorf("without showProviders: %v", got)
	}
}
