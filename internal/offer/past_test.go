package offer

import (
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// startedWith returns the first evaluation of a process that has these records.
func (c cluster) startedWith(past []PreviousOffers, policies ...Policy) *Result {
	return Evaluate(Input{Policies: policies, View: c.View(Selections(policies), ResourceNames(policies)...), Recorded: past})
}

// remembered returns a record of one offer to rome in the unnamed class.
func remembered(policy string, amounts capacity.Amounts, with ...func(*PreviousOffers)) []PreviousOffers {
	p := PreviousOffers{Policy: policy, Offers: map[string]capacity.Amounts{"rome": amounts}, Complete: true}
	for _, f := range with {
		f(&p)
	}
	return []PreviousOffers{p}
}

func TestAProcessThatStartsKnowsWhatWasOffered(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 6000)
	two := fixed("p", capacity.Amounts{"cpu": 2000, "memory": 1})
	cases := []struct {
		name string
		past []PreviousOffers
		want capacity.Amounts
	}{
		{"the part that pods request stays", remembered("p", capacity.Amounts{"cpu": 8000, "memory": 1}), capacity.Amounts{"cpu": 6000, "memory": 1}},
		{"a start does not raise what was offered", remembered("p", capacity.Amounts{"cpu": 3000, "memory": 1}), capacity.Amounts{"cpu": 3000, "memory": 1}},
		{"a resource that is no longer offered is an explicit 0", remembered("p", capacity.Amounts{"gpu": 1}), capacity.Amounts{"cpu": 2000, "memory": 1, "gpu": 0}},
		{"of two records the larger amount counts", append(remembered("p", capacity.Amounts{"cpu": 3000}), remembered("q", capacity.Amounts{"cpu": 5000, "gpu": 1})...), capacity.Amounts{"cpu": 5000, "memory": 1, "gpu": 0}},
		{"a consumer missing from a complete record was offered nothing by it", []PreviousOffers{{Policy: "p", Complete: true}, remembered("q", capacity.Amounts{"cpu": 1}, func(p *PreviousOffers) { p.Class = "gold" })[0]},
			capacity.Amounts{"cpu": 2000, "memory": 1}},
		{"a consumer with pods that is in no record was offered what they request", []PreviousOffers{{Policy: "p", Complete: true}}, capacity.Amounts{"cpu": 6000, "memory": 1}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			expect(t, "rome", offered(c.startedWith(tc.past, two), "rome")[""], tc.want)
		})
	}
}

// unlisted returns the record of a policy that offered these resources, without any consumer.
func unlisted(policy, class string, names ...string) PreviousOffers {
	return PreviousOffers{Policy: policy, Class: class, Names: names}
}

