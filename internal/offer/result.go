package offer

import (
	"maps"
	"slices"
	"sync/atomic"

	"proffer.dev/proffer/internal/capacity"
)

// Input is everything an evaluation depends on. Nothing in it may be changed afterwards: the next evaluation takes a list that is the same
// one for unchanged.
type Input struct {
	// Policies are all the valid policies, in any order. One that is not valid takes no part.
	Policies []Policy
	// Consumers are the known consumers, each once, in any order. Those that a policy names, and those with pods or grants,
	// need not be among them.
	Consumers []Consumer
	// View is the account. Its Pools answer Selections(Policies), in the same order, and its Columns name those of ResourceNames(Policies) and
	// of Grants.
	View capacity.View
	// Grants are what ResourceSlices have been given, by class and consumer ID.
	Grants map[string]map[string]capacity.Amounts
	// Stable are the levels at which pools are given out, by policy and resource, see Stabilizer; of what is not named all that there is.
	Stable map[string]capacity.Amounts
	// Past is what was offered before the first evaluation; the others do not look at it.
	Past []Past
}

// Result is what an evaluation found. It never changes once made.
type Result struct {
	// Entries hold every known consumer, and those known before to whom something was offered that Anyone does not name. Who
	// asks has no part in it.
	Entries Entries
	// Anyone is the default offer: what a consumer reads that is not in Entries. A class that was in it once and is not any
	// more stands in it with explicit zeros, since whoever reads it is not remembered.
	Anyone *Entry
	// Reports say what came of each policy, by name.
	Reports map[string]*Report

	memory
}

// Entries are the entries of consumers, sorted by ID. They never change. The zero Entries are of nobody.
type Entries struct {
	consumers []Consumer
	// groupOf is the place in ofGroups of the entry of each consumer: many are mostly of one group, and change together.
	groupOf  []int32
	ofGroups []*Entry
}

// EntriesOf returns the entries of a map, by ID.
func EntriesOf(byID map[string]*Entry) Entries {
	var e Entries
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		e.consumers, e.groupOf, e.ofGroups = append(e.consumers, Consumer{ID: id}), append(e.groupOf, int32(len(e.ofGroups))), append(e.ofGroups, byID[id])
	}
	return e
}

// Len is how many consumers have an entry.
func (e Entries) Len() int { return len(e.groupOf) }

// Of returns the entry of a consumer, nil if it has none.
func (e Entries) Of(id string) *Entry {
	if i, found := slices.BinarySearchFunc(e.consumers, Consumer{ID: id}, byID); found {
		return e.at(i)
	}
	return nil
}

func (e Entries) at(i int) *Entry { return e.ofGroups[e.groupOf[i]] }

// At returns the i-th entry in the order of IDs, from 0, and whose it is.
func (e Entries) At(i int) (id string, entry *Entry) { return e.consumers[i].ID, e.at(i) }

// All yields each consumer with its entry, in the order of IDs.
func (e Entries) All(yield func(id string, entry *Entry) bool) {
	for i := range e.groupOf {
		if !yield(e.At(i)) {
			return
		}
	}
}

// Changed returns, in their order, the IDs of those who read something else than from the entries before, and true; or false if the two are not
// known to be of the same consumers. Each group is compared once, so where none has changed it takes no time for each consumer.
func (e Entries) Changed(before Entries) (ids []string, known bool) {
	// Groups are made with the list of consumers, but all lists of nobody are alike.
	if !sameList(e.consumers, before.consumers) || len(e.ofGroups) != len(before.ofGroups) {
		return nil, false
	}
	changed := make([]bool, len(e.ofGroups))
	for g, entry := range e.ofGroups {
		changed[g] = !entry.SameAmounts(before.ofGroups[g])
	}
	if !slices.Contains(changed, true) {
		return nil, true
	}
	for i, g := range e.groupOf {
		if changed[g] {
			ids = append(ids, e.consumers[i].ID)
		}
	}
	return ids, true
}

// Entry is all that one consumer is offered. Its identity stays the same for as long as nothing in it changes, and consumers
// with equal offers may share one.
type Entry struct {
	// Offers are sorted by class; the caller must not change them.
	Offers []*Offer

	encoded [2]atomic.Pointer[[]byte]
}

