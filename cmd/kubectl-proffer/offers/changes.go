package offers

import (
	"cmp"
	"maps"
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
func policyChanges(before, after []rest.Policy, showsClass func(string) bool) []string {
	was := make(map[string]*rest.Policy, len(before))
	for i := range before {
		was[before[i].Name] = &before[i]
	}
	var lines []string
	for i := range after {
		now, edited := &after[i], ""
		old, there := was[now.Name]
		delete(was, now.Name)
		if !showsClass(now.Class) && (!there || !showsClass(old.Class)) {
			continue
		}
		if !there {
			old = &rest.Policy{}
		} else if old.Generation != now.Generation && old.Generation > 0 && now.Generation > 0 {
			edited = " edited" // An earlier operator reports no generation.
		}
		if reason, changed := live.Change(old.Reason, now.Reason); changed || edited != "" {
			lines = append(lines, "policy "+now.Name+edited+": "+reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if showsClass(was[name].Class) {
			reason, _ := live.Change(was[name].Reason, "")
			lines = append(lines, "policy "+name+": "+reason)
		}
	}
	return lines
}

// rowChange is a row before and after a change. A row that was or is not there has no amounts.
type rowChange struct{ was, is row }

// changes lists the rows that differ, sorted by consumer, class and resource, the default offer last.
// Explanations alone make no difference.
func changes(before, after []row) []rowChange {
	was := make(map[rowKey]row, len(before))
	for _, r := range before {
		was[r.rowKey] = r
	}
	var changed []rowChange
	add := func(c rowChange) {
		if c.is.policy != c.was.policy || quantity.Compare(c.was.offered, c.is.offered) != 0 ||
			quantity.Compare(c.was.granted, c.is.granted) != 0 || quantity.Compare(c.was.used, c.is.used) != 0 {
			changed = append(changed, c)
		}
	}
	for _, now := range after {
		old, there := was[now.rowKey]
		if !there {
			old = now.absent()
		}
		delete(was, now.rowKey)
		add(rowChange{old, now})
	}
	for _, old := range was {
		add(rowChange{old, old.absent()})
	}
	slices.SortFunc(changed, func(a, b rowChange) int {
		return cmp.Or(isAnyone(a.is)-isAnyone(b.is), strings.Compare(a.is.consumer, b.is.consumer),
			strings.Compare(a.is.class, b.is.class), strings.Compare(a.is.resource, b.is.resource))
	})
	return changed
}

// absent is the row of the same resource while it is not offered. A consumer has, and uses, nothing of it then.
func (r *row) absent() row {
	none := row{rowKey: r.rowKey}
	if r.granted != nil {
		none.granted, none.used = &resource.Quantity{}, &resource.Quantity{}
	}
	return none
}

func isAnyone(r row) int {
	if r.consumer == output.Anyone {
		return 1
	}
	return 0
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
