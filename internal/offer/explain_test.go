package offer

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

// because returns the explanations of the amounts in a consumer's only offer.
func because(t *testing.T, r *Result, id string) []string {
	t.Helper()
	explained := r.Explainer().Of(id)
	if len(explained) != 1 {
		t.Fatalf("%s has %d offers, want 1", id, len(explained))
	}
	return explained[0].Because()
}

func TestEveryNumberIsExplained(t *testing.T) {
	c := newCluster()
	c.node("n1", capacity.Amounts{"cpu": 14000, "memory": 32 * gi, "pods": 110, "nvidia.com/gpu": 4})
	c.pod("r", "n1", "rome", 3000)
	c.pod("o", "n1", "oslo", 1000)
	p := ofNodes("p", percent(50), func(p *Policy) {
		p.Nodes.Reserve = capacity.Amounts{"memory": 16 * gi}
		p.Max = capacity.Amounts{"pods": 20}
		p.Known = []string{"example.com/fpga"}
		p.Overrides = []Override{
			{Consumers: ids("rome"), Fixed: capacity.Amounts{"nvidia.com/gpu": 2}},
			{Consumers: ids("bern"), MaxShares: Shares{Percent: 20}},
		}
	})
	r := c.evaluate(nil, nil, p)
	expect(t, "rome", because(t, r, "rome"), []string{
		"cpu 6: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3",
		"example.com/fpga 0: not offered any more: no usable node of policy p lists it",
		"memory 8Gi: 50% of (32Gi - 16Gi reserved) is a pool of 8Gi, 0 committed, 8Gi remaining; it has 0",
		"nvidia.com/gpu 2: fixed at 2 by the override",
		"pods 20: 50% of 110 is a pool of 55, 2 committed, 53 remaining; it has 1; at most 20",
	})
	expect(t, "used", r.Explainer().Of("rome")[0].Used, capacity.Amounts{"cpu": 3000, "memory": 0, "pods": 1, "nvidia.com/gpu": 0, "example.com/fpga": 0})
	expect(t, "a share", because(t, c.evaluate(nil, consumers("bern"), p), "bern")[0],
		"cpu 1.4: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 0; at most 20% of the pool, 1.4")
	expect(t, "an unknown consumer", because(t, r, "lima")[0], "cpu 3: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 0")
}

func TestAnExplanationIsOfNowAlsoWhereThePublishedAmountIsOlder(t *testing.T) {
	c := newCluster("n1", "n2")
	p := ofNodes("p", threshold(20))
	input := func(grants capacity.Amounts) Input {
		in := Input{Policies: []Policy{p}, Consumers: consumers("oslo", "rome"), View: c.View(Selections([]Policy{p}))}
		if grants != nil {
			in.Grants = map[string]map[string]capacity.Amounts{"": {"rome": grants}}
		}
		return in
	}
	before := Evaluate(input(nil))
	after := Evaluate(input(capacity.Amounts{capacity.CPU: 3000}).After(before))
	for range 2 {
		expect(t, "rome", because(t, after, "rome")[0], "cpu 16: 100% of 16 is a pool of 16, 3 committed, 13 remaining; it has 3")
		expect(t, "granted", after.Explainer().Of("rome")[0].Granted, capacity.Amounts{capacity.CPU: 3000})
		expect(t, "oslo", because(t, after, "oslo")[0], "cpu 16: 100% of 16 is a pool of 16, 3 committed, 13 remaining; it has 0"+
			"; that is 13 now, and a change of at most 20% is not published")
		after = Evaluate(input(capacity.Amounts{capacity.CPU: 3000}).After(after))
	}
}

func TestAHeldOfferNamesItsCeilingAndWhatItIsHeldFor(t *testing.T) {
	c := newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 5000}))
	expect(t, "fixed", because(t, before, "rome"), []string{"cpu 5: fixed at 5"})
	c.pod("r", "n1", "rome", 4500)
	lowered := fixed("p", capacity.Amounts{"cpu": 500}, version("2"))
	expect(t, "held", because(t, c.evaluate(before, nil, lowered), "rome"), []string{"cpu 4.5: fixed at 500m; held at 4.5 by reclaim: its pods request 4.5"})
	lowered.Max = capacity.Amounts{"cpu": 100}
	expect(t, "with a ceiling", because(t, c.evaluate(before, nil, lowered), "rome"),
		[]string{"cpu 4.5: fixed at 500m; at most 100m; held at 4.5 by reclaim: its pods request 4.5"})
	c.SetPod(capacity.Pod{Key: "r", Node: "n1", Consumer: "rome"})
	lowered.Max = capacity.Amounts{"cpu": 0}
	expect(t, "pods that request nothing", because(t, c.evaluate(before, nil, lowered), "rome"),
		[]string{"cpu 1m: fixed at 500m; at most 0; held at 1m by reclaim: at 0 its pods would be evicted"})
}

