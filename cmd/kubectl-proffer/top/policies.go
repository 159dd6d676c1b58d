package top

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// policyRow is one resource of a policy. The resource is empty for a policy without amounts.
type policyRow struct {
	Policy string `json:"policy"`
	Class  string `json:"class"`
	Reason string `json:"reason"`
	Nodes  *int   `json:"nodes,omitempty"`
	// SeatsLost is the number of ResourceSlices of the policy that wait for a node, absent for none.
	SeatsLost int32  `json:"seatsLost,omitempty"`
	Resource  string `json:"resource,omitempty"`
	// Capacity, Committed and Remaining are absent for amounts that are not of a pool.
	Capacity  *resource.Quantity `json:"capacity,omitempty"`
	Committed *resource.Quantity `json:"committed,omitempty"`
	Used      *resource.Quantity `json:"used,omitempty"`
	Remaining *resource.Quantity `json:"remaining,omitempty"`
	Offered   *resource.Quantity `json:"offered,omitempty"`
	// OfferedPercent is the part of the capacity that is offered, absent without a capacity.
	OfferedPercent *int `json:"offeredPercent,omitempty"`
}

// policyRows has a row for each policy and resource.
func policyRows(offers *rest.Offers) []policyRow {
	offered, used := perKey[string]{}, perKey[string]{}
	for i := range offers.Consumers {
		for _, o := range offers.Consumers[i].Offers {
			add(offered.sumsFor(o.Policy), o.Resources)
			add(used.sumsFor(o.Policy), o.Used)
		}
	}
	rows := []policyRow{}
	for i := range offers.Policies {
		p := &offers.Policies[i]
		offered, used := offered[p.Name], used[p.Name]
		names := resources(p.Capacity, p.Committed, p.Remaining, offered)
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			row := policyRow{
				Policy: p.Name, Class: p.Class, Reason: p.Reason, Nodes: p.Nodes, SeatsLost: p.SeatsLost, Resource: name,
			}
			if name != "" {
				row.Capacity, row.Committed, row.Remaining = p.Capacity.Of(name), p.Committed.Of(name), p.Remaining.Of(name)
				row.Used, row.Offered = used.OrZero(name), offered.OrZero(name)
				row.OfferedPercent = percent(row.Offered, row.Capacity)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// lostSeats has a line for each policy whose ResourceSlices wait for a node, after an empty one.
func lostSeats(rows []policyRow, width int) (lines []string) {
	for i := range rows {
		text := rest.Policy{SeatsLost: rows[i].SeatsLost}.LostSeats()
		if text != "" && (i == 0 || rows[i-1].Policy != rows[i].Policy) {
			lines = append(lines, output.Wrap("Policy "+rows[i].Policy+": "+text, width)...)
		}
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "")
	}
	return lines
}

func policiesTable(rows []policyRow, format string) *output.Table {
	t := &output.Table{Header: []string{
		"POLICY", "CLASS", "REASON", "NODES", "RESOURCE", "CAPACITY", "COMMITTED", "USED", "REMAINING", "OFFERED", "OFFERED%",
	}}
	for i := range rows {
		r := &rows[i]
		nodes := ""
		if r.Nodes != nil {
			nodes = strconv.Itoa(*r.Nodes)
		}
		amounts := output.Notation(format, "")(r.Resource, r.Capacity, r.Committed, r.Used, r.Remaining, r.Offered)
		cells := append([]string{r.Policy, output.Class(r.Class), r.Reason, nodes, r.Resource}, amounts...)
		t.Add(append(cells, percentText(r.OfferedPercent))...)
	}
	return t
}
