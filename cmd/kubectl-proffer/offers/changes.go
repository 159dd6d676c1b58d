package offers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/live"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/quantity"
)

// compare returns the time with each change of a policy that is shown, then the changed rows, with explanations. It
// returns nothing for answers that are the same.
func (o *offersOptions) compare(before, after *offersAnswer, width int, color bool) []string {
	at := after.at.Format(time.TimeOnly)
	var lines []string
	changed, unchanged := changes(before.rows, after.rows), "; no amount changes"
	if o.resource != "" {
		unchanged = "; no amount of " + o.resource + " changes"
	}
	for _, change := range policyChanges(before.policies, after.policies, o.showsClass) {
		if len(changed) == 0 {
			change += unchanged
		}
		lines = append(lines, at+"  "+output.OneLine(change))
	}
	if len(changed) == 0 {
		return lines
	}
	if len(lines) == 0 {
		lines = []string{at}
	}
	t := &output.Table{Header: []string{
		"CONSUMER", "CLASS", "RESOURCE", "OFFERED", "GRANTED", "USED", "POLICY", "WHY",
	}, Text: true}
	for i := range changed {
		t.Add(changed[i].cells(o.format)...)
	}
	if len(before.rows) == 0 { // There is no header yet.
		return append(lines, t.Lines(width, color)...)
	}
	return append(lines, t.Body(width, color)...)
}

// policyChanges returns a line for each policy that was created, edited or deleted, or whose
// condition Ready has another reason, if it is shown before or after that: one that is invalid has no class.
func policyChanges(before, after []rest.Policy, showsClass func(string) bool) (lines []string) {
	name := func(p rest.Policy) string { return p.Name }
	absent := func(p rest.Policy) rest.Policy { return rest.Policy{Name: p.Name, Class: p.Class} }
	for was, is := range live.Compare(before, after, name, absent) {
		if !showsClass(was.Class) && !showsClass(is.Class) {
			continue
		}
		edited := ""
		if was.Generation != is.Generation && was.Generation > 0 && is.Generation > 0 {
			edited = " edited" // An earlier operator reports no generation.
		}
		if reason, changed := live.Change(was.Reason, is.Reason); changed || edited != "" {
			lines = append(lines, "policy "+is.Name+edited+": "+reason)
		}
	}
	return lines
}

// rowChange is a row before and after a change. A row that was or is not there has no amounts.
type rowChange struct{ was, is row }

// changes lists the rows that differ, sorted by consumer, class and resource, the default offer last.
// Explanations alone make no difference.
func changes(before, after []row) (changed []rowChange) {
	key := func(r row) rowKey { return r.rowKey }
	for was, is := range live.Compare(before, after, key, row.absent) {
		if is.policy != was.policy || quantity.Compare(was.offered, is.offered) != 0 ||
			quantity.Compare(was.granted, is.granted) != 0 || quantity.Compare(was.used, is.used) != 0 {
			changed = append(changed, rowChange{was, is})
		}
	}
	slices.SortFunc(changed, func(a, b rowChange) int {
		return cmp.Or(output.CompareConsumers(a.is.consumer, b.is.consumer),
			strings.Compare(a.is.class, b.is.class), strings.Compare(a.is.resource, b.is.resource))
	})
	return changed
}

// absent is the row of the same resource while it is not offered. A consumer has, and uses, nothing of it then.
func (r row) absent() row {
	none := row{rowKey: r.rowKey}
	if r.granted != nil {
		none.granted, none.used = &resource.Quantity{}, &resource.Quantity{}
	}
	return none
}

// cells writes each cell that differs as "old -> new".
func (c *rowChange) cells(format string) []string {
	texts := output.Notation(format, c.is.written)(c.is.resource,
		c.is.offered, c.was.offered, c.is.granted, c.was.granted, c.is.used, c.was.used)
	cells := []string{c.is.consumer, c.is.class, c.is.resource}
	for i := 0; i < len(texts); i += 2 {
		text, _ := live.Change(texts[i+1], texts[i])
		cells = append(cells, text)
	}
	policy, _ := live.Change(c.was.policy, c.is.policy)
	return append(cells, policy, c.is.why)
}
