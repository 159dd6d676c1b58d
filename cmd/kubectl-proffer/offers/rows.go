package offers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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

// changes returns a row for each row that differs, with each cell that differs as "old -> new". They
// are sorted by consumer, class and resource. Explanations alone make no difference.
func changes(before, after []row) []row {
	was := make(map[rowKey]*row, len(before))
	for i := range before {
		was[before[i].key()] = &before[i]
	}
	var changed []row
	for i := range after {
		now := &after[i]
		old := was[now.key()]
		delete(was, now.key())
		if old == nil {
			old = &row{}
		}
		if c := old.to(now); c != nil {
			changed = append(changed, *c)
		}
	}
	for k, old := range was {
		if c := old.to(&row{consumer: k.consumer, class: k.class, resource: k.resource}); c != nil {
			changed = append(changed, *c)
		}
	}
	slices.SortFunc(changed, func(a, b row) int {
		return cmp.Or(strings.Compare(a.consumer, b.consumer),
			strings.Compare(a.class, b.class), strings.Compare(a.resource, b.resource))
	})
	return changed
}

// to returns the change from one row to the next, nil for none.
func (r *row) to(next *row) *row {
	offered, o := change(r.offered, next.offered)
	granted, g := change(r.granted, next.granted)
	used, u := change(r.used, next.used)
	policy, p := change(r.policy, next.policy)
	if !o && !g && !u && !p {
		return nil
	}
	return &row{
		consumer: next.consumer, class: next.class, resource: next.resource,
		offered: offered, granted: granted, used: used, policy: policy, why: next.why,
	}
}

func change(before, after string) (text string, changed bool) {
	if before == after {
		return after, false
	}
	return cmp.Or(before, output.None) + " -> " + cmp.Or(after, output.None), true
}
