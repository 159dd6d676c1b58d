package metasync

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// milan is what snapshots are made of: a node of 10 cpu of a policy gold, with prices.
type milan struct {
	ledger    *capacity.Ledger
	policies  []table.Policy
	consumers []offer.Consumer
	slices    []table.DecidedSlice
}

func newProvider() *milan {
	p := &milan{ledger: capacity.NewLedger()}
	p.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{"cpu": 10_000, "memory": 64 << 30}})
	p.addPolicy("gold", &offer.Nodes{Percent: 100})
	return p
}

func (p *milan) addPolicy(name string, nodes *offer.Nodes, edits ...func(*offer.Policy)) {
	parsed := &offer.Policy{
		Name: name, Class: name, Nodes: nodes,
		Catalog: offer.Catalog{Prices: map[string]string{"cpu": "0.021"}, Currency: "EUR", Period: "Hour"},
	}
	for _, edit := range edits {
		edit(parsed)
	}
	p.policies = append(p.policies, table.Policy{
		Name: name, UID: "uid-" + name, Generation: 3, Parsed: parsed, Object: &v1alpha1.ResourcePolicy{Spec: v1alpha1.ResourcePolicySpec{Class: name}},
	})
}

// ask adds a slice of 4 cpu and of what nobody offers.
func (p *milan) ask(consumer string, granted capacity.Amounts) {
	p.slices = append(p.slices, table.DecidedSlice{
		Namespace: "liqo-tenant-" + consumer, Name: "s", UID: "uid-" + consumer,
		Slice: grant.Slice{
			Key: "liqo-tenant-" + consumer + "/s", Consumer: consumer, Class: "gold", Request: capacity.Amounts{"cpu": 4000, "junk": 1},
			Granted: granted, GrantedBy: "gold", GrantedIn: "gold",
		},
	})
}

// decisions are those of one evaluation.
type decisions []table.DecidedSlice

func (decisions) Granted() map[string]map[string]capacity.Amounts             { return nil }
func (decisions) GrantedBy() map[string]map[string][]string                   { return nil }
func (decisions) Under(string) table.PolicyGrants                             { return table.PolicyGrants{} }
func (d decisions) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return d }
func (d decisions) All(yield func(table.DecidedSlice) bool) {
	for _, s := range d {
		if !yield(s) {
			return
		}
	}
}

func (p *milan) snapshot() *table.Snapshot {
	list := table.NewPolicyList(p.policies)
	in := offer.Input{Policies: list.Valid, Consumers: p.consumers, View: p.ledger.View(list.Selections, list.Resources...)}
	asked := make([]grant.Slice, len(p.slices))
	for i := range p.slices {
		asked[i] = p.slices[i].Slice
	}
	answers := grant.Allocate(offer.NewAllocationInput(in), asked)
	for i := range p.slices {
		p.slices[i].Answer = &answers[i]
	}
	counts := table.CountGrants(asked, answers, table.GrantedAndDecided)
	in.Grants, in.GrantedBy = counts.Granted(), counts.GrantedBy()
	return table.New().Publish(table.Snapshot{
		Result: offer.Evaluate(in), Input: in, Policies: list.All, Slices: decisions(p.slices), Time: time.Unix(1000, 0),
	})
}

var unexported = cmp.AllowUnexported(published{}, policyVersion{}, offerKey{}, offered{}, grantKey{}, granted{}, price{}, usage{}, poolKey{}, pool{})

func noPrice(grantKey) price { return price{} }

func TestWhatIsPublishedBecomesRows(t *testing.T) {
	p := newProvider()
	p.consumers = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "gold", "a": "b"}}}
	p.ledger.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{"cpu": 1000}})
	p.ask("rome", nil)
	s := p.snapshot()
	euro := priceOfBillionths(21_000_000, "EUR", "Hour")
	want := &published{
		consumers: map[string]string{"rome": `{"a":"b","tier":"gold"}`},
		policies:  map[string]policyVersion{"gold": {"uid-gold", 3}},
		offers: map[offerKey]offered{
			{"rome", "gold", "cpu"}: {"gold", 10_000}, {"rome", "gold", "memory"}: {"gold", 64 << 30},
		},
		grants: map[grantKey]granted{
			// What was asked for and nobody offers is not in the books.
			{"uid-rome", "cpu"}: {"liqo-tenant-rome", "s", "rome", "gold", "gold", true, askedFor(4000), 4000, "InFull", euro},
		},
		pools: map[poolKey]pool{
			{"gold", "cpu"}: {"gold", 10_000, 4000, 6000}, {"gold", "memory"}: {"gold", 64 << 30, 0, 64 << 30},
		},
	}
	got := publishedIn(s, noPrice)
	if diff := cmp.Diff(want, got, unexported, cmpopts.IgnoreFields(published{}, "specs", "terms")); diff != "" {
		t.Error(diff)
	}
	if spec := asJSON(got.specs["gold"]); spec != `{"class":"gold","offer":{}}` {
		t.Errorf("the spec is %s", spec)
	}
	if diff := cmp.Diff(map[offerKey]usage{{"rome", "gold", "cpu"}: {1000, 4000}, {"rome", "gold", "memory"}: {}}, usedIn(s), unexported); diff != "" {
		t.Error(diff)
	}
}

