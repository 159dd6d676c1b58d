package offers

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// row is one consumer's offer of one resource in one class. An amount is nil if there is none: the default
// offer has no grants and no use.
type row struct {
	rowKey
	offered, granted, used *resource.Quantity
	policy                 string
	// written is the offered amount as the operator writes it in its explanation, and why is the explanation.
	written, why string
}

// rowKey identifies what a row is about.
type rowKey struct{ consumer, class, resource string }

// offer identifies the offer that the row is about.
func (r row) offer() rowKey { return rowKey{consumer: r.consumer, class: r.class} }

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
		return []row{{rowKey: rowKey{consumer: c.ClusterID}, why: c.Because}}
	}
	return offerRows(c.ClusterID, c.Offers)
}

func offerRows(consumer string, offers []rest.Offer) []row {
	var rows []row
	for i := range offers {
		o := &offers[i]
		for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
			key := rowKey{consumer, output.Class(o.Class), name}
			r := row{rowKey: key, offered: o.Resources.Of(name), policy: o.Policy}
			r.written, r.why = rest.Explanation(o.Because, name)
			if consumer != output.Anyone {
				r.granted, r.used = o.Granted.OrZero(name), o.Used.OrZero(name)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// byResource has a row for each resource, with exact amounts and explanations in format output.Wide.
func byResource(rows []row, format string) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "RESOURCE", "OFFERED", "GRANTED", "USED", "POLICY"}}
	if format == output.Wide {
		t.Header, t.Text = append(t.Header, "WHY"), true
	}
	for i := range rows {
		r := &rows[i]
		amounts := output.Notation(format, "")(r.resource, r.offered, r.granted, r.used)
		cells := []string{r.consumer, r.class, r.resource, amounts[0], amounts[1], amounts[2], r.policy}
		if format == output.Wide {
			cells = append(cells, r.why)
		}
		t.Add(cells...)
	}
	return t
}

// byClass has a row for each consumer and class, with the amounts as in "cpu 10.4, memory 65Gi, pods 261". Where
// such rows do not fit into the width, 0 for no limit, the amounts are below them.
func byClass(rows []row, width int) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "POLICY", "OFFERED", "GRANTED", "USED"}}
	for _, of := range output.Fold(rows, "", row.offer) {
		var offered, granted, used output.List
		for i := range of {
			r := &of[i]
			amounts := output.Notation("", "")(r.resource, r.offered, r.granted, r.used)
			offered.Add(r.resource, amounts[0])
			granted.AddPositive(r.resource, amounts[1])
			used.AddPositive(r.resource, amounts[2])
		}
		t.Add(of[0].consumer, of[0].class, of[0].policy, offered.String(), granted.String(), used.String())
	}
	if t.Fits(width) {
		return t
	}
	return below(t)
}

// below has the amounts of each row of byClass as a text, without those of which there are none.
func below(t *output.Table) *output.Table {
	narrow := &output.Table{Header: []string{"CONSUMER", "CLASS", "POLICY", "OFFERED, GRANTED, USED"}, Text: true}
	for _, r := range t.Rows {
		var amounts []string
		for i, of := range []string{"offered ", "granted ", "used "} {
			if amount := r.Cells[3+i]; amount != "" && amount != "0" {
				amounts = append(amounts, of+amount)
			}
		}
		narrow.Add(r.Cells[0], r.Cells[1], r.Cells[2], strings.Join(amounts, "\n"))
	}
	return narrow
}
