package offers

import (
	"maps"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// row is one consumer's offer of one resource in one class.
type row struct {
	consumer, class, resource string
	offered, granted, used    string
	policy                    string
	why                       string
}

// rowKey identifies what a row is about.
type rowKey struct{ consumer, class, resource string }

func (r *row) key() rowKey { return rowKey{r.consumer, r.class, r.resource} }

// rowsOf lists all offers, each consumer's by class and resource, and the default offer last.
func rowsOf(offers *rest.Offers) []row {
	var rows []row
	for i := range offers.Consumers {
		rows = append(rows, consumerRows(&offers.Consumers[i])...)
	}
	return append(rows, offerRows(output.Anyone, offers.Anyone)...)
}

// consumerRows lists the offers to one consumer. One without offers has a row that says why.
func consumerRows(c *rest.Consumer) []row {
	if len(c.Offers) == 0 {
		return []row{{consumer: c.ClusterID, why: c.Because}}
	}
	return offerRows(c.ClusterID, c.Offers)
}

func offerRows(consumer string, offers []rest.Offer) []row {
	var rows []row
	for i := range offers {
		o := &offers[i]
		for _, resource := range slices.Sorted(maps.Keys(o.Resources)) {
			rows = append(rows, row{
				consumer: consumer, class: output.Class(o.Class), resource: resource,
				offered: output.Amount(o.Resources, resource),
				granted: output.Amount(o.Granted, resource),
				used:    output.Amount(o.Used, resource),
				policy:  o.Policy, why: rest.Reason(o.Because, resource),
			})
		}
	}
	return rows
}

// ofClass keeps the offers of one class.
func ofClass(offers []rest.Offer, class string) []rest.Offer {
	return slices.DeleteFunc(offers, func(o rest.Offer) bool { return o.Class != class })
}

// table prints rows, with an explanation of each if wide.
func table(rows []row, wide bool) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "RESOURCE", "OFFERED", "GRANTED", "USED", "POLICY"}}
	if wide {
		t.Header, t.Text = append(t.Header, "WHY"), true
	}
	for i := range rows {
		r := &rows[i]
		cells := []string{r.consumer, r.class, r.resource, r.offered, r.granted, r.used, r.policy}
		if wide {
			cells = append(cells, r.why)
		}
		t.Add(cells...)
	}
	return t
}