func TestWhoIsNotListedInAPastHasBeenOfferedAllItsNames(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "lima", 6000)
	one := fixed("p", capacity.Amounts{"cpu": 1000, "memory": 1})
	silver := fixed("p", capacity.Amounts{"cpu": 1000, "memory": 1}, class("silver"))
	byClass := func(amounts ...capacity.Amounts) map[string]capacity.Amounts {
		return map[string]capacity.Amounts{"": amounts[0], "silver": amounts[1]}
	}
	zeros, now := capacity.Amounts{"cpu": 0, "gpu": 0, "memory": 0}, capacity.Amounts{"cpu": 1000, "memory": 1}
	all := unlisted("p", "", "cpu", "gpu", "memory")
	listing := all
	listing.Offers = map[string]capacity.Amounts{"rome": {"cpu": 8000, "memory": 1}, "bergen": {}}
	cases := []struct {
		name     string
		past     []PreviousOffers
		policies []Policy
		who      string
		want     map[string]capacity.Amounts
	}{
		{"a resource is gone, for a known consumer", []PreviousOffers{all}, []Policy{one}, "oslo", map[string]capacity.Amounts{"": {"cpu": 1000, "memory": 1, "gpu": 0}}},
		{"a resource is gone, for an unknown consumer", []PreviousOffers{all}, []Policy{one}, "unknown", map[string]capacity.Amounts{"": {"cpu": 1000, "memory": 1, "gpu": 0}}},
		{"the class is gone, for a known consumer", []PreviousOffers{all}, []Policy{silver}, "oslo", byClass(zeros, now)},
		{"the class is gone, for an unknown consumer", []PreviousOffers{all}, []Policy{silver}, "unknown", byClass(zeros, now)},
		{"the policy is gone", []PreviousOffers{all}, nil, "oslo", map[string]capacity.Amounts{"": zeros}},
		{"a listed consumer was offered what is listed", []PreviousOffers{listing}, nil, "rome", map[string]capacity.Amounts{"": {"cpu": 0, "memory": 0}}},
		{"a consumer listed with nothing was offered nothing", []PreviousOffers{listing}, nil, "bergen", map[string]capacity.Amounts{}},
		{"a consumer listed by another policy may have offers of both", []PreviousOffers{all, remembered("q", capacity.Amounts{"zinc": 1})[0]}, nil, "rome",
			map[string]capacity.Amounts{"": {"cpu": 0, "gpu": 0, "memory": 0, "zinc": 0}}},
		{"two policies without listed consumers", []PreviousOffers{all, unlisted("q", "", "zinc")}, nil, "unknown",
			map[string]capacity.Amounts{"": {"cpu": 0, "gpu": 0, "memory": 0, "zinc": 0}}},
		{"what pods request stays, because the offered amounts are not known", []PreviousOffers{all}, []Policy{one}, "lima",
			map[string]capacity.Amounts{"": {"cpu": 6000, "memory": 1, "gpu": 0}}},
		{"what pods request stays if the policy is gone", []PreviousOffers{all}, nil, "lima", map[string]capacity.Amounts{"": {"cpu": 6000, "memory": 1, "gpu": 0}}},
		{"with several classes, one unit stays, so that no pod is evicted", []PreviousOffers{all, unlisted("q", "silver", "cpu")}, nil, "lima",
			byClass(capacity.Amounts{"cpu": 1, "memory": 1, "gpu": 0}, capacity.Amounts{"cpu": 1})},
		{"the class that the policy moved to is not raised", []PreviousOffers{all}, []Policy{silver}, "lima",
			byClass(capacity.Amounts{"cpu": 1, "memory": 1, "gpu": 0}, now)},
		{"Evict takes back everything", []PreviousOffers{{Policy: "p", Names: all.Names, Reclaim: Evict}}, nil, "lima", map[string]capacity.Amounts{"": zeros}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			known := consumers("bergen", "lima", "oslo", "rome")
			in := Input{Policies: tc.policies, Consumers: known, View: c.View(Selections(tc.policies), ResourceNames(tc.policies)...), Recorded: tc.past}
			first := Evaluate(in)
			expect(t, tc.who, offered(first, tc.who), tc.want)
			expect(t, tc.who+" in the next evaluation", offered(Evaluate(in.After(first)), tc.who), tc.want)
		})
	}
}

func TestAStartEvictsNobodyInSeveralClasses(t *testing.T) {
	c := newCluster("n1", "n2")
	c.pod("a", "n1", "rome", 6000)
	policies := []Policy{ofNodes("p", class("gold"), selecting("n1")), ofNodes("q", class("silver"), selecting("n2"))}
	running := c.evaluate(nil, nil, policies...)
	c.cordon("n1")
	running = c.evaluate(running, nil, policies...)
	expect(t, "held while it runs", offered(running, "rome")["gold"]["cpu"], int64(6000))
	expect(t, "started again with its past", offered(c.startedWith(pastOf(running), policies...), "rome")["gold"]["cpu"], int64(6000))
	// Without a record, the class of the pods is not known. No class is raised, and one unit of
	// each keeps the nodes on.
	policies[0].Known = []string{"cpu", "gpu"}
	expect(t, "without", offered(c.startedWith(nil, policies...), "rome")["gold"], capacity.Amounts{"cpu": 1, "gpu": 0})
}

