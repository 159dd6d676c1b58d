package top

import (
	"strconv"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// policiesTable has a row for each policy and resource.
func policiesTable(offers *rest.Offers) *output.Table {
	t := &output.Table{Header: []string{
		"POLICY", "CLASS", "REASON", "NODES", "RESOURCE", "CAPACITY", "COMMITTED", "USED", "REMAINING", "OFFERED", "OFFERED%",
	}}
	offered, used := perKey[string]{}, perKey[string]{}
	for i := range offers.Consumers {
		for _, o := range offers.Consumers[i].Offers {
			offered.sumsFor(o.Policy).add(o.Resources)
			used.sumsFor(o.Policy).add(o.Used)
		}
	}
	for i := range offers.Policies {
		p := &offers.Policies[i]
		capacity, committed, remaining := sums(p.Capacity), sums(p.Committed), sums(p.Remaining)
		nodes := ""
		if p.Nodes != nil {
			nodes = strconv.Itoa(*p.Nodes)
		}
		offered, used := offered[p.Name], used[p.Name]
		names := resources(capacity, committed, remaining, offered)
		if len(names) == 0 {
			t.Add(p.Name, output.Class(p.Class), p.Reason, nodes, "", "", "", "", "", "", "")
		}
		for _, name := range names {
			t.Add(p.Name, output.Class(p.Class), p.Reason, nodes, name,
				capacity.text(name), committed.text(name), used.text(name), remaining.text(name), offered.text(name),
				percent(offered, capacity, name))
		}
	}
	return t
}