func TestAGrantBelowTheRequestHasItsReason(t *testing.T) {
	grants := func(edit func(*milan)) map[string]string {
		p := newProvider()
		p.consumers = []offer.Consumer{{ID: "oslo"}, {ID: "rome"}}
		edit(p)
		reasons := map[string]string{}
		for key, g := range publishedIn(p.snapshot(), noPrice).grants {
			reasons[key.uid+" "+key.resource] = g.reason
		}
		return reasons
	}
	for name, tc := range map[string]struct {
		edit func(*milan)
		want map[string]string
	}{
		"of the pool": {
			func(p *milan) {
				p.ask("oslo", capacity.Amounts{"cpu": 9000})
				p.slices[0].Request = capacity.Amounts{"cpu": 9000}
				p.ask("rome", nil)
			},
			map[string]string{"uid-oslo cpu": "InFull", "uid-rome cpu": "PoolExhausted"},
		},
		"of the maximum": {
			func(p *milan) { p.policies[0].Parsed.Max = capacity.Amounts{"cpu": 1000}; p.ask("rome", nil) },
			map[string]string{"uid-rome cpu": "MaxReached"},
		},
		"of a cordon": {
			func(p *milan) { p.ask("rome", nil); p.slices[0].Frozen = true },
			map[string]string{"uid-rome cpu": "Cordoned"},
		},
		"of an invalid request": {
			func(p *milan) { p.ask("rome", capacity.Amounts{"cpu": 1000}); p.slices[0].Invalid = true },
			map[string]string{"uid-rome cpu": "InvalidRequest"},
		},
	} {
		if diff := cmp.Diff(tc.want, grants(tc.edit)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Every bound of a grant has a word.
func TestEveryReasonHasAWord(t *testing.T) {
	seen := map[string]bool{}
	for bound := grant.Unbound; bound <= grant.ByCordon; bound++ {
		word := reasonOf(&grant.Answer{}, &grant.Line{Bound: bound})
		if word == "" || seen[word] {
			t.Errorf("bound %d is %q", bound, word)
		}
		seen[word] = true
	}
}

func TestAGrantKeepsItsPriceWhenItsPolicyIsGone(t *testing.T) {
	p := newProvider()
	p.consumers = []offer.Consumer{{ID: "rome"}}
	p.ask("rome", capacity.Amounts{"cpu": 4000})
	p.slices[0].Reclaim = offer.Retain
	agreed := priceOfBillionths(21_000_000, "EUR", "Hour")
	last := func(key grantKey) price {
		if key != (grantKey{"uid-rome", "cpu"}) {
			return price{}
		}
		return agreed
	}
	key := grantKey{"uid-rome", "cpu"}
	p.policies[0].Parsed.Catalog.Prices["cpu"] = "0.03"
	if got := publishedIn(p.snapshot(), last).grants[key].price; got != priceOfBillionths(30_000_000, "EUR", "Hour") {
		t.Errorf("with a new price it is %v", got)
	}
	p.policies[0].Parsed = nil
	got := publishedIn(p.snapshot(), last).grants[key]
	if got.price != agreed || got.granted == 0 || got.policy != "gold" {
		t.Errorf("under an invalid policy the grant is %+v, want what it held at %v", got, agreed)
	}
	p.policies = nil
	if got := publishedIn(p.snapshot(), last).grants[key]; got.price != agreed {
		t.Errorf("without the policy the grant is %+v, want what it held at %v", got, agreed)
	}
}

func TestPricesAreExact(t *testing.T) {
	for decimal, want := range map[string]int64{
		"0": 0, "1": 1e9, "0.021": 21_000_000, "0.000000001": 1, "999999999.999999999": 999_999_999_999_999_999, "12.5": 12_500_000_000,
		"007.5": 7_500_000_000, "00": 0,
	} {
		c := &offer.Catalog{Prices: map[string]string{"cpu": decimal}, Currency: "EUR", Period: "Hour"}
		if got, want := priceOf(c, "cpu"), priceOfBillionths(want, "EUR", "Hour"); got != want {
			t.Errorf("%s is %v, want %v", decimal, got, want)
		}
		if got := priceOf(c, "memory"); got != (price{}) || got.decimal.Valid {
			t.Errorf("no price is %v, want NULL", got)
		}
	}
}