func TestAPolicyThatDoesNotDecideAnyMoreAtTheStartIsWithdrawnByZeros(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "lima", 2000)
	past := []PreviousOffers{{Policy: "p", Class: "gold", Complete: true, Offers: map[string]capacity.Amounts{
		"rome": {"cpu": 8000, "memory": 1}, "lima": {"cpu": 8000, "memory": 1},
	}}}
	r := c.startedWith(past, fixed("p", capacity.Amounts{"cpu": 1000, "memory": 1}, class("silver")))
	expect(t, "rome", offered(r, "rome"), map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0}, "silver": {"cpu": 1000, "memory": 1}})
	expect(t, "lima, whose pods run", offered(r, "lima")["gold"], capacity.Amounts{"cpu": 2000, "memory": 1})
}

func TestWhoIsNotKnownAnyMoreIsTold0(t *testing.T) {
	c := newCluster()
	amounts := capacity.Amounts{"cpu": 8000, "memory": 1, "pods": 10}
	zeros := map[string]capacity.Amounts{"": {"cpu": 0, "memory": 0, "pods": 0}}
	r := c.evaluate(nil, nil, fixed("p", amounts, scope(ids("rome", "oslo"))))
	r = c.evaluate(r, nil, fixed("p", amounts, scope(ids("oslo")), version("2")))
	expect(t, "dropped from the policy", offered(r, "rome"), zeros)
	r = c.evaluate(r, nil)
	expect(t, "the policy deleted", offered(r, "oslo"), zeros)
	again := c.evaluate(r, nil)
	expect(t, "in the next evaluation", offered(again, "rome"), zeros)
	expect(t, "the same entries", again.Of("rome") == r.Of("rome"), true)
	expect(t, "known", again.Entries.Len(), 0)
	expect(t, "number of reports", len(again.Reports), 0)

	r = c.evaluate(nil, consumers("rome"), fixed("p", amounts))
	r = c.evaluate(r, nil, fixed("p", amounts))
	expect(t, "consumers with the default offer that are remembered", r.Readable().Len(), 0)
}

func TestWhoReadsTheDefaultOfferReadsZerosOnceItsPolicyIsGone(t *testing.T) {
	c := newCluster()
	p := fixed("p", capacity.Amounts{"cpu": 8000, "memory": 1, "gpu": 1}, class("gold"))
	q := fixed("q", capacity.Amounts{"cpu": 1000, "memory": 1})
	unnamed := capacity.Amounts{"cpu": 1000, "memory": 1}
	r := c.evaluate(nil, nil, p, q)
	fewer := fixed("p", capacity.Amounts{"cpu": 4000, "memory": 1}, class("gold"), version("2"))
	r = c.evaluate(r, nil, fewer, q)
	expect(t, "a resource dropped", offered(r, "unknown"), map[string]capacity.Amounts{"": unnamed, "gold": {"cpu": 4000, "memory": 1, "gpu": 0}})
	r = c.evaluate(r, nil, fixed("p", capacity.Amounts{"cpu": 4000, "memory": 1}, class("gold"), scope(ids("rome")), version("3")), q)
	zeros := map[string]capacity.Amounts{"": unnamed, "gold": {"cpu": 0, "memory": 0, "gpu": 0}}
	expect(t, "the policy now has other consumers", offered(r, "unknown"), zeros)
	r = c.evaluate(r, nil, q)
	expect(t, "the policy deleted", offered(r, "unknown"), zeros)
	again := c.evaluate(r, nil, q)
	expect(t, "the next evaluation keeps the entry", again.Default == r.Default, true)

	in := c.input(consumers("bergen"), q)
	in.Now = in.Now.Add(InheritedFor - time.Second)
	expect(t, "a consumer that becomes known a moment later may have read it", offered(Evaluate(in.After(r)), "bergen"), zeros)
	in.Now = in.Now.Add(time.Second)
	expect(t, "a consumer that becomes known later has no offer in the class", offered(Evaluate(in.After(r)), "bergen"), map[string]capacity.Amounts{"": unnamed})
	atOnce := c.evaluate(c.evaluate(nil, nil, p, q), consumers("bergen"), q)
	expect(t, "a consumer that becomes known as the policy goes may have read it", offered(atOnce, "bergen"), zeros)
	back := c.evaluate(r, nil, fewer, q)
	expect(t, "the class offered again", offered(back, "unknown")["gold"], capacity.Amounts{"cpu": 4000, "memory": 1, "gpu": 0})
}

