package table

import (
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// Counting selects what CountGrants counts.
type Counting int

const (
	// GrantedOnly counts what slices have.
	GrantedOnly Counting = iota
	// GrantedAndDecided counts the larger of what slices have and what was decided.
	GrantedAndDecided
)

// GrantCounts holds the sums of what slices are granted. It never changes.
type GrantCounts struct {
	byClass  map[string]map[string]capacity.Amounts
	by       map[string]map[string][]string
	byPolicy map[string]PolicyGrants
}

// CountGrants adds up what slices are granted, by class and consumer ID, and by the policy that
// decides, and counts those that wait. The answers are in the order of the slices.
func CountGrants(asked []grant.Slice, answers []grant.Answer, what Counting) *GrantCounts {
	g := &GrantCounts{
		byClass: map[string]map[string]capacity.Amounts{}, by: map[string]map[string][]string{},
		byPolicy: map[string]PolicyGrants{},
	}
	for i := range asked {
		g.count(&asked[i], &answers[i], what)
		g.countWaiting(&answers[i])
	}
	return g
}

// Granted implements SliceDecisions.
func (g *GrantCounts) Granted() map[string]map[string]capacity.Amounts { return g.byClass }

// GrantedBy implements SliceDecisions.
func (g *GrantCounts) GrantedBy() map[string]map[string][]string { return g.by }

// Under implements SliceDecisions.
func (g *GrantCounts) Under(policy string) PolicyGrants { return g.byPolicy[policy] }

// countWaiting counts a slice that would be granted more if the pool had more now, and one that waits for a node.
func (g *GrantCounts) countWaiting(decided *grant.Answer) {
	waits := slices.ContainsFunc(decided.Lines, func(l grant.Line) bool {
		return l.Bound == grant.ByPool || l.Bound == grant.BySeat || l.Bound == grant.Awaited
	})
	lost := seatLost(decided)
	if decided.Policy == nil || !waits && !lost {
		return
	}
	under := g.byPolicy[decided.Policy.Name]
	if waits {
		under.Waiting++
	}
	if lost {
		under.SeatsLost++
	}
	g.byPolicy[decided.Policy.Name] = under
}

// count adds what a slice is granted, or is about to be, or what its pods use or is on record if that is more.
// What a slice has counts in the class that it was granted in: until the slice is answered in another one,
// nothing of it is free there.
func (g *GrantCounts) count(asked *grant.Slice, decided *grant.Answer, what Counting) {
	next := what == GrantedAndDecided && decided.Verdict == grant.Accept
	if asked.Granted == nil && !next && len(asked.Used) == 0 && len(asked.Recorded) == 0 {
		return
	}
	if decided.Policy == nil && asked.Granted.Empty() && asked.Used.Empty() && asked.Recorded.Empty() {
		return // It was taken back: its consumer is known no longer for it.
	}
	has := asked.Granted
	if asked.GrantedIn != "" && asked.GrantedIn != asked.Class {
		g.countFormer(asked)
		has = nil
	}
	sum, some := g.sum(asked.Class, asked.Consumer), false
	for i := range decided.Lines { // Every granted resource has a line.
		l := &decided.Lines[i]
		amount, granted := has[l.Resource]
		if next && l.Listed {
			amount, granted = max(amount, l.Granted), true
		}
		if more := max(asked.Used[l.Resource], asked.Recorded[l.Resource]); more > amount {
			amount, granted = more, true
		}
		if granted {
			some = some || amount > 0 && (next || asked.Granted != nil || asked.Recorded != nil)
			sum[l.Resource] = capacity.Sum(sum[l.Resource], amount)
		}
	}
	moved := has != nil && asked.GrantedBy != "" && !offer.SameButSeats(asked.GrantedBy, decided.Granter)
	if decided.Policy == nil || moved {
		g.addOrigin(asked.Class, asked)
	}
	if decided.Policy != nil && some {
		g.countUnder(decided.Policy.Name, asked.Consumer, sum)
	}
}

// countFormer adds what a slice has in another class.
func (g *GrantCounts) countFormer(asked *grant.Slice) {
	sum, some := g.sum(asked.GrantedIn, asked.Consumer), false
	for name, amount := range asked.Granted {
		some = some || amount > 0
		sum[name] = capacity.Sum(sum[name], amount)
	}
	g.addOrigin(asked.GrantedIn, asked)
	for _, by := range offer.PoliciesOf(asked.GrantedBy) {
		if some {
			g.countUnder(by, asked.Consumer, sum)
		}
	}
}

// addOrigin notes which granter granted what a slice has in a class, empty for an unknown one.
func (g *GrantCounts) addOrigin(class string, asked *grant.Slice) {
	of := g.by[class]
	if of == nil {
		of = map[string][]string{}
		g.by[class] = of
	}
	granters := offer.Granters(asked.GrantedBy)
	if len(granters) == 0 {
		granters = []string{""}
	}
	for _, by := range granters {
		if !slices.Contains(of[asked.Consumer], by) {
			of[asked.Consumer] = append(of[asked.Consumer], by)
		}
	}
}

// sum returns the sum of a consumer in a class, to be added to.
func (g *GrantCounts) sum(class, consumer string) capacity.Amounts {
	sums := g.byClass[class]
	if sums == nil {
		sums = map[string]capacity.Amounts{}
		g.byClass[class] = sums
	}
	if sums[consumer] == nil {
		sums[consumer] = capacity.Amounts{}
	}
	return sums[consumer]
}

// countUnder counts a slice under a policy. It is summed up in its class: one consumer's slices of a class are all
// under one policy.
func (g *GrantCounts) countUnder(policy, consumer string, sum capacity.Amounts) {
	under := g.byPolicy[policy]
	if under.Consumers == nil {
		under.Consumers = map[string]ConsumerGrants{}
	}
	under.Slices++
	under.Consumers[consumer] = ConsumerGrants{Slices: under.Consumers[consumer].Slices + 1, Amounts: sum}
	g.byPolicy[policy] = under
}
