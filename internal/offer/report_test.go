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
		shadowed []string
	}{
		{"offering", []Policy{fixed("p", whole)}, Offering, nil, nil},
		{"offering though nobody is there", []Policy{fixed("p", whole, scope(Scope{IDs: map[string]struct{}{}}))}, Offering, nil, nil},
		{"dry run", []Policy{fixed("p", whole, dryRun)}, DryRun, nil, nil},
		{"shadowed", []Policy{fixed("p", whole), fixed("q", whole, priority(1))}, Shadowed, nil, []string{"q"}},
		{"not shadowed in another class", []Policy{fixed("p", whole), fixed("q", whole, priority(1), class("gold"))}, Offering, nil, nil},
		{"not shadowed by a dry run", []Policy{fixed("p", whole), fixed("q", whole, priority(1), dryRun)}, Offering, nil, nil},
		{"no such node", []Policy{ofNodes("p", selecting("nowhere"))}, NoNodes, []string{"cpu", "memory", "pods"}, nil},
		{"incomplete", []Policy{fixed("p", capacity.Amounts{"cpu": 1})}, Incomplete, []string{"memory", "pods"}, nil},
		{"incomplete by its list of resources", []Policy{fixed("p", whole, func(p *Policy) { p.Resources = []string{"cpu", "pods"} })}, Incomplete, []string{"memory"}, nil},
		{"a revoked resource does not complete it", []Policy{fixed("p", capacity.Amounts{"cpu": 1, "pods": 1}, func(p *Policy) { p.Known = []string{"memory"} })},
			Incomplete, []string{"memory"}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := newCluster().evaluate(nil, consumers("rome"), tc.policies...).Reports["p"]
			expect(t, "outcome", r.Outcome, tc.want)
			expect(t, "missing", r.Missing, tc.missing)
			expect(t, "shadowed by", r.ShadowedBy, tc.shadowed)
		})
	}
}

func TestADryRunShowsWhatItWouldOfferAndPublishesNothing(t *testing.T) {
	p := fixed("p", capacity.Amounts{"cpu": 7}, dryRun)
	higher := fixed("q", capacity.Amounts{"cpu": 9}, priority(1), scope(ids("oslo")))
	r := newCluster().evaluate(nil, consumers("oslo", "rome"), p, higher)
	expect(t, "rome reads", offered(r, "rome"), map[string]capacity.Amounts{})
	report := r.Reports["p"]
	expect(t, "would decide for", report.Count, 1)
	expect(t, "who", report.Consumers[0].ID, "rome")
	expect(t, "what", report.Consumers[0].Offer.Amounts, []Amount{{"cpu", 7}})
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