func TestNoMoreAreRememberedThanMaxDeparted(t *testing.T) {
	c := newCluster()
	var names []string
	for i := range MaxDeparted + 100 {
		names = append(names, fmt.Sprintf("consumer-%05d", i))
	}
	r := c.evaluate(nil, consumers(names...), fixed("p", capacity.Amounts{"cpu": 1}, scope(ids(names...))))
	r = c.evaluate(r, nil)
	expect(t, "remembered", r.Readable().Len(), MaxDeparted)
	r = c.evaluate(r, consumers("rome"))
	expect(t, "remembered, with one known consumer", r.Readable().Len(), MaxDeparted+1)
}

func TestAPolicyThatEvictsByWithdrawingSaysSo(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 6000)
	amounts := capacity.Amounts{"cpu": 8000, "memory": 1}
	r := c.evaluate(nil, nil, fixed("p", amounts, reclaim(Evict)))
	for range 2 {
		r = c.evaluate(r, nil, fixed("p", amounts, reclaim(Evict), scope(ids("oslo")), version("2")))
		expect(t, "evicted", r.Reports["p"].Withdrawn, []string{"rome"})
	}
	r = c.evaluate(r, nil, fixed("p", amounts, reclaim(Evict), dryRun, version("3")))
	expect(t, "evicted by a policy that became a dry run", r.Reports["p"].Withdrawn, []string{"rome"})
	expect(t, "evicted by the trial", r.Reports["p"].Zeroed, []string(nil))
	c.DeletePod("a")
	r = c.evaluate(r, nil, fixed("p", amounts, reclaim(Evict), scope(ids("oslo")), version("2")))
	expect(t, "evicted, without pods", r.Reports["p"].Withdrawn, []string(nil))
}

func TestPodsWithoutAnOfferHadOneOfSomebody(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 6000)
	// Before, another plugin answered Liqo. The first policy is created while the operator runs.
	r := c.evaluate(nil, nil)
	r = c.evaluate(r, nil, fixed("p", capacity.Amounts{"cpu": 0, "memory": 1}))
	expect(t, "rome", cpu(r, "rome"), int64(6000))
	c.DeletePod("a")
	r = c.evaluate(r, nil, fixed("p", capacity.Amounts{"cpu": 0, "memory": 1}))
	expect(t, "rome, without pods", cpu(r, "rome"), int64(0))
}

func TestWhoHasLeftIsInNoReport(t *testing.T) {
	p := fixed("p", capacity.Amounts{"cpu": 1, "memory": 1}, func(p *Policy) {
		p.Overrides = []Override{{Consumers: ids("rome"), Fixed: capacity.Amounts{"pods": 5}}}
	})
	gold := fixed("q", capacity.Amounts{"gpu": 1}, class("gold"), scope(Scope{Selector: inZone("a")}))
	c := newCluster()
	oslo := Consumer{ID: "oslo", Labels: map[string]string{"zone": "a"}}
	r := c.evaluate(nil, append(consumers("rome"), oslo), p, gold)
	expect(t, "with oslo", r.Reports["p"].Missing, []string{"pods"})
	r = c.evaluate(r, consumers("rome"), p, gold)
	expect(t, "offer to oslo", offered(r, "oslo")["gold"], capacity.Amounts{"gpu": 0})
	expect(t, "without oslo", r.Reports["p"].Outcome, Offering)
}

func TestAnOfferThatIsWithdrawnAndHeldReadsAnew(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 2000)
	silver := fixed("s", capacity.Amounts{"cpu": 1000}, class("silver"))
	before := c.evaluate(nil, nil, fixed("g", capacity.Amounts{"cpu": 2000}, class("gold")), silver)
	after := c.evaluate(before, nil, silver)
	expect(t, "amounts", offered(after, "rome"), offered(before, "rome"))
	// A client of the flat form got no answer with two classes, and now gets that of silver.
	expect(t, "reads the same", after.Entries.Of("rome").SameAmounts(before.Entries.Of("rome")), false)
}
