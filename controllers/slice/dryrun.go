package slice

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// DryRun implements table.SliceDecisions.
func (a *decisions) DryRun(termsOf func() *offer.AllocationInput) table.SliceDecisions {
	b := &decisions{
		term: a.term, now: a.now, entries: a.entries, gates: a.gates,
		grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]table.PolicyGrants{},
		awaits: func(string, string, fate, time.Time) time.Duration { return 0 },
	}
	if len(b.entries) == 0 {
		return b
	}
	b.plans = make([]plan, len(a.plans))
	for i := range a.plans {
		b.plans[i] = plan{consumer: a.plans[i].consumer, at: -1}
	}
	b.ask(termsOf())
	b.answers = grant.Settle(b.input, b.asked)
	b.countAll()
	return b
}
