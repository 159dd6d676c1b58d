package table

import (
	"cmp"
	"slices"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// Snapshot is the complete result of one evaluation. It never changes once published. A reader
// takes one snapshot and reads only that, so that all values are of the same moment.
type Snapshot struct {
	// Result holds the offers, their reasons and a report for each valid policy.
	*offer.Result
	// Input is the input of Result. It includes the consumers and what counts as granted.
	Input offer.Input
	// Policies are all ResourcePolicies by name, also those that are invalid.
	Policies []Policy
	// Slices are the decisions on ResourceSlices; nil stands for no slices.
	Slices SliceDecisions
	// Peers lists the clusters that can ask for slices; nil stands for none.
	Peers Peers
	// Levels holds the levels of the pools after the evaluation.
	Levels offer.Stabilizer
	// Time is the start of the evaluation.
	Time time.Time
	// Revision counts the snapshots published before this one, and this one. Publish sets it.
	Revision uint64

	// readable are the entries of all consumers with one, known or departed.
	readable offer.Entries
	// places hold every ID of readable. Consecutive snapshots with the same consumers share
	// it.
	places map[string]place
}

// place is the position of a consumer in Snapshot.readable. Its mark is carried over to the next
// snapshot while the ID stays.
type place struct {
	*mark
	at int
}

func (s *Snapshot) entry(p place) *offer.Entry {
	_, entry := s.readable.At(p.at)
	return entry
}

// Granted returns what a policy has granted.
func (s *Snapshot) Granted(policy string) PolicyGrants {
	if s.Slices == nil {
		return PolicyGrants{}
	}
	return s.Slices.Under(policy)
}

// Policy returns the policy of this name, nil for none. The snapshot may be nil.
func (s *Snapshot) Policy(name string) *Policy {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}

// Policy is one ResourcePolicy at one generation.
type Policy struct {
	Name, UID  string
	Generation int64
	// Object is the ResourcePolicy without its status and most of its metadata. It must not be changed.
	Object *v1alpha1.ResourcePolicy
	// Source is the source of the amounts, in the words of the API.
	Source string
	// Deleting is set for a policy that is being deleted. It takes no part.
	Deleting bool
	// Parsed is nil for a policy that is invalid, or being deleted.
	Parsed *offer.Policy
	// Standing and the different Filters in CEL, sorted, decide which policies have filters beyond
	// MaxFilters. Bounded is such a policy as it was parsed, nil for one that is within the bound.
	Standing Standing
	Filters  []string
	Bounded  *offer.Policy
	// Problems list, for an invalid policy, which fields are wrong and what to write instead.
	Problems []string
	// Misspelt lists resource names that Kubernetes does not have, with what to write instead, in a
	// policy that is valid because it was in force before such names became invalid.
	Misspelt []string
	// Offered are the names of the resources that the policy was ever seen to offer, sorted. They
	// outlive edits. The list never changes: there are only ever more names, in a new list.
	Offered []string
}

// DryRun reports whether the policy is valid and not to be put in force.
func (p *Policy) DryRun() bool { return p.Parsed != nil && p.Parsed.DryRun }

// PolicyList is the input that the ResourcePolicies are to an evaluation. It never changes, and it
// is the same list for as long as no policy changes.
type PolicyList struct {
	// All are all policies, sorted by name. Valid are the valid ones, parsed, in the same order;
	// each has the names that it ever offered.
	All   []Policy
	Valid []offer.Policy
	// Selections are the nodes that the valid policies select.
	Selections []capacity.Selection
	// Resources are the names that an evaluation of the policies needs columns for, sorted.
	Resources []string
	// TooManyFilters is set if policies are invalid because of the filters of others.
	TooManyFilters bool
}

// NewPolicyList returns the list of these policies, which are sorted by name. It makes policies invalid that
// have filters beyond MaxFilters.
func NewPolicyList(all []Policy) *PolicyList {
	l := &PolicyList{All: all, Valid: make([]offer.Policy, 0, len(all)), TooManyFilters: boundFilters(all)}
	for i := range all {
		p := &all[i]
		if p.Parsed != nil {
			parsed := *p.Parsed
			parsed.Known = p.Offered
			p.Parsed = &parsed
			l.Valid = append(l.Valid, parsed)
		}
		// A policy that is no longer valid is included, because its offers are held.
		l.Resources = append(l.Resources, p.Offered...)
	}
	l.Selections = offer.Selections(l.Valid)
	l.Resources = append(l.Resources, offer.ResourceNames(l.Valid)...)
	slices.Sort(l.Resources)
	l.Resources = slices.Compact(l.Resources)
	return l
}

// AddNames adds the names that are new to a sorted list while it has fewer than most, and reports
// whether there were any. The list itself does not change.
func AddNames(list, names []string, most int) (longer []string, more bool) {
	before := len(list)
	for _, name := range names {
		if at, known := slices.BinarySearch(list, name); !known && len(list) < most {
			list = slices.Insert(slices.Clip(list), at, name)
		}
	}
	return list, len(list) > before
}

// SliceDecisions holds the decisions of an evaluation on all ResourceSlices. They never change.
type SliceDecisions interface {
	// Granted returns the amounts that count as granted, by class and consumer ID.
	Granted() map[string]map[string]capacity.Amounts
	// GrantedBy returns the granters that granted it, as in offer.Input.
	GrantedBy() map[string]map[string][]string
	// Under returns what one policy has granted.
	Under(policy string) PolicyGrants
	// DryRun decides on the same slices by other terms, until nothing is left to reclaim.
	DryRun(terms func() *offer.AllocationInput) SliceDecisions
	// All yields each slice once, by namespace and name, and then what slices hold that cannot be taken
	// back now.
	All(yield func(DecidedSlice) bool)
}

// DecidedSlice is a ResourceSlice with the decision on it, or a part of what one holds.
type DecidedSlice struct {
	// Namespace and Name identify the slice. UID tells apart what All yields.
	Namespace, Name, UID string
	// User is the name under which the pods of the slice are sent, as in the certificate that Liqo
	// signs for the slice. It derives from the name of the slice and the owner of its tenant namespace,
	// which the consumer cannot change, and is empty without an owner.
	User string
	// Creator returns the label value by which pods name User. It may be nil without one.
	Creator func() string
	// Slice holds the request, and the amounts that counted as granted before the decision. It is
	// Pinned if they cannot be taken back now.
	grant.Slice
	// Gone is set for what a deleted slice has left.
	Gone bool
	// OfOthers is set if another controller has accepted the slice, or had before it was deleted. Its Quota is
	// that of their answer, not of the part of an earlier grant that counts here.
	OfOthers bool
	// Unwritable is set for a slice that no answer can be written to. What it holds is pinned.
	Unwritable bool
	// Written returns the amounts of the request as the slice has them, valid or not. It reads the slice on each
	// call, and is nil for a slice that is not at hand.
	Written func() map[string]string
	// Awaits is set for a slice that nobody has accepted, and that is not decided on: it waits for a policy, or for
	// a gate.
	Awaits bool
	// Stands returns whether the answer in the status accepts the slice, and since when, zero if the status does not
	// say so. It reads the slice on each call, and is nil for a slice that is not at hand.
	Stands func() (accepted bool, since time.Time)
	// Problem says what is wrong with the request, empty for one that is valid.
	Problem string
	// Answer is the decision, nil for a slice that is not answered.
	Answer *grant.Answer
	// Because explains the answer, or its absence. It is computed on each call.
	Because func() string
}

// Accepted reports whether the slice is, or is about to be, accepted.
func (s *DecidedSlice) Accepted() bool {
	return s.Answer != nil && s.Answer.Verdict == grant.Accept || s.Answer == nil && s.Slice.Granted != nil
}

// After returns the grant of the slice after the decision, nil if it is not accepted.
func (s *DecidedSlice) After() capacity.Amounts {
	if s.Answer == nil {
		return s.Slice.Granted
	}
	return s.Answer.Amounts()
}

// Policy is the name of the policy that decides, empty for none.
func (s *DecidedSlice) Policy() string {
	if s.Answer == nil || s.Answer.Policy == nil {
		return ""
	}
	return s.Answer.Policy.Name
}

// Seat is the node from which everything that the slice has is granted, or was before it was lost. It is empty for
// none.
func (s *DecidedSlice) Seat() string {
	last := ""
	if by := offer.Granters(s.GrantedBy); len(by) > 0 {
		last = offer.SeatOf(by[len(by)-1])
	}
	if s.Answer == nil || s.Answer.Seat == nil {
		return last
	}
	return cmp.Or(s.Answer.Seat.Node, s.Answer.Seat.Lost, last)
}

// SeatLost reports whether the node of the slice is not usable any longer, and the slice waits for another one.
func (s *DecidedSlice) SeatLost() bool { return s.Answer != nil && seatLost(s.Answer) }

func seatLost(decided *grant.Answer) bool {
	return decided.Seat != nil && decided.Seat.Lost != "" && decided.Seat.Node == ""
}

// PolicyGrants sums the grants of one policy.
type PolicyGrants struct {
	// Slices is the number of slices that are granted something.
	Slices int32
	// Waiting is the number of slices that are granted less than they request because the pool has no
	// more now.
	Waiting int32
	// SeatsLost is the number of slices whose node is not usable any longer, and that wait for another one.
	SeatsLost int32
	Consumers map[string]ConsumerGrants
}

// ConsumerGrants sums the grants of one consumer's slices under a policy.
type ConsumerGrants struct {
	Slices  int32
	Amounts capacity.Amounts
}
