package offer

import (
	"encoding/binary"
	"maps"
	"slices"
)

// ruling is which policies are for a consumer, and on which terms.
type ruling struct {
	// deciders are the policies that decide, one for a class at most, by class.
	deciders []decider
	// trials are the dry runs that would decide.
	trials []decider
}

type decider struct {
	*plan
	terms *terms
}

// rule works out a ruling, and notes the policies in the shadow of those that decide.
func rule(c Consumer, classes [][]*plan) *ruling {
	r := &ruling{}
	for _, class := range classes {
		var by *plan
		for _, p := range class {
			switch {
			case !p.Consumers.Includes(c):
			case by != nil:
				p.shadows[by.Name] = struct{}{}
			case p.DryRun:
				r.trials = append(r.trials, decider{p, p.termsOf(c)})
			default:
				by = p
				r.deciders = append(r.deciders, decider{p, p.termsOf(c)})
			}
		}
	}
	return r
}

// rulings hold the ruling of each sort of consumer: those that no policy names, and whose labels are the same as far as any
// policy looks at them, are of one sort.
type rulings struct {
	named map[string]struct{}
	// labels are the keys that some policy looks at.
	labels []string
	bySort map[string]*ruling
	sort   []byte
}

func newRulings(scopes []Scope) *rulings {
	named, labels := map[string]struct{}{}, map[string]struct{}{}
	for _, s := range scopes {
		maps.Copy(named, s.IDs)
		if s.Selector == nil {
			continue
		}
		requirements, _ := s.Selector.Requirements()
		for _, r := range requirements {
			labels[r.Key()] = struct{}{}
		}
	}
	return &rulings{named: named, labels: slices.Sorted(maps.Keys(labels)), bySort: map[string]*ruling{}}
}

// of returns the ruling for a consumer.
func (s *rulings) of(c Consumer, classes [][]*plan) *ruling {
	if _, ok := s.named[c.ID]; ok {
		return rule(c, classes)
	}
	s.sort = s.sort[:0]
	for i, key := range s.labels {
		if value, ok := c.Labels[key]; ok {
			s.sort = binary.AppendUvarint(s.sort, uint64(i))
			s.sort = binary.AppendUvarint(s.sort, uint64(len(value)))
			s.sort = append(s.sort, value...)
		}
	}
	r, ok := s.bySort[string(s.sort)]
	if !ok {
		r = rule(c, classes)
		s.bySort[string(s.sort)] = r
	}
	return r
}

// scopes returns all that policies and their overrides say of whom they are for.
func scopes(policies []Policy) []Scope {
	var all []Scope
	for i := range policies {
		all = append(all, policies[i].Consumers)
		for _, o := range policies[i].Overrides {
			all = append(all, o.Consumers)
		}
	}
	return all
}
