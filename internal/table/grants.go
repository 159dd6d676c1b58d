package table

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
)

// Counting selects what CountGrants counts.
type Counting int

const (
	// GrantedOnly counts what slices have.
	GrantedOnly Counting = iota
	// GrantedAndDecided counts the larger of what slices have and what was decided.
	GrantedAndDecided
)

// CountGrants adds up what slices are granted, by class and consumer ID, and by the policy that
// decides, and counts those that wait. The answers are in the order of the slices.
func CountGrants(asked []grant.Slice, answers []grant.Answer, what Counting) (
	byClass map[string]map[string]capacity.Amounts, byPolicy map[string]PolicyGrants,
) {
	g := grants{byClass: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]PolicyGrants{}}
	for i := range asked {
		g.count(&asked[i], &answers[i], what)
		g.countWaiting(&answers[i])
	}
	return g.byClass, g.byPolicy
}

// grants are the sums so far.
type grants struct {
	byClass  map[string]map[string]capacity.Amounts
	byPolicy map[string]PolicyGrants
}

// countWaiting counts a slice that would be granted more if the pool had more now.
func (g *grants) countWaiting(decided *grant.Answer) {
	waits := func(l grant.Line) bool { return l.Bound == grant.ByPool || l.Bound == grant.Awaited }
	if decided.Policy == nil || !slices.ContainsFunc(decided.Lines, waits) {
		return
	}
	under := g.byPolicy[decided.Policy.Name]
	under.Waiting++
	g.byPolicy[decided.Policy.Name] = under
}

// count adds what a slice is granted, or is about to be.
func (g *grants) count(asked *grant.Slice, decided *grant.Answer, what Counting) {
	next := what == GrantedAndDecided && decided.Verdict == grant.Accept
	if asked.Granted == nil && !next {
		return
	}
	sums := g.byClass[asked.Class]
	if sums == nil {
		sums = map[string]capacity.Amounts{}
		g.byClass[asked.Class] = sums
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
	under := g.byPolicy[decided.Policy.Name]
	if under.Consumers == nil {
		under.Consumers = map[string]ConsumerGrants{}
	}
	under.Slices++
	under.Consumers[asked.Consumer] = ConsumerGrants{Slices: under.Consumers[asked.Consumer].Slices + 1, Amounts: sum}
	g.byPolicy[decided.Policy.Name] = under
}
