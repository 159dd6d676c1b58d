package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestResourcesThatNoPodAsksForAreOfferedOnlyIfThePolicyNamesThem(t *testing.T) {
	const kvm, volumes = "devices.kubevirt.io/kvm", "attachable-volumes-aws-ebs"
	c := newCluster()
	c.node("n1", capacity.Amounts{
		capacity.CPU: 8000, capacity.Memory: 8 * gi, capacity.Pods: 110, "hugepages-2Mi": gi, kvm: 1000, volumes: 25,
	})
	named := capacity.Amounts{kvm: 50}
	for name, tc := range map[string]struct {
		with func(*Policy)
		want int64
	}{
		"named nowhere":               {func(*Policy) {}, -1},
		"in reserve":                  {func(p *Policy) { p.Nodes.Reserve = named }, -1},
		"in resources":                {func(p *Policy) { p.Resources = []string{kvm} }, 1000},
		"not in resources, in max":    {func(p *Policy) { p.Resources, p.Max = []string{capacity.CPU}, named }, -1},
		"in max":                      {func(p *Policy) { p.Max = named }, 50},
		"in the defaults of slices":   {func(p *Policy) { p.Slices.Defaults = named }, 1000},
		"in percentages":              {func(p *Policy) { p.Nodes.Percentages = named }, 500},
		"in maxPercentages":           {func(p *Policy) { p.MaxShares.Percentages = named }, 500},
		"fixed by an override":        {func(p *Policy) { p.Overrides = []Override{{Consumers: ids("rome"), Fixed: named}} }, 50},
		"in the max of an override":   {func(p *Policy) { p.Overrides = []Override{{Consumers: ids("rome"), Max: named}} }, 50},
		"in the max of another's one": {func(p *Policy) { p.Overrides = []Override{{Consumers: ids("oslo"), Max: named}} }, 1000},
	} {
		r := c.evaluate(nil, consumers("rome"), ofNodes("p", tc.with))
		got, offered := offered(r, "rome")[""][kvm]
		if !offered {
			got = -1
		}
		expect(t, name, got, tc.want)
		if _, counted := r.Reports["p"].Capacity[kvm]; counted != offered {
			t.Errorf("%s: in the capacity of the policy: %v, and offered: %v", name, counted, offered)
		}
	}
	r := c.evaluate(nil, consumers("rome"), ofNodes("p"))
	expect(t, "offered", r.Reports["p"].Offered, []string{"cpu", "hugepages-2Mi", "memory", "pods"})

	once := ofNodes("p", func(p *Policy) { p.Known = []string{volumes} })
	expect(t, "offered once", because(t, c.evaluate(nil, consumers("rome"), once), "rome")[0],
		"attachable-volumes-aws-ebs 0: not offered any more: it is not for pods to ask for, and spec.offer of policy p does not "+
			"name it")
	expect(t, "fixed amounts", offered(c.evaluate(nil, consumers("rome"), fixed("p", named)), "rome")[""], named)
}
