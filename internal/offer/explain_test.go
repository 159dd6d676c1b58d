package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestEveryNumberIsExplained(t *testing.T) {
	c := newCluster()
	c.node("n1", capacity.Amounts{"cpu": 14000, "memory": 32 * gi, "pods": 110, "nvidia.com/gpu": 4})
	c.pod("r", "n1", "rome", 3000)
	c.pod("o", "n1", "oslo", 1000)
	p := ofNodes("p", percent(50), func(p *Policy) {
		p.Nodes.Reserve = capacity.Amounts{"memory": 16 * gi}
		p.Max = capacity.Amounts{"pods": 20}
		p.Known = []string{"example.com/fpga"}
		p.Overrides = []Override{{Consumers: ids("rome"), Fixed: capacity.Amounts{"nvidia.com/gpu": 2}}}
	})
	var got []string
	for _, s := range c.evaluate(nil, nil, p).Entries.Of("rome").Offers[0].Steps {
		got = append(got, s.Explain())
	}
	expect(t, "rome", got, []string{
		"cpu 6: 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3",
		"example.com/fpga 0: not offered any more",
		"memory 8Gi: 50% of (32Gi - 16Gi reserved) is a pool of 8Gi, 0 committed, 8Gi remaining; it has 0",
		"nvidia.com/gpu 2: fixed at 2 by the override",
		"pods 20: 50% of 110 is a pool of 55, 2 committed, 53 remaining; it has 1; at most 20",
	})

	c = newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 5000}))
	expect(t, "fixed", before.Entries.Of("rome").Offers[0].Steps[0].Explain(), "cpu 5: fixed at 5")
	c.pod("r", "n1", "rome", 4500)
	after := c.evaluate(before, nil, fixed("p", capacity.Amounts{"cpu": 500}, version("2")))
	expect(t, "held", after.Entries.Of("rome").Offers[0].Steps[0].Explain(), "cpu 4500m: fixed at 500m; held by reclaim")
}
