package offer

import (
	"cmp"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// rules are the policies in the order in which they decide. They never change.
type rules struct {
	policies []Policy
	// ordered are sorted by class, then in the order in which they decide: highest priority, then oldest, then name.
	ordered []*Policy
	byName  map[string]int
	// pools are the places of their pools in a view, -1 for a policy of fixed amounts.
	pools []int
	// classes cut ordered by class.
	classes []span
	// scopes are the list of the rules before where all of them are written alike.
	scopes []Scope
	named  map[string]struct{}
	// labels are the keys that some scope looks at.
	labels []string
}

// span is from a first to before an end.
type span struct{ first, end int }

// Selections returns the distinct node selections of the policies, in the order of their first use.
func Selections(policies []Policy) []capacity.Selection {
	selections, _ := selectionsOf(policies)
	return selections
}

// ResourceNames returns the resources that the policies offer whether a node lists them or not, or have offered, sorted. A view has to be
// asked for these: what consumers' pods request of them is held, see Reclaim.
func ResourceNames(policies []Policy) []string {
	named := map[string]struct{}{}
	for i := range policies {
		p := &policies[i]
		for _, name := range p.Known {
			named[name] = struct{}{}
		}
		for name := range p.Fixed {
			named[name] = struct{}{}
		}
		for _, o := range p.Overrides {
			for name := range o.Fixed {
				named[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// selectionsOf returns the selections, and the place of that of each policy.
func selectionsOf(policies []Policy) (selections []capacity.Selection, places map[*Policy]int) {
	byKey := map[string]int{}
	places = make(map[*Policy]int, len(policies))
	for i := range policies {
		n := policies[i].Nodes
		if n == nil {
			places[&policies[i]] = -1
			continue
		}
		key := n.Selection.Key()
		place, known := byKey[key]
		if !known {
			place = len(selections)
			byKey[key] = place
			selections = append(selections, n.Selection)
		}
		places[&policies[i]] = place
	}
	return selections, places
}

// newRules returns the rules of the policies: those of before, which may be nil, if it is the same list.
func newRules(policies []Policy, before *rules) *rules {
	if before != nil && sameList(policies, before.policies) {
		return before
	}
	r := &rules{policies: policies, ordered: make([]*Policy, len(policies)), byName: make(map[string]int, len(policies))}
	for i := range policies {
		r.ordered[i] = &policies[i]
	}
	slices.SortFunc(r.ordered, func(a, b *Policy) int {
		return cmp.Or(
			strings.Compare(a.Class, b.Class),
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Name, b.Name))
	})
	_, places := selectionsOf(policies)
	for i, p := range r.ordered {
		r.byName[p.Name] = i
		r.pools = append(r.pools, places[p])
		if i == 0 || p.Class != r.ordered[i-1].Class {
			r.classes = append(r.classes, span{first: i})
		}
		r.classes[len(r.classes)-1].end = i + 1
		r.scopes = append(r.scopes, p.Consumers)
		for _, o := range p.Overrides {
			r.scopes = append(r.scopes, o.Consumers)
		}
	}
	// A map of ten thousand names takes longer to make than all the rest, and an edit of an offer leaves them as they are.
	if before != nil && slices.EqualFunc(r.scopes, before.scopes, Scope.same) {
		r.scopes, r.named, r.labels = before.scopes, before.named, before.labels
		return r
	}
	labels := map[string]struct{}{}
	r.named = map[string]struct{}{}
	for _, s := range r.scopes {
		maps.Copy(r.named, s.IDs)
		if s.Selector == nil {
			continue
		}
		requirements, _ := s.Selector.Requirements()
		for _, q := range requirements {
			labels[q.Key()] = struct{}{}
		}
	}
	r.labels = slices.Sorted(maps.Keys(labels))
	return r
}

// sameList reports whether two lists, which nobody changes, are one. A list of nothing is like any other.
func sameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameFor reports whether the same policies are for the same consumers as under other rules.
func (r *rules) sameFor(o *rules) bool {
	return r == o || slices.EqualFunc(r.ordered, o.ordered, func(p, q *Policy) bool {
		return p.Name == q.Name && p.Class == q.Class && p.DryRun == q.DryRun && len(p.Overrides) == len(q.Overrides)
	}) && sameList(r.scopes, o.scopes)
}

// same reports whether two scopes are written alike.
func (s Scope) same(o Scope) bool {
	if (s.IDs == nil) != (o.IDs == nil) || (s.Selector == nil) != (o.Selector == nil) {
		return false
	}
	// An edit of a policy leaves the maps of all others what they were.
	if reflect.ValueOf(s.IDs).Pointer() != reflect.ValueOf(o.IDs).Pointer() && !maps.Equal(s.IDs, o.IDs) {
		return false
	}
	return s.Selector == nil || capacity.Selection{Selector: s.Selector}.Key() == capacity.Selection{Selector: o.Selector}.Key()
}

// ruling is which policies are for a consumer, and on which terms, by the policies' places. It never changes.
type ruling struct {
	// deciders are the policies that decide, one for a class at most, by class.
	deciders []decider
	// shadows are the policies that others decide before.
	shadows []shadow
}

type decider struct {
	policy int
	// override is the index of the one that includes the consumer, -1 if none does.
	override int
}

type shadow struct{ policy, by int }

func (r *rules) rule(c Consumer) *ruling {
	out := &ruling{}
	for _, class := range r.classes {
		by := -1
		for i := class.first; i < class.end; i++ {
			p := r.ordered[i]
			switch {
			case p.DryRun, !p.Consumers.Includes(c):
			case by >= 0:
				out.shadows = append(out.shadows, shadow{policy: i, by: by})
			default:
				by = i
				out.deciders = append(out.deciders, decider{i, p.overrideFor(c)})
			}
		}
	}
	return out
}

// overrideFor returns the index of the first override that includes the consumer, -1 if none does.
func (p *Policy) overrideFor(c Consumer) int {
	return slices.IndexFunc(p.Overrides, func(o Override) bool { return o.Consumers.Includes(c) })
}

// rulings find the ruling for each consumer.
type rulings struct {
	*rules
	// made are those of this evaluation, before those of the last one where they still hold.
	made, before rulingSet
	// name is used again for each name of a sort or of a ruling.
	name []byte
}

// rulingSet are rulings. Those that say the same are one.
type rulingSet struct {
	// bySort are those of each sort of consumer: those that no policy names, and whose labels are the same as far as any policy looks at them, are
	// of one sort. Each that a policy names is a sort of its own.
	bySort map[string]*ruling
	// distinct are the same by what they say.
	distinct map[string]*ruling
}

func newRulings(r *rules, before *lineup) *rulings {
	s := &rulings{rules: r, made: rulingSet{bySort: map[string]*ruling{}, distinct: map[string]*ruling{}}}
	if before != nil && r.sameFor(before.rules) {
		s.before = before.rulings
	}
	return s
}

// of returns the ruling for a consumer.
func (s *rulings) of(c Consumer) *ruling {
	s.name = s.name[:0]
	if _, ok := s.named[c.ID]; ok {
		s.name = append(s.name, 0)
		s.name = binary.AppendUvarint(s.name, uint64(len(c.ID)))
		s.name = append(s.name, c.ID...)
	}
	for i, key := range s.labels {
		if value, ok := c.Labels[key]; ok {
			s.name = binary.AppendUvarint(s.name, uint64(i)+1)
			s.name = binary.AppendUvarint(s.name, uint64(len(value)))
			s.name = append(s.name, value...)
		}
	}
	if r, ok := s.made.bySort[string(s.name)]; ok {
		return r
	}
	sort := string(s.name)
	r, ok := s.before.bySort[sort]
	if !ok {
		r = s.rule(c)
	}
	r = s.distinct(r)
	s.made.bySort[sort] = r
	return r
}

// distinct returns the one ruling that says the same.
func (s *rulings) distinct(r *ruling) *ruling {
	s.name = r.appendTo(s.name[:0])
	if same, ok := s.made.distinct[string(s.name)]; ok {
		return same
	}
	says := string(s.name)
	if same, ok := s.before.distinct[says]; ok {
		r = same
	}
	s.made.distinct[says] = r
	return r
}

// appendTo appends what the ruling says, which no other one says.
func (r *ruling) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.deciders)))
	for _, d := range r.deciders {
		b = binary.AppendUvarint(b, uint64(d.policy))
		b = binary.AppendVarint(b, int64(d.override))
	}
	for _, s := range r.shadows {
		b = binary.AppendUvarint(b, uint64(s.policy))
		b = binary.AppendUvarint(b, uint64(s.by))
	}
	return b
}
