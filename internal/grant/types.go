package grant

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Slice is a ResourceSlice to answer: what it asks for, and what it has.
type Slice struct {
	// Key identifies the slice: namespace and name.
	Key             string
	Consumer, Class string
	// Created is the creation time in this cluster, in Unix seconds. Of two slices of one second
	// the one with the lower Key is older.
	Created int64
	Request capacity.Amounts
	// Labels holds the labels of the slice. Only filters read them.
	Labels map[string]string
	// Invalid marks a request that makes no sense. The slice is not raised.
	Invalid bool
	// Granted is the slice's present grant, nil if it was not accepted.
	Granted capacity.Amounts
	// Used is the use of the slice's pods at any time since the grant. It counts even if the slice has
	// less now, such as after asking for less: running pods stay.
	Used capacity.Amounts
	// Recorded is on record in the class, by the policy that decides. It counts like Used until an answer that
	// grants less is written: nobody is lowered for it, and the slice itself may be granted all of it.
	Recorded capacity.Amounts
	// Creator is the name by which pods refer to the slice, empty if unknown. Nodes narrow the nodes of its seat by
	// labels.
	Creator string
	Nodes   map[string]string
	// GrantedBy is the granter that Granted came from, or several of which it may have come, see offer.Granters;
	// GrantedIn is the class of the slice at that time. If empty, they are taken to be the present ones.
	GrantedBy, GrantedIn string
	// Reclaim is the reclaim recorded with the grant. It applies if no policy decides any longer.
	Reclaim offer.Reclaim
	// Frozen marks a slice of a cordoned consumer: nothing new is granted.
	Frozen bool
	// Pinned marks a slice whose Granted cannot be taken back now: its status cannot be written, or
	// the slice is gone or has moved and its pods still run. Whatever reclaim says, the whole grant
	// counts against its consumer's limit and in the pool it came from, and is not raised. No other
	// slice waits for it.
	Pinned bool
	// Falling is the part of what is Pinned that lowers nobody, as a rule because a write of this slice is about to
	// give it up. Nobody is granted any of it before that is done; but what others have is kept as if it were gone.
	Falling capacity.Amounts
	// LowersNobody is set if all that is Pinned counts as Falling does, although it is not about to be given up: it
	// counts on nodes on which it may not be.
	LowersNobody bool
}

// Verdict is the kind of answer to a slice.
type Verdict int

const (
	// Deny grants nothing to a slice that has nothing.
	Deny Verdict = iota
	// Accept grants Amounts. They may all be 0 if everything is taken back.
	Accept
)

// Answer is the decision on one slice, with everything that explains it.
type Answer struct {
	Verdict Verdict
	// Policy decides on the slice, nil if none does any longer. Granter is the policy with the nodes that it selects, and
	// with the seat if it has one, empty without one.
	Policy  *offer.Policy
	Granter string
	// Seat is nil for a policy that does not grant from one node.
	Seat *Seat
	// Lines are the resources that were requested, defaulted, used or granted before, sorted by
	// name.
	Lines []Line
	// Missing are the resources that a virtual node needs to run pods and that an accepted slice does
	// not have. It is nil if the policy does not decide about that: for an invalid request, a pinned
	// slice, and without a policy.
	Missing []Missing
	// Invalid and Frozen are copied from the slice.
	Invalid, Frozen bool
	// Ruling is the answer of the policy's filters, and Why their explanation to admins of the
	// provider, often empty.
	Ruling offer.Ruling
	Why    string
}

// Missing is a resource that a virtual node needs to run pods.
type Missing struct {
	Resource string
	// Offered reports whether the policy offers it, so that the slice can ask for it.
	Offered bool
	// Explained is set if the slice asks for it, or has a default: its line says why it is missing.
	Explained bool
}

// Line is the decision on one resource.
type Line struct {
	Resource string
	// Asked is the request's amount, or else the policy's default, -1 for neither. For an invalid
	// request it is the previous grant.
	Asked int64
	// Granted is the slice's amount after the answer.
	Granted int64
	// Default is set if Asked is the policy's default. It is granted up to what is available: it
	// neither makes an answer fall short of the request, nor takes anything from a slice that has it.
	Default bool
	// Listed is false for a resource that was never granted and is not offered: the answer does not
	// name it.
	Listed bool
	// Bound names what kept Granted below Asked.
	Bound Bound
	// Left depends on Bound. ByPool and BySeat: the most that the slice could have. ByMax, ByFixed,
	// ByOverride and ByGiver: the most that the consumer may have in all its slices of the class. Awaited: what
	// the slice will have once others have given it up.
	Left int64
	// Others is the part of Left that the consumer's other slices hold, for ByMax, ByFixed, ByOverride
	// and ByGiver.
	Others int64
}

// Bound names what limits a grant below the request.
type Bound int

const (
	// Unbound: everything asked for is granted, or more if reclaim keeps it.
	Unbound Bound = iota
	// ByPool: no more remains of the pool.
	ByPool
	// ByMax, ByFixed and ByOverride: the policy gives one consumer no more.
	ByMax
	ByFixed
	ByOverride
	// NotOffered: the policy does not offer the resource.
	NotOffered
	// Withheld: there is enough of this resource but not of another, and the policy grants all or
	// nothing.
	Withheld
	// Useless: there is enough of this resource, but nothing of another that a virtual node needs.
	Useless
	// ByFreeze: the consumer is cordoned, so nothing new is granted.
	ByFreeze
	// ByPause: the policy is paused, so nothing new is granted.
	ByPause
	// ByStop: the policy is stopped, so nothing is granted, and reclaim decides what the slice keeps.
	ByStop
	// Withdrawn: no policy decides any longer.
	Withdrawn
	// Awaited: more is being taken back from others. Until then the slice has what is free now.
	Awaited
	// ByPin: the slice is pinned, so its grant cannot change now.
	ByPin
	// ByFilter: a filter of the policy does not admit the request.
	ByFilter
	// ByGiver: the consumer gives the rest of the pool itself, and what a peer gives is not granted to it.
	ByGiver
	// BySeat: the slice is granted from one node, and no more fits on that, or no node has room for it.
	BySeat
	// ByCordon: the node that the slice is granted from is cordoned, so nothing new is granted.
	ByCordon
)

// Amounts returns the amounts to list in the answer, nil for Deny. A resource that is no longer
// granted is listed as 0.
func (a *Answer) Amounts() capacity.Amounts {
	if a.Verdict != Accept {
		return nil
	}
	out := capacity.Amounts{}
	for _, l := range a.Lines {
		if l.Listed {
			out[l.Resource] = l.Granted
		}
	}
	return out
}

// Whole reports whether everything asked for is granted, whatever is granted of the defaults.
func (a *Answer) Whole() bool {
	for _, l := range a.Lines {
		if l.Granted < l.Asked && !l.Default {
			return false
		}
	}
	return a.Verdict == Accept
}
