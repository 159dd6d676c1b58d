package offer

import (
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// Source is the origin of an amount.
type Source int

const (
	// FromFixed is an amount that the policy names.
	FromFixed Source = iota
	// FromOverride is an amount that an override names.
	FromOverride
	// FromNodes is a share of nodes.
	FromNodes
	// FromExternal is an amount that an external source has answered.
	FromExternal
	// FromRevocation is the explicit 0 of a resource that is no longer offered.
	FromRevocation
)

// Step is the arithmetic of one amount, its fields in the order of the computation.
type Step struct {
	Resource string
	Source   Source
	// Fixed is the named amount, for FromFixed, FromOverride and FromExternal.
	Fixed int64
	// Counted is the sum over the nodes, by the policy's Count, and Blocked what is left besides on nodes
	// that take no more pods. They, Reserve and Percent, and the next six fields are for FromNodes.
	Counted, Blocked, Reserve, Percent int64
	// Pool is the policy's share of the nodes, at its level: see Stabilizer. Committed is the part of
	// it that all consumers hold, Own this consumer's part of Committed, and Remaining the rest.
	Pool, Committed, Own, Remaining int64
	// Gives is the part of Pool on nodes that the consumer itself gives, and Taken the part of Gives
	// that consumers' pods use. Both are 0 except for a consumer in a pool of peers.
	Gives, Taken int64
	// Max is the ceiling, unset for no ceiling. If it is a share of Pool, MaxShare is that share in percent, and
	// otherwise 0.
	Max, MaxShare int64
	// Stopped is set if Max is 0 because the policy is stopped.
	Stopped bool
	// Held is the amount that reclaim keeps, unset if it keeps nothing above the offer.
	Held int64
	// Paused is set if Offer is what the consumer had before, because the policy is paused.
	Paused bool
	// Offer is the result.
	Offer int64

	// column is the column of the resource, noColumn for none.
	column int
	// spared is the share of Blocked that stays committed with Evict: that a node is full is no reason to
	// evict pods. It is 0 with other reclaims.
	spared int64
}

// noColumn is the column of a resource that no row has. Row.At reads it as 0.
const noColumn = -1

// unset is the value of Step.Max and Step.Held that are not set.
const unset = -1

// present is the policy's share of what the nodes have at the moment, without regard to the level.
func (s *Step) present() int64 { return s.shareOf(s.Counted) }

// whole is the same as if all nodes took more pods.
func (s *Step) whole() int64 { return s.shareOf(capacity.Sum(s.Counted, s.Blocked)) }

func (s *Step) shareOf(counted int64) int64 {
	return capacity.Share(max(0, counted-s.Reserve), s.Percent, 100)
}

// keeps is what may stay committed of the pool: reclaim takes back the rest. A level that is above what there is
// at the moment has a part of spared already.
func (s *Step) keeps() int64 { return max(s.Pool, min(capacity.Sum(s.Pool, s.spared), s.whole())) }

// Withheld is the part of the pool's remainder that the consumer is not offered, because it gives it
// itself.
func (s *Step) Withheld() int64 { return s.Gives - s.Taken }

// work works out the offer to a consumer that uses and was granted some amounts, before reclaim.
func (s *Step) work(reclaim Reclaim, hasPods bool, used int64, granted optionalAmount) {
	switch s.Source {
	case FromFixed, FromOverride, FromExternal:
		s.Offer = s.Fixed
	case FromNodes:
		s.Own = max(granted.value, used)
		if keeps := s.keeps(); reclaim == Evict && s.Committed > keeps {
			// More is committed than the pool has, and the policy takes it back. Grants have been lowered
			// already; every consumer without a grant gives up the same share.
			if granted.set {
				s.Own = granted.value
			} else {
				s.Own = capacity.Share(s.Own, keeps, s.Committed)
			}
		}
		s.Offer = capacity.Sum(s.Own, max(0, s.Remaining-s.Withheld()))
		switch {
		case s.Gives > 0:
			s.Offer = min(s.Offer, s.Pool-s.Gives)
		case s.Offer == 0 && hasPods && s.spared > 0 && s.keeps() > s.Committed && EvictsAtZero(s.Resource):
			s.Offer = 1
		}
	case FromRevocation:
	}
	if s.Max >= 0 {
		s.Offer = min(s.Offer, s.Max)
	}
}

// limit sets the ceiling of a policy under an override, -1 for no override.
func (s *Step) limit(p *Policy, override int) {
	s.Max, s.Stopped = p.ceiling(s.Resource, override), p.Stopped
	if share := p.maxShare(s.Resource, override); share > 0 && s.Source == FromNodes {
		if most := capacity.Share(s.Pool, share, 100); s.Max == unset || most < s.Max {
			s.Max, s.MaxShare = most, share
		}
	}
}

// ceiling returns the most of a resource that one consumer is offered under an override, -1 for no override. It is
// unset for no limit, and 0 for a policy that is stopped.
func (p *Policy) ceiling(resource string, override int) int64 {
	if p.Stopped {
		return 0
	}
	if override >= 0 {
		if most, ok := p.Overrides[override].Max[resource]; ok {
			return most
		}
	}
	if most, ok := p.Max[resource]; ok {
		return most
	}
	return unset
}

// maxShare returns the most of the pool's amount of a resource that one consumer is offered under an override, -1
// for no override: 1 to 100, or 0 for no limit.
func (p *Policy) maxShare(resource string, override int) int64 {
	if override >= 0 {
		if share := p.Overrides[override].MaxShares.of(resource); share > 0 {
			return share
		}
	}
	return p.MaxShares.of(resource)
}

// optionalAmount is an amount that may be unset.
type optionalAmount struct {
	value int64
	set   bool
}

// hold raises the offer to what reclaim leaves to a consumer that was offered an amount before: what
// its own pods request, up to that amount, and 1 of cpu and memory while it has pods, since Liqo
// evicts them at 0. Retain also holds what was granted.
func (s *Step) hold(reclaim Reclaim, hasPods bool, used, granted, before int64) {
	floor := min(before, used)
	if hasPods && before > 0 && EvictsAtZero(s.Resource) {
		floor = max(floor, 1)
	}
	if reclaim == Retain {
		floor = max(floor, granted)
	}
	if floor > s.Offer {
		s.Held, s.Offer = floor, floor
	}
}

// pause keeps the amount before, if it is known. A consumer that had none of its own keeps what it uses and was
// granted, which reclaim has held.
func (s *Step) pause(before int64, known bool) {
	if known {
		s.Offer = before
	}
	s.Held, s.Paused = unset, true
}

// revocation is the step of a resource that is no longer offered.
func revocation(resource string, column int) Step {
	return Step{Resource: resource, Source: FromRevocation, Max: unset, Held: unset, column: column}
}

func byResource(a, b Step) int { return strings.Compare(a.Resource, b.Resource) }

// columnOf is the column of a resource, noColumn for none.
func columnOf(column map[string]int, resource string) int {
	if c, ok := column[resource]; ok {
		return c
	}
	return noColumn
}
