package offer

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// policyIndex holds the policies in the order in which they decide. It is immutable.
type policyIndex struct {
	// ordered is sorted by class, then in the order in which policies decide: highest priority, then
	// oldest, then name.
	ordered []*Policy
	byName  map[string]int
	// pools holds the index of each policy's pool in the View, noPool for a policy of fixed amounts.
	pools []int
	// classes are the ranges of ordered that are of one class.
	classes []indexRange
	// named holds the consumer IDs that some scope names; labelKeys the label keys that some scope
	// selects by, sorted.
	named     map[string]struct{}
	labelKeys []string
}

// noPool is the pool index of a policy of fixed amounts.
const noPool = -1

// indexRange is the range [first, end).
type indexRange struct{ first, end int }

func newPolicyIndex(policies []Policy) *policyIndex {
	x := &policyIndex{
		ordered: make([]*Policy, len(policies)), byName: make(map[string]int, len(policies)), named: map[string]struct{}{},
	}
	for i := range policies {
		x.ordered[i] = &policies[i]
	}
	slices.SortFunc(x.ordered, func(a, b *Policy) int {
		return cmp.Or(
			strings.Compare(a.Class, b.Class),
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Name, b.Name))
	})
	_, pools := selectionsOf(policies)
	labelKeys := map[string]struct{}{}
	for i, p := range x.ordered {
		x.byName[p.Name] = i
		x.pools = append(x.pools, pools[p])
		if i == 0 || p.Class != x.ordered[i-1].Class {
			x.classes = append(x.classes, indexRange{first: i})
		}
		x.classes[len(x.classes)-1].end = i + 1
		for s := range p.scopes {
			maps.Copy(x.named, s.IDs)
			for _, key := range s.labelKeys() {
				labelKeys[key] = struct{}{}
			}
		}
	}
	x.labelKeys = slices.Sorted(maps.Keys(labelKeys))
	return x
}

// scopes yields the scope of the policy and those of its overrides.
func (p *Policy) scopes(yield func(Scope) bool) {
	if !yield(p.Consumers) {
		return
	}
	for i := range p.Overrides {
		if !yield(p.Overrides[i].Consumers) {
			return
		}
	}
}

// labelKeys returns the label keys that the scope selects by.
func (s Scope) labelKeys() []string {
	if s.Selector == nil {
		return nil
	}
	return s.Selector.Keys()
}

// match is the outcome of matching one consumer against all policies. It is immutable.
type match struct {
	// winners are the policies that decide, at most one for each class, sorted by class.
	winners []winner
	// shadowed are the policies for the consumer that lose to a winner.
	shadowed []shadowed
}

// winner is a policy that decides for a consumer, by its index, and the index of the override that
// includes the consumer, -1 for none.
type winner struct{ policy, override int }

// shadowed is a policy that loses to another one, by their indexes.
type shadowed struct{ policy, by int }

// match matches a consumer against all policies.
func (x *policyIndex) match(c Consumer) *match {
	m := &match{}
	for _, class := range x.classes {
		by := -1
		for i := class.first; i < class.end; i++ {
			p := x.ordered[i]
			switch {
			case p.DryRun, !p.Consumers.Includes(c):
			case by >= 0:
				m.shadowed = append(m.shadowed, shadowed{policy: i, by: by})
			default:
				by = i
				m.winners = append(m.winners, winner{i, p.overrideFor(c)})
			}
		}
	}
	return m
}

// matcher returns one match for all consumers that match alike, so that a match identifies them. It
// is not safe for concurrent use.
type matcher struct {
	*policyIndex
	// byTraits holds matches by what policies can tell consumers apart by: the ID if a scope names it,
	// and the values of labelKeys. byContent holds the distinct matches.
	byTraits, byContent map[string]*match
	key                 []byte
}

func newMatcher(x *policyIndex) *matcher {
	return &matcher{policyIndex: x, byTraits: map[string]*match{}, byContent: map[string]*match{}}
}

// of returns the match of a consumer.
func (m *matcher) of(c Consumer) *match {
	m.key = m.key[:0]
	if _, ok := m.named[c.ID]; ok {
		m.key = append(m.key, 0)
		m.key = binary.AppendUvarint(m.key, uint64(len(c.ID)))
		m.key = append(m.key, c.ID...)
	}
	for i, key := range m.labelKeys {
		if value, ok := c.Labels[key]; ok {
			m.key = binary.AppendUvarint(m.key, uint64(i)+1)
			m.key = binary.AppendUvarint(m.key, uint64(len(value)))
			m.key = append(m.key, value...)
		}
	}
	if known, ok := m.byTraits[string(m.key)]; ok {
		return known
	}
	traits, found := string(m.key), m.match(c)
	m.key = found.appendTo(m.key[:0])
	if same, ok := m.byContent[string(m.key)]; ok {
		found = same
	} else {
		m.byContent[string(m.key)] = found
	}
	m.byTraits[traits] = found
	return found
}

// appendTo appends an encoding of the match that is unique to its content.
func (m *match) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(m.winners)))
	for _, w := range m.winners {
		b = binary.AppendUvarint(b, uint64(w.policy))
		b = binary.AppendVarint(b, int64(w.override))
	}
	for _, s := range m.shadowed {
		b = binary.AppendUvarint(b, uint64(s.policy))
		b = binary.AppendUvarint(b, uint64(s.by))
	}
	return b
}
