package grant

import (
	"math"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Prospect holds the amounts that a new ResourceSlice of one consumer in one class would be granted if
// nothing else changes. A slice that asks for exactly what is available is granted in full, if anything
// is available; one that asks for more of any resource is not. Filters of slices are left out: there is
// no request to ask them about.
type Prospect struct {
	// Policy decides, nil for none. The others are empty then.
	Policy *offer.Policy
	// Resources lists the resources that the policy offers, sorted by name.
	Resources []Available
}

// Available is the available amount of one resource.
type Available struct {
	Resource string
	// Amount is the most that a new slice can have, at least 0.
	Amount int64
	// Bound names what limits Amount: ByPool, BySeat, ByMax, ByFixed, ByOverride, ByGiver, or Awaited while
	// other slices have not given up yet what is being taken back from them.
	Bound Bound
	// Ceiling is the most that all slices of the consumer in the class can have together.
	Ceiling int64
}

// Asker is a consumer that may ask for a class.
type Asker struct{ Consumer, Class string }

// Prospects returns the prospect of each asker, in their order, next to all slices as Allocate decides
// on them.
func Prospects(terms *offer.AllocationInput, all []Slice, askers []Asker) []Prospect {
	// For each asker there is a slice that is younger than all others and asks for nothing, so that it
	// changes nothing.
	with := slices.Clip(slices.Clone(all))
	for _, k := range askers {
		with = append(with, Slice{
			Key: prospectKey + k.Class + "/" + k.Consumer, Consumer: k.Consumer, Class: k.Class,
			Created: math.MaxInt64, Invalid: true,
		})
	}
	out := make([]Prospect, len(askers))
	if len(with) == 0 {
		return out
	}
	a := newAllocation(terms, with)
	a.decide()
	for i := range askers {
		out[i] = a.prospect(&a.slices[len(all)+i])
	}
	return out
}

// prospectKey begins the keys of slices that do not exist. No name in Kubernetes contains it.
const prospectKey = "\x00prospect/"

// prospect works out what could be granted to a slice that has nothing.
func (a *allocation) prospect(s *sliceState) Prospect {
	terms := s.group.terms
	if terms == nil {
		return Prospect{}
	}
	p := Prospect{Policy: terms.Policy, Resources: make([]Available, 0, len(terms.Steps))}
	room := a.roomOfOne(s)
	for i := range terms.Steps {
		step := &terms.Steps[i]
		if step.Source == offer.FromRevocation {
			continue
		}
		line := Line{Resource: step.Resource}
		l := lineState{Line: &line, column: a.column[step.Resource]}
		most, limitedBy := s.available(&l, toGrant)
		if s.fits && step.Source == offer.FromNodes && room.At(l.column) < most {
			most, limitedBy.by = room.At(l.column), BySeat
		}
		if before := s.group.before; before != nil {
			line.Granted = most
			if now := (&sliceBefore{groupBefore: before, sameClass: true}).mostNow(s, &l); now < most {
				most, limitedBy.by = max(0, now), Awaited
			}
		}
		if terms.Paused {
			most, limitedBy.by = 0, ByPause
		}
		p.Resources = append(p.Resources, Available{
			Resource: step.Resource, Amount: most, Bound: limitedBy.by, Ceiling: ceilingOf(step),
		})
	}
	slices.SortFunc(p.Resources, func(x, y Available) int { return strings.Compare(x.Resource, y.Resource) })
	return p
}

// roomOfOne returns what the node has that gives a new slice most of what the pool has left for it. Without seats it is
// nil.
func (a *allocation) roomOfOne(s *sliceState) capacity.Row {
	if !s.fits || a.seats == nil {
		return nil
	}
	c := chooser{
		seats: a.seats, pool: a.input.Pools[s.group.poolIndex()].InView, slices: &s.group.terms.Policy.Slices,
	}
	for i := range s.group.terms.Steps {
		step := &s.group.terms.Steps[i]
		l := lineState{Line: &Line{Resource: step.Resource}, column: a.column[step.Resource]}
		if most, _ := s.available(&l, toGrant); step.Source == offer.FromNodes && most > 0 {
			c.needs = append(c.needs, need{column: l.column, amount: most, asked: true})
		}
	}
	if c.search(); c.best == nil {
		return nil
	}
	return c.best.group.room
}

// ceilingOf returns the most that all slices of a consumer can have together.
func ceilingOf(step *offer.Step) int64 {
	limit, by := limitOf(step)
	switch {
	case step.Source != offer.FromNodes:
		return limit
	case by == Unbound:
		return step.Pool
	}
	return min(limit, step.Pool)
}

// Amounts returns the available amounts by resource, also those that are 0.
func (p *Prospect) Amounts() capacity.Amounts {
	out := make(capacity.Amounts, len(p.Resources))
	for i := range p.Resources {
		out[p.Resources[i].Resource] = p.Resources[i].Amount
	}
	return out
}
