package offer

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// holding holds one consumer's use and grants. The zero value is nothing.
type holding struct {
	// use holds the requests of its pods, nil if it has no pods.
	use *capacity.Use
	// grants holds what it was granted, in the order of evaluation.granting, nil for nothing.
	grants []capacity.Row
}

func (h *holding) none() bool { return h.use == nil && h.grants == nil }

func (h *holding) hasPods() bool { return h.use != nil }

// used returns the requests of the pods on all nodes.
func (h *holding) used() capacity.Row {
	if h.use == nil {
		return nil
	}
	return h.use.Everywhere
}

// columnsFor returns the columns of the View, then, sorted, the granted resources that it lacks.
func columnsFor(in *Input) []string {
	known := make(map[string]struct{}, len(in.View.Columns))
	for _, name := range in.View.Columns {
		known[name] = struct{}{}
	}
	var more []string
	for _, consumers := range in.Grants {
		for _, granted := range consumers {
			for name := range granted {
				if _, ok := known[name]; !ok {
					known[name] = struct{}{}
					more = append(more, name)
				}
			}
		}
	}
	slices.Sort(more)
	return append(slices.Clip(in.View.Columns), more...)
}

// addGrants commits each grant of every pool on whose nodes it may be used.
func (e *evaluation) addGrants() {
	e.grants = map[string][]capacity.Row{}
	for k, class := range e.granting {
		for id, granted := range e.in.Grants[class] {
			rows := e.grants[id]
			if rows == nil {
				rows = make([]capacity.Row, len(e.granting))
				e.grants[id] = rows
			}
			rows[k] = make(capacity.Row, len(e.columns))
			for name, amount := range granted {
				rows[k][e.column[name]] = amount
			}
		}
	}
	sum := make(capacity.Row, len(e.columns))
	for id, rows := range e.grants {
		deciders := e.deciders(e.matcher.of(e.consumer(id)))
		use := e.in.View.Used.Of(id)
		for _, p := range e.plans {
			if p.pool == nil {
				continue
			}
			clear(sum)
			some := false
			for k, granted := range rows {
				if granted == nil || !mayUse(p, deciders[k]) {
					continue
				}
				some = true
				for c, amount := range granted {
					sum[c] = capacity.Sum(sum[c], amount)
				}
			}
			if some {
				p.addGrant(sum, use)
			}
		}
	}
}

// deciders returns the plan that decides in each class of granting, nil for none.
func (e *evaluation) deciders(m *match) []*policyPlan {
	deciders := make([]*policyPlan, len(e.granting))
	for _, w := range m.winners {
		if k, found := slices.BinarySearch(e.granting, e.plans[w.policy].Class); found {
			deciders[k] = e.plans[w.policy]
		}
	}
	return deciders
}

// mayUse reports whether a grant may be used on the nodes of a plan. If no policy decides in its
// class any longer, the grant may be on any nodes.
func mayUse(p, decider *policyPlan) bool {
	return decider == nil || p == decider || p.overlaps(decider)
}

func (e *evaluation) holdingOf(id string) holding {
	return holding{use: e.in.View.Used.Of(id), grants: e.grants[id]}
}

// grantedIn returns the amounts granted in a class, nil for nothing.
func (e *evaluation) grantedIn(class string, h *holding) capacity.Row {
	if h.grants == nil {
		return nil
	}
	if k, found := slices.BinarySearch(e.granting, class); found {
		return h.grants[k]
	}
	return nil
}
