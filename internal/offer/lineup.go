package offer

import (
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// MaxDeparted bounds how many consumers are remembered that nothing makes known any more, for the sake of what was offered to them.
const MaxDeparted = 1024

// lineup is who is there, and who of them are alike. It never changes once made.
//
// Consumers that hold nothing, that the same policies are for on the same terms, and that were offered the same, are of one group: whatever
// an evaluation finds, it finds for all of them, so they stay alike. One that holds something is a group of its own. The lineup of an
// evaluation is good for the next as long as nobody comes or goes, nobody begins or ceases to hold something, no label changes, and
// no policy is for others than before: then nothing has to be done for each consumer, but only for each group.
type lineup struct {
	rules     *rules
	described []Consumer
	// consumers are the keys of the entries, sorted by ID, and groupOf is the place of the group of each.
	consumers []Consumer
	groupOf   []int32
	groups    []group
	// departed are the places of consumers that nothing makes known any more: in the order of their IDs, but strangers last.
	departed []int
	// anyone is the ruling for a consumer that nobody has heard of.
	anyone *ruling
	bySort map[string]*ruling
	// shadowedBy are the names of the policies that decide before each policy for somebody who is known, sorted.
	shadowedBy [][]string
	// withPods is how many consumers have pods; granting are the classes in which anything is granted, and withGrants to how many.
	withPods   int
	granting   []string
	withGrants []int
}

// group are consumers that are alike.
type group struct {
	ruling *ruling
	// holder is the one consumer that holds something; for a group of those that do not it is empty, and holds is false.
	holder string
	holds  bool
}

// groupKey names the circumstances under which consumers that hold nothing are alike.
type groupKey struct {
	ruling *ruling
	old    *Entry
}

// everybody returns the consumers that are known in any way, sorted by ID: described by an object, named by a policy, with pods or
// grants, or asked about.
func everybody(in *Input, r *rules) []Consumer {
	described := in.Consumers
	if !slices.IsSortedFunc(described, byID) {
		described = slices.Clone(described)
		slices.SortFunc(described, byID)
	}
	// others are to be added, or are no strangers after all.
	others := map[string]struct{}{}
	name := func(id string) {
		i, found := slices.BinarySearchFunc(described, Consumer{ID: id}, byID)
		if !found || described[i].Stranger {
			others[id] = struct{}{}
		}
	}
	for id := range r.named {
		name(id)
	}
	for id := range in.View.Used.All {
		name(id)
	}
	for _, grants := range in.Grants {
		for id := range grants {
			name(id)
		}
	}
	if len(others) == 0 {
		return described
	}
	all := make([]Consumer, 0, len(described)+len(others))
	for _, c := range described {
		if _, twice := others[c.ID]; !twice {
			all = append(all, c)
		}
	}
	for id := range others {
		all = append(all, Consumer{ID: id})
	}
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

// strangersLast returns the consumers in the same order, but for strangers, who come after all others.
func strangersLast(all []Consumer) []Consumer {
	ordered := make([]Consumer, 0, len(all))
	for _, strangers := range []bool{false, true} {
		for _, c := range all {
			if c.Stranger == strangers {
				ordered = append(ordered, c)
			}
		}
	}
	return ordered
}

// arrange makes a lineup of the known consumers and of those that prev had entries of, and finds what prev has of each group.
func (e *evaluation) arrange() *lineup {
	known, prev := everybody(&e.in, e.rules), e.prev
	l := &lineup{
		rules: e.rules, described: e.in.Consumers, consumers: make([]Consumer, 0, len(known)), groupOf: make([]int32, 0, len(known)),
		granting: e.granting, withGrants: make([]int, len(e.granting)), withPods: e.in.View.Used.Len(),
	}
	for k, class := range e.granting {
		l.withGrants[k] = len(e.in.Grants[class])
	}
	s := newRulings(e.rules, prev.lineup)
	// What was found of a group before is of use only where its ruling is the same.
	found := prev.lineup != nil && s.before != nil
	byKey := map[groupKey]int32{}
	add := func(c Consumer, r *ruling, old *Entry, was *outcome) {
		l.consumers = append(l.consumers, c)
		holds := e.holds(c.ID)
		key := groupKey{r, old}
		if !holds {
			if at, known := byKey[key]; known {
				l.groupOf = append(l.groupOf, at)
				return
			}
			byKey[key] = int32(len(l.groups))
		}
		g := group{ruling: r, holds: holds}
		if holds {
			g.holder = c.ID
		}
		if was != nil && (was.ruling != r || was.holding.none() == holds) {
			was = nil
		}
		l.groupOf = append(l.groupOf, int32(len(l.groups)))
		l.groups, e.old, e.was = append(l.groups, g), append(e.old, old), append(e.was, was)
	}
	wasAt := func(at int) *outcome {
		if !found {
			return nil
		}
		return prev.outcomes[prev.lineup.groupOf[at]]
	}
	shadows := map[shadow]struct{}{}
	at := 0
	gone := func() {
		c := prev.Entries.consumers[at]
		l.departed = append(l.departed, len(l.consumers))
		c = Consumer{ID: c.ID, Stranger: c.Stranger}
		add(c, s.of(c), prev.Entries.list[at], wasAt(at))
		at++
	}
	for _, c := range known {
		for at < len(prev.Entries.list) && prev.Entries.consumers[at].ID < c.ID {
			gone()
		}
		// Until now it could read what anyone is offered.
		old, was := prev.Anyone, (*outcome)(nil)
		if at < len(prev.Entries.list) && prev.Entries.consumers[at].ID == c.ID {
			old, was = prev.Entries.list[at], wasAt(at)
			at++
		}
		r := s.of(c)
		for _, sh := range r.shadows {
			shadows[sh] = struct{}{}
		}
		add(c, r, old, was)
	}
	for at < len(prev.Entries.list) {
		gone()
	}
	slices.SortStableFunc(l.departed, func(a, b int) int { return rankOf(l.consumers[a]) - rankOf(l.consumers[b]) })
	l.shadowedBy = make([][]string, len(e.rules.ordered))
	for sh := range shadows {
		l.shadowedBy[sh.policy] = append(l.shadowedBy[sh.policy], e.rules.ordered[sh.by].Name)
	}
	for _, names := range l.shadowedBy {
		slices.Sort(names)
	}
	l.anyone = s.of(Consumer{})
	l.bySort = s.bySort
	return l
}

// rankOf puts strangers after all others.
func rankOf(c Consumer) int {
	if c.Stranger {
		return 1
	}
	return 0
}

// again returns the lineup of the evaluation before where it is good for this one, with what was found then. What each group holds is
// put into holdings.
func (e *evaluation) again() (*lineup, bool) {
	was := e.prev.lineup
	if was == nil || was.withPods != e.in.View.Used.Len() || !sameList(was.described, e.in.Consumers) || !slices.Equal(was.granting, e.granting) ||
		!e.rules.sameFor(was.rules) {
		return nil, false
	}
	for k, class := range e.granting {
		if was.withGrants[k] != len(e.in.Grants[class]) {
			return nil, false
		}
	}
	// As many hold something as before. If each of those before still does, in the same classes, nobody else does.
	e.holdings = make([]holding, len(was.groups))
	for i := range was.groups {
		g := &was.groups[i]
		if !g.holds {
			continue
		}
		now, before := e.holdingOf(g.holder), &e.prev.outcomes[i].holding
		if now.hasPods() != before.hasPods() || !slices.EqualFunc(now.grants, before.grants, func(a, b capacity.Row) bool { return (a == nil) == (b == nil) }) {
			return nil, false
		}
		e.holdings[i] = now
	}
	return was, true
}

// without returns the lineup less the departed at some places, which are sorted.
func (l *lineup) without(gone []int) *lineup {
	next := *l
	next.consumers, next.groupOf, next.departed = nil, nil, nil
	moved := make([]int, len(l.consumers))
	for i, c := range l.consumers {
		if _, found := slices.BinarySearch(gone, i); found {
			moved[i] = -1
			continue
		}
		moved[i] = len(next.consumers)
		next.consumers, next.groupOf = append(next.consumers, c), append(next.groupOf, l.groupOf[i])
	}
	for _, i := range l.departed {
		if moved[i] >= 0 {
			next.departed = append(next.departed, moved[i])
		}
	}
	return &next
}
