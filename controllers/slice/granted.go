package slice

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/table"
)

// Granted implements table.SliceDecisions.
func (a *decisions) Granted() map[string]map[string]capacity.Amounts { return a.grants }

// Under implements table.SliceDecisions.
func (a *decisions) Under(policy string) table.PolicyGrants { return a.byPolicy[policy] }

// countAll adds up what all slices are granted, or are about to be.
func (a *decisions) countAll() {
	for i := range a.asked {
		a.count(&a.asked[i], &a.answers[i])
	}
}

// count adds what a slice is granted, or is about to be.
func (a *decisions) count(asked *grant.Slice, decided *grant.Answer) {
	next := a.term != "" && decided.Verdict == grant.Accept
	if asked.Granted == nil && !next {
		return
	}
	sums := a.grants[asked.Class]
	if sums == nil {
		sums = map[string]capacity.Amounts{}
		a.grants[asked.Class] = sums
	}
	sum := sums[asked.Consumer]
	if sum == nil {
		sum = capacity.Amounts{}
		sums[asked.Consumer] = sum
	}
	some := false
	for i := range decided.Lines { // Every granted resource has a line.
		l := &decided.Lines[i]
		amount, granted := asked.Granted[l.Resource]
		if next && l.Listed {
			amount, granted = max(amount, l.Granted), true
		}
		if used := asked.Used[l.Resource]; used > amount {
			amount, granted = used, true
		}
		if granted {
			some = some || amount > 0
			sum[l.Resource] = capacity.Sum(sum[l.Resource], amount)
		}
	}
	if decided.Policy == nil || !some {
		return
	}
	// One consumer's slices of a class are all under one policy.
	under := a.byPolicy[decided.Policy.Name]
	if under.Consumers == nil {
		under.Consumers = map[string]table.ConsumerGrants{}
	}
	under.Slices++
	under.Consumers[asked.Consumer] = table.ConsumerGrants{Slices: under.Consumers[asked.Consumer].Slices + 1, Amounts: sum}
	a.byPolicy[decided.Policy.Name] = under
}