// inForce returns an entry without the offers that are withdrawn: the same one if none is. It may be nil.
func (e *Entry) inForce() *Entry {
	if e == nil || !slices.ContainsFunc(e.Offers, (*Offer).Withdrawn) {
		return e
	}
	return &Entry{Offers: slices.DeleteFunc(slices.Clone(e.Offers), (*Offer).Withdrawn)}
}

// Encoded returns encode(e.Offers), worked out once for each slot (0 or 1) and kept as long as the entry. The caller must not change it.
func (e *Entry) Encoded(slot int, encode func([]*Offer) []byte) []byte {
	if b := e.encoded[slot].Load(); b != nil {
		return *b
	}
	b := encode(e.Offers)
	if !e.encoded[slot].CompareAndSwap(nil, &b) {
		return *e.encoded[slot].Load()
	}
	return b
}

// SameAmounts reports whether a consumer reads the same from both entries, in every form: the flat one says only what is in force.
// Either may be nil, which reads as no offers.
func (e *Entry) SameAmounts(o *Entry) bool {
	if e == o {
		return true
	}
	var a, b []*Offer
	if e != nil {
		a = e.Offers
	}
	if o != nil {
		b = o.Offers
	}
	return slices.EqualFunc(a, b, func(x, y *Offer) bool {
		return x == y || x.Class == y.Class && x.Withdrawn() == y.Withdrawn() && slices.Equal(x.Amounts, y.Amounts)
	})
}

// MaxReported bounds each list of consumers in a Report.
const MaxReported = 100

// Report is what came of one policy.
type Report struct {
	Outcome Outcome
	// Missing are those of cpu, memory and pods that some consumer is not offered, or 0 of by what the policy itself says; Exhausted are those of
	// which nothing is left for some consumer. Both are in the order of needed.
	Missing, Exhausted []string
	// Losses are the known consumers of this policy for which another one decides, by that policy's name.
	Losses []Loss
	// Unknown are the IDs that the policy names and of which nothing else is known, sorted. At most MaxReported.
	Unknown []string
	// Nodes is how many nodes there are in the pool; it and the three amounts are set for a policy of nodes.
	Nodes                          int
	Capacity, Committed, Remaining capacity.Amounts
	// Count is for how many consumers the policy decides (in a dry run, would decide).
	Count int
	// Consumers are the first MaxReported of them: those whose offer is held by reclaim, then the others, each by ID.
	Consumers []ConsumerReport
	// Offered are the names of all resources that the policy offers to anybody, sorted, with those of Policy.Known.
	Offered []string
	// Unlisted are resources that the policy limits and does not offer to anybody, since no node of its pool lists them and no fixed amount is
	// of them: names that have most likely been misspelt. Sorted.
	Unlisted []string
	// Zeroed are consumers, by ID, that have pods and are offered no cpu or no memory: their pods are about to be evicted.
	// At most MaxReported.
	Zeroed []string
	// Withdrawn are consumers, by ID, to whom the same happens since the policy does not decide any more on what it offered them. At most
	// MaxReported.
	Withdrawn []string

	// lacking is what Missing names, exhausted what Exhausted does.
	lacking, exhausted lacks
	// ranks is how many of each rank there are in Consumers.
	ranks [lastRank + 1]int
}

// Loss is for whom one policy decides before another.
type Loss struct {
	// Policy is the one that decides.
	Policy string
	// Count is for how many known consumers; Consumers are the first MaxNamed of them, by ID.
	Count     int
	Consumers []string
}

// MaxNamed bounds the consumers that a Loss names.
const MaxNamed = 5

// ConsumerReport is what one consumer is offered by a policy.
type ConsumerReport struct {
	ID    string
	Offer *Offer
	// Held is true where reclaim keeps some amount above what the policy gives.
	Held bool
}

// Outcome is what came of a policy, in one word; where several apply, the first after Offering.
type Outcome int

const (
	// Offering: the policy decides for its consumers, also where none is known yet.
	Offering Outcome = iota
	// DryRun: the policy was worked out and is not published.
	DryRun
	// Shadowed: other policies decide for each of its consumers.
	Shadowed
	// NoNodes: its selection matches no usable node.
	NoNodes
	// Incomplete: the policy gives some consumer nothing of cpu, memory or pods, all three of which a virtual node needs.
	Incomplete
	// Exhausted: some consumer is offered 0 cpu, memory or pods, since nothing of the pool is left.
	Exhausted
)
