package offer

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestOutcomes(t *testing.T) {
	whole := capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1}
	cases := []struct {
		name     string
		policies []Policy
		want     Outcome
		missing  []string
	}{
		{"offering", []Policy{fixed("p", whole)}, Offering, nil},
		{"offering, though no consumer is known", []Policy{fixed("p", whole, scope(Scope{IDs: map[string]struct{}{}}))}, Offering, nil},
		{"dry run", []Policy{fixed("p", whole, dryRun)}, DryRun, nil},
		{"shadowed", []Policy{fixed("p", whole), fixed("q", whole, priority(1))}, Shadowed, nil},
		{"not shadowed in another class", []Policy{fixed("p", whole), fixed("q", whole, priority(1), class("gold"))}, Offering, nil},
		{"not shadowed by a dry run", []Policy{fixed("p", whole), fixed("q", whole, priority(1), dryRun)}, Offering, nil},
		{"shadowed for one of two", []Policy{fixed("p", whole), fixed("q", whole, priority(1), scope(ids("oslo")))}, Offering, nil},
		{"no node selected", []Policy{ofNodes("p", selecting("nowhere"))}, NoNodes, []string{"cpu", "memory", "pods"}},
		{"incomplete", []Policy{fixed("p", capacity.Amounts{"cpu": 1})}, Incomplete, []string{"memory", "pods"}},
		{"incomplete by its list of resources", []Policy{fixed("p", whole, func(p *Policy) { p.Resources = []string{"cpu", "pods"} })}, Incomplete, []string{"memory"}},
		{"a revoked resource does not complete it", []Policy{fixed("p", capacity.Amounts{"cpu": 1, "pods": 1}, func(p *Policy) { p.Known = []string{"memory"} })},
			Incomplete, []string{"memory"}},
		{"an amount of 0", []Policy{fixed("p", capacity.Amounts{"cpu": 1, "memory": 0, "pods": 1})}, Incomplete, []string{"memory"}},
		{"a ceiling of 0", []Policy{ofNodes("p", func(p *Policy) { p.Max = capacity.Amounts{"pods": 0} })}, Incomplete, []string{"pods"}},
		{"a reserve of the whole pool", []Policy{ofNodes("p", func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"cpu": 8000} })}, Exhausted, nil},
		{"a share of nothing", []Policy{ofNodes("p", func(p *Policy) {
			p.Nodes.Reserve, p.MaxShares.Percent = capacity.Amounts{"cpu": 8000}, 33
		})}, Exhausted, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := newCluster("n1").evaluate(nil, consumers("oslo", "rome"), tc.policies...).Reports["p"]
			expect(t, "outcome", r.Outcome, tc.want)
			expect(t, "missing", r.Missing, tc.missing)
			r = newCluster("n1").evaluate(nil, nil, tc.policies...).Reports["p"]
			if tc.want == Shadowed {
				tc.want = Offering // Without consumers no policy can shadow it.
			}
			expect(t, "outcome without consumers", r.Outcome, tc.want)
			expect(t, "missing without consumers", r.Missing, tc.missing)
		})
	}
}

func TestAPolicyWhoseNodesAreFullIsExhausted(t *testing.T) {
	c := newCluster("n1")
	p := ofNodes("p")
	c.pod("local", "n1", "", 8000)
	expect(t, "with local pods", c.evaluate(nil, consumers("oslo"), p).Reports["p"].Outcome, Exhausted)
	c.DeletePod("local")
	c.pod("r", "n1", "rome", 8000)
	r := c.evaluate(nil, consumers("oslo"), p).Reports["p"]
	expect(t, "outcome", r.Outcome, Exhausted)
	expect(t, "exhausted", r.Exhausted, []string{"cpu"})
	expect(t, "missing", r.Missing, []string(nil))
	r = c.evaluate(nil, nil, p).Reports["p"]
	expect(t, "for rome alone, which has all of it", r.Outcome, Offering)
	c.DeletePod("r")
	expect(t, "when it is free again", c.evaluate(nil, consumers("oslo"), p).Reports["p"].Outcome, Offering)
}

func TestAPolicySaysWhoIsLostToWhichPolicy(t *testing.T) {
	amounts := capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1}
	r := newCluster().evaluate(nil, consumers("a", "b", "c", "d", "e", "f", "g", "oslo"),
		fixed("p", amounts),
		fixed("most", amounts, priority(1), scope(ids("a", "b", "c", "d", "e", "f", "g"))),
		fixed("one", amounts, priority(2), scope(ids("g"))))
	expect(t, "losses of p", r.Reports["p"].Losses, []Loss{{"most", 6, []string{"a", "b", "c", "d", "e"}}, {"one", 1, []string{"g"}}})
	expect(t, "losses of most", r.Reports["most"].Losses, []Loss{{"one", 1, []string{"g"}}})
	expect(t, "losses of one", r.Reports["one"].Losses, []Loss(nil))
	expect(t, "number of consumers of p", r.Reports["p"].Count, 1)
}

func TestANameOfWhichNothingIsKnownIsReported(t *testing.T) {
	c := newCluster("n1")
	amounts := capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1}
	p := fixed("p", amounts, scope(ids("roma", "rome", "pods", "grants")), func(p *Policy) {
		p.Overrides = []Override{{Consumers: ids("romme", "rome"), Max: amounts}}
	})
	c.pod("x", "n1", "pods", 1)
	in := Input{Policies: []Policy{p}, Consumers: consumers("rome"), View: c.View(nil),
		Grants: map[string]map[string]capacity.Amounts{"": {"grants": {"cpu": 1}}}}
	r := Evaluate(in)
	expect(t, "unknown", r.Reports["p"].Unknown, []string{"roma", "romme"})
	in.Consumers = consumers("roma", "rome")
	r = Evaluate(in.After(r))
	expect(t, "when an object describes one of them", r.Reports["p"].Unknown, []string{"romme"})
}

func TestThoseHeldByReclaimAreReportedFirst(t *testing.T) {
	c := newCluster("n1")
	var all []Consumer
	for i := range MaxReported + 20 {
		all = append(all, Consumer{ID: fmt.Sprintf("c%03d", i)})
	}
	before := c.evaluate(nil, all, fixed("p", capacity.Amounts{"cpu": 2000}))
	c.pod("a", "n1", "c110", 2000)
	c.pod("b", "n1", "c050", 2000)
	r := c.evaluate(before, all, fixed("p", capacity.Amounts{"cpu": 1000}, version("2"))).Reports["p"]
	expect(t, "count", r.Count, MaxReported+20)
	expect(t, "listed", len(r.Consumers), MaxReported)
	var got []string
	for _, c := range r.Consumers[:3] {
		got = append(got, c.ID)
	}
	expect(t, "first", got, []string{"c050", "c110", "c000"})
}
