package slice

import (
	"maps"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// maxAllocations bounds the rounds of a dry run: what one slice gives up, others may be granted in
// the next round.
const maxAllocations = 16

// DryRun implements table.SliceDecisions.
func (a *decisions) DryRun(termsOf func() *offer.AllocationInput) table.SliceDecisions {
	b := &decisions{
		term: a.term, now: a.now, entries: a.entries, gates: a.gates, grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]table.PolicyGrants{},
		awaits: func(string, string, bool, time.Time) time.Duration { return 0 },
	}
	if len(b.entries) == 0 {
		return b
	}
	b.plans = make([]plan, len(a.plans))
	for i := range a.plans {
		b.plans[i] = plan{consumer: a.plans[i].consumer, at: -1}
	}
	b.decide(termsOf())
	for range maxAllocations {
		if !b.carryOut() {
			break
		}
		b.answers = grant.Allocate(b.input, b.asked)
	}
	b.countAll()
	return b
}

// carryOut gives each slice what was decided, and reports whether that changed anything.
func (a *decisions) carryOut() (changed bool) {
	for i := range a.asked {
		s, decided := &a.asked[i], &a.answers[i]
		if s.Pinned || decided.Verdict != grant.Accept {
			continue
		}
		moved := s.GrantedIn != "" && s.GrantedIn != s.Class || decided.Policy != nil && s.GrantedBy != decided.Policy.Name
		if has := decided.Amounts(); moved || !maps.Equal(has, s.Granted) {
			s.Granted, s.GrantedIn, changed = has, s.Class, true
			if decided.Policy != nil {
				s.GrantedBy = decided.Policy.Name
			}
		}
	}
	return changed
}