func TestAHeldOfferIsReportedAsItIsNow(t *testing.T) {
	c := newCluster("n1")
	p := ofNodes("p", threshold(10))
	r := c.evaluate(nil, consumers("rome"), p)
	expect(t, "before", r.Reports["p"].Consumers[0].Held, false)
	c.pod("r", "n1", "rome", 8000)
	c.node("n1", capacity.Amounts{capacity.CPU: 7900, capacity.Memory: 32 * gi, capacity.Pods: 110})
	p.Max = capacity.Amounts{capacity.CPU: 7900}
	r = c.evaluate(r, consumers("rome"), p)
	for range 2 {
		expect(t, "published", cpu(r, "rome"), int64(8000))
		expect(t, "held", r.Reports["p"].Consumers[0].Held, true)
		r = c.evaluate(r, consumers("rome"), p)
	}
}

func TestWhatIsNotOfferedAnyMoreSaysWhy(t *testing.T) {
	whole := capacity.Amounts{"cpu": 1}
	for name, tc := range map[string]struct {
		before, after Policy
		want          string
	}{
		"deleted":               {fixed("p", whole), fixed("other", whole, scope(ids("oslo"))), "policy p is gone or invalid"},
		"a dry run":             {fixed("p", whole), fixed("p", whole, dryRun), "policy p is a dry run now"},
		"another class":         {fixed("p", whole), fixed("p", whole, class("gold")), "policy p is for class gold now"},
		"other consumers":       {fixed("p", whole), fixed("p", whole, scope(ids("oslo"))), "policy p is not for this consumer any more"},
		"no longer named":       {fixed("p", whole), fixed("p", capacity.Amounts{"memory": 1}), "policy p does not name it"},
		"not among resources":   {fixed("p", whole), fixed("p", whole, func(p *Policy) { p.Resources = []string{"memory"} }), "spec.offer.resources of policy p does not name it"},
		"no usable node":        {ofNodes("p"), ofNodes("p", selecting("nowhere"), version("2")), "policy p has no usable node"},
		"nodes that list less":  {ofNodes("p"), ofNodes("p", selecting("poor"), version("2")), "no usable node of policy p lists it"},
		"the class has no name": {fixed("p", whole, class("gold")), fixed("p", whole), "policy p is for the class without a name now"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster("n1")
			c.node("poor", capacity.Amounts{capacity.Memory: gi})
			before := c.evaluate(nil, consumers("rome"), tc.before)
			after := c.evaluate(before, consumers("rome"), tc.after)
			found := false
			for _, x := range after.Explainer().Of("rome") {
				for i, a := range x.Amounts {
					if x.Class == tc.before.Class && a.Resource == "cpu" {
						found = true
						expect(t, "because", x.Because()[i], "cpu 0: not offered any more: "+tc.want)
					}
				}
			}
			if !found {
				t.Error("the offer does not list cpu")
			}
		})
	}
}

func TestAmountsAreExplainedAsAPersonReadsThem(t *testing.T) {
	c := newCluster()
	c.node("n1", capacity.Amounts{"cpu": 15840, "memory": 32761684 << 10})
	c.pod("r", "n1", "rome", 1920)
	of := func(p Policy) []string { return because(t, c.evaluate(nil, consumers("oslo"), p), "oslo") }
	expect(t, "half", of(ofNodes("p", percent(50))), []string{
		"cpu 6: 50% of 15.8 is a pool of 7.92, 1.92 committed, 6 remaining; it has 0",
		"memory 15.6Gi: 50% of 31.2Gi is a pool of 15.6Gi, 0 committed, 15.6Gi remaining; it has 0",
	})
	// With three digits these amounts would look the same.
	expect(t, "a reserve", of(ofNodes("p", percent(100), func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"memory": 10 << 20} })), []string{
		"cpu 13.9: 100% of 15.8 is a pool of 15.8, 1.92 committed, 13.9 remaining; it has 0",
		"memory 31.23Gi: 100% of (31.24Gi - 10Mi reserved) is a pool of 31.23Gi, 0 committed, 31.23Gi remaining; it has 0",
	})
}

func TestNodesThatWouldListAResourceAreNamedWhereTheyAreNotUsable(t *testing.T) {
	c := newCluster("n1")
	gpus := func(state capacity.NodeState) {
		for i := range 7 {
			c.SetNode(capacity.Node{Name: fmt.Sprint("gpu-", i), State: state, Allocatable: capacity.Amounts{"gpu": 8}})
		}
	}
	gpus(capacity.Ready)
	before := c.evaluate(nil, consumers("oslo", "rome"), ofNodes("p"))
	gpus(capacity.Cordoned)
	explainer := c.evaluate(before, consumers("oslo", "rome"), ofNodes("p")).Explainer()
	for _, id := range []string{"oslo", "rome"} {
		expect(t, id, explainer.Of(id)[0].Because()[1], "gpu 0: not offered any more: no usable node of policy p lists it"+
			" (gpu-0 is cordoned, gpu-1 is cordoned, gpu-2 is cordoned, gpu-3 is cordoned, gpu-4 is cordoned, and 2 more)")
	}
}
