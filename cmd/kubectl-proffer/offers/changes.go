package offers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// comparison holds what differs between two answers.
type comparison struct {
	at       time.Time
	policies []string
	rows     []row
	// first is set if the answer before had no rows, so that there is no header yet.
	first bool
}

// compare compares two answers, and of their policies only what is shown.
func compare(before, after *offersAnswer, shows func(*rest.Policy) bool) comparison {
	return comparison{
		at: after.at, policies: policyChanges(before.policies, after.policies, shows),
		rows:  changes(before.rows, after.rows),
		first: len(before.rows) == 0,
	}
}

// lines returns the time with each change of a policy, then the changed rows, with explanations.
func (c *comparison) lines(width int, color bool) []string {
	at := c.at.Format(time.TimeOnly)
	var lines []string
	for _, change := range c.policies {
		if len(c.rows) == 0 {
			change += "; no amount changes"
		}
		lines = append(lines, at+"  "+output.OneLine(change))
	}
	if len(lines) == 0 {
		lines = []string{at}
	}
	if len(c.rows) == 0 {
		return lines
	}
	t := table(c.rows, true)
	if c.first {
		return append(lines, t.Lines(width, color)...)
	}
	return append(lines, t.Body(width, color)...)
}

// policyChanges returns a line for each policy that was created, edited or deleted, or whose
// condition Ready has another reason, if it is shown before or after that: one that is invalid has no class.
func policyChanges(before, after []rest.Policy, shows func(*rest.Policy) bool) []string {
	was := make(map[string]*rest.Policy, len(before))
	for i := range before {
		was[before[i].Name] = &before[i]
	}
	var lines []string
	for i := range after {
		now, edited := &after[i], ""
		old, there := was[now.Name]
		delete(was, now.Name)
		if !shows(now) && (!there || !shows(old)) {
			continue
		}
		if !there {
			old = &rest.Policy{}
		} else if old.Generation != now.Generation && old.Generation > 0 && now.Generation > 0 {
			edited = " edited" // An earlier operator reports no generation.
		}
		if reason, changed := change(old.Reason, now.Reason); changed || edited != "" {
			lines = append(lines, "policy "+now.Name+edited+": "+reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if shows(was[name]) {
			reason, _ := change(was[name].Reason, "")
			lines = append(lines, "policy "+name+": "+reason)
		}
	}
	return lines
}

// changes returns a row for each row that differs, with each cell that differs as "old -> new". They
// are sorted by consumer, class and resource, the default offer last. Explanations alone make no
// difference.
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
		return cmp.Or(isAnyone(a)-isAnyone(b), strings.Compare(a.consumer, b.consumer),
			strings.Compare(a.class, b.class), strings.Compare(a.resource, b.resource))
	})
	return changed
}

func isAnyone(r row) int {
	if r.consumer == output.Anyone {
		return 1
	}
	return 0
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
