package offer

import (
	"sync/atomic"

	"proffer.dev/proffer/internal/capacity"
)

// Input is everything an evaluation depends on.
type Input struct {
	// Policies are all the valid policies, in any order. One that is not valid takes no part.
	Policies []Policy
	// Consumers are the known consumers, each once, in any order. Those that a policy names, and those with pods or grants,
	// need not be among them.
	Consumers []Consumer
	// View is the account. Its Pools answer Selections(Policies), in that order.
	View capacity.View
	// Grants are what ResourceSlices have been given, by class and consumer ID.
	Grants map[string]map[string]capacity.Amounts
}

// Result is what an evaluation found. It never changes once made.
type Result struct {
	// Entries hold every known consumer, by ID.
	Entries map[string]*Entry
	// Anyone is what a consumer is offered that is not in Entries.
	Anyone *Entry
	// Reports say what came of each policy, by name.
	Reports map[string]*Report
}

// Entry is all that one consumer is offered. Its identity stays the same for as long as nothing in it changes, and consumers
// with equal offers may share one.
type Entry struct {
	// Offers are sorted by class; the caller must not change them.
	Offers []*Offer

	encoded [2]atomic.Pointer[[]byte]
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

// Report is what came of one policy.
type Report struct {
	Outcome Outcome
	// Missing are those of cpu, memory and pods that some consumer is not offered, sorted; set with Incomplete.
	Missing []string
	// ShadowedBy are the policies that decide for all of this one's consumers, sorted; set with Shadowed.
	ShadowedBy []string
	// NodeCount is how many nodes there are in the pool; it and the three amounts are set for a policy of nodes.
	NodeCount                      int
	Capacity, Committed, Remaining capacity.Amounts
	// Consumers are those for which the policy decides (in a dry run, would decide), sorted by ID.
	Consumers []ConsumerReport
	// Zeroed are consumers that have pods and are offered no cpu or no memory: their pods are about to be evicted. Sorted.
	Zeroed []string
	// Held are consumers whose offer reclaim keeps above what the policy gives. Sorted.
	Held []string
}

// ConsumerReport is what one consumer is offered by a policy.
type ConsumerReport struct {
	ID    string
	Offer *Offer
}

// Outcome is what came of a policy, in one word.
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
	// Incomplete: some consumer is not offered cpu, memory and pods, all three of which a virtual node needs.
	Incomplete
)
