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
	// departed are the places of consumers that nothing makes known any more, in the order of their IDs.
	departed []int
	// anyone is the ruling for a consumer that nobody has heard of.
	anyone  *ruling
	rulings rulingSet
	// losses are, for each policy, the known consumers for which another one decides; unknown the IDs that it names, sorted, of which nothing else is
	// known: no more than MaxReported.
	losses  [][]Loss
	unknown [][]string
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

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

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
	left := len(l.consumers) - len(gone)
	next.consumers, next.groupOf, next.departed = make([]Consumer, 0, left), make([]int32, 0, left), nil
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
