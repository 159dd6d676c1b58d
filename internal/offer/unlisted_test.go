package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestNamesThatThePolicyLimitsAndDoesNotOfferAreReported(t *testing.T) {
	const wrong = "nvidia.com/gpus"
	one := capacity.Amounts{wrong: 1}
	whole := capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1, "nvidia.com/gpu": 1}
	override := func(fixed, ceiling capacity.Amounts) func(*Policy) {
		return func(p *Policy) { p.Overrides = []Override{{Consumers: ids("rome"), Fixed: fixed, Max: ceiling}} }
	}
	for _, tc := range []struct {
		name   string
		policy Policy
		want   []string
	}{
		{"none", ofNodes("p", func(p *Policy) { p.Max, p.Nodes.Reserve = capacity.Amounts{"cpu": 1}, capacity.Amounts{"memory": 1} }), nil},
		{"in reserve", ofNodes("p", func(p *Policy) { p.Nodes.Reserve = one }), []string{wrong}},
		{"in percentages", ofNodes("p", func(p *Policy) { p.Nodes.Percentages = one }), []string{wrong}},
		{"in max", ofNodes("p", func(p *Policy) { p.Max = one }), []string{wrong}},
		{"in shares", ofNodes("p", func(p *Policy) { p.MaxShares.Percentages = one }), []string{wrong}},
		{"in the shares of an override", ofNodes("p", func(p *Policy) {
			p.Overrides = []Override{{Consumers: ids("rome"), MaxShares: Shares{Percentages: one}}}
		}), []string{wrong}},
		{"in resources", ofNodes("p", func(p *Policy) { p.Resources = []string{"cpu", wrong} }), []string{wrong}},
		{"in the defaults of slices", ofNodes("p", func(p *Policy) { p.Slices.Defaults = one }), []string{wrong}},
		{"in the max of an override", ofNodes("p", override(nil, one)), []string{wrong}},
		{"in two fields", ofNodes("p", func(p *Policy) { p.Max, p.Nodes.Reserve = one, capacity.Amounts{"a.b/c": 1, wrong: 1} }), []string{"a.b/c", wrong}},
		{"in max, and fixed by an override", ofNodes("p", override(one, one)), nil},
		{"in reserve, and fixed by an override", ofNodes("p", override(one, nil), func(p *Policy) { p.Nodes.Reserve = one }), []string{wrong}},
		{"in the max of fixed amounts", fixed("p", whole, func(p *Policy) { p.Max = one }), []string{wrong}},
		{"a right name in the max of fixed amounts", fixed("p", whole, func(p *Policy) { p.Max = capacity.Amounts{"nvidia.com/gpu": 1} }), nil},
		{"without a usable node", ofNodes("p", selecting("nowhere"), func(p *Policy) { p.Nodes.Reserve = one }), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expect(t, "unlisted", newCluster("n1").evaluate(nil, consumers("rome"), tc.policy).Reports["p"].Unlisted, tc.want)
		})
	}
}

func TestANameIsReportedUntilANodeListsIt(t *testing.T) {
	p := ofNodes("p", func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"nvidia.com/gpu": 1} })
	c := newCluster("n1")
	r := c.evaluate(nil, consumers("rome"), p)
	expect(t, "at first", r.Reports["p"].Unlisted, []string{"nvidia.com/gpu"})
	c.node("n1", capacity.Amounts{"cpu": 10_000, "memory": 10, "pods": 10, "nvidia.com/gpu": 4})
	r = c.evaluate(r, consumers("rome"), p)
	expect(t, "when a node lists it", r.Reports["p"].Unlisted, []string(nil))
	c.node("n1", capacity.Amounts{"cpu": 10_000, "memory": 10, "pods": 10})
	r = c.evaluate(r, consumers("rome"), p)
	expect(t, "when no node lists it any longer", r.Reports["p"].Unlisted, []string{"nvidia.com/gpu"})
}
