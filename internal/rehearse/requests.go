package rehearse

import (
	"cmp"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Requests are ResourceSlices outside of the operator: what they ask for, have and hold, but not the gates
// and the writes under way that the operator decides by. They never change.
type Requests []table.DecidedSlice

// Granted implements table.SliceDecisions: they are not decided on, so it does not matter.
func (Requests) Granted() map[string]map[string]capacity.Amounts { return nil }

// GrantedBy implements table.SliceDecisions, likewise.
func (Requests) GrantedBy() map[string]map[string][]string { return nil }

// Under implements table.SliceDecisions.
func (Requests) Under(string) table.PolicyGrants { return table.PolicyGrants{} }

// All implements table.SliceDecisions.
func (r Requests) All(yield func(table.DecidedSlice) bool) {
	for i := range r {
		if !yield(r[i]) {
			return
		}
	}
}

// DryRun implements table.SliceDecisions by the decision of the operator.
func (r Requests) DryRun(termsOf func() *offer.AllocationInput) table.SliceDecisions {
	if len(r) == 0 {
		return r
	}
	in := holding.Input{
		Terms: termsOf(), Slices: make([]*holding.Slice, len(r)), Gates: make([]holding.Gate, len(r)),
		Consumers: make([]string, len(r)),
	}
	for i := range r {
		in.Slices[i], in.Gates[i], in.Consumers[i] = stateOf(&r[i]), holding.Open, r[i].Consumer
		if r[i].Frozen {
			in.Gates[i] = holding.Cordoned
		}
	}
	made, d := holding.Rehearse(in), &decided{requests: slices.Clone(r)}
	for i := range d.requests {
		s := &d.requests[i]
		s.Answer = nil
		if at := made.Verdicts[i].At; at >= 0 {
			s.Slice, s.Answer = made.Asked[at], &made.Answers[at]
			answer, problem := s.Answer, cmp.Or(s.Problem, "the request is not valid") // Not the whole decision is kept.
			s.Because = func() string { return answer.Because(problem) }
		}
	}
	d.GrantCounts = table.CountGrants(made.Asked, made.Answers, table.GrantedAndDecided)
	return d
}

// stateOf returns a slice as a decision reads it: everything that it has stands in it as answered, and is on record.
// A part that cannot be taken back is a slice of its own to which no answer can be written. Falling amounts
// count as given up already.
func stateOf(s *table.DecidedSlice) *holding.Slice {
	accepted, recorded := s.Slice.Granted != nil, s.Remaining()
	if len(s.Recorded) > 0 && cmp.Or(s.GrantedIn, s.Class) == s.Class {
		recorded = s.Recorded
	}
	c := &holding.Slice{
		Key: s.Key, UID: s.UID, Created: s.Created, Class: s.Class, Request: s.Request, Labels: s.Labels,
		Nodes: s.Nodes, Invalid: s.Invalid, Used: s.Used, Stuck: s.Pinned, Sent: s.Pinned,
		Answer: holding.Answer{Given: accepted, Accepted: accepted, Own: true, Amounts: s.Slice.Granted},
	}
	if c.Creator = s.Slice.Creator; c.Creator != "" {
		c.Used = nil // It follows from the pods.
	}
	var grants protocol.Entry
	grants.Begin(&protocol.Record{Present: protocol.Share{
		Class: cmp.Or(s.GrantedIn, s.Class), Policy: s.GrantedBy, Reclaim: s.Reclaim, Amounts: recorded,
	}}, "")
	c.SetHolds(grants.OnRecord(), &grants)
	c.Vouched = c.Holds
	return c
}

// decided are Requests with decisions.
type decided struct {
	*table.GrantCounts
	requests Requests
}

func (d *decided) All(yield func(table.DecidedSlice) bool) { d.requests.All(yield) }

func (d *decided) DryRun(terms func() *offer.AllocationInput) table.SliceDecisions {
	return d.requests.DryRun(terms)
}
