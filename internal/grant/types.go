package grant

import (
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Slice is a ResourceSlice that is to be answered: what it asks for, and what it has.
type Slice struct {
	// Key tells slices apart: namespace and name.
	Key             string
	Consumer, Class string
	// Created is the time of creation here, in Unix seconds; of slices of one second the one whose Key comes first is older.
	Created int64
	Request capacity.Amounts
	// Invalid says that the request makes no sense: it gets nothing more than was granted before.
	Invalid bool
	// Granted is what the slice has, nil if it was not accepted.
	Granted capacity.Amounts
	// Used is what the slice's pods use of what it was granted at some time. It counts also where the slice has less by now, as after it has asked
	// for less: pods that run stay.
	Used capacity.Amounts
	// GrantedBy is the policy that Granted came from, and GrantedIn the class that the slice was of then. Where they are not known, they are
	// taken to be those of now.
	GrantedBy, GrantedIn string
	// Reclaim is the reclaim recorded with the grant. It applies where no policy decides on the slice any more.
	Reclaim offer.Reclaim
	// Frozen says that nothing new is to be accepted.
	Frozen bool
	// Pinned says that Granted cannot be taken back now: the status of the slice cannot be written, or the slice is gone or has moved and its
	// pods still run. Whatever reclaim says, the grant counts whole, against its consumer's limit and in the pool it came from, and it is
	// not raised. Nothing that it holds is promised to other slices.
	Pinned bool
}

// Verdict is how a slice is answered.
type Verdict int

const (
	// Deny grants nothing to a slice that has nothing.
	Deny Verdict = iota
	// Accept grants Amounts, which may be all 0 where everything is taken back.
	Accept
)

// Answer is the decision on one slice, with all that is needed to explain it.
type Answer struct {
	Verdict Verdict
	// Policy decides, nil if none does any more.
	Policy *offer.Policy
	// Lines are what was asked for, what stands in for it, and what was granted before; sorted by resource.
	Lines []Line
	// Invalid and Frozen are those of the slice.
	Invalid, Frozen bool
}

// Line is the decision on one resource.
type Line struct {
	Resource string
	// Asked is what the request names, or the policy's default for it, -1 if neither does. Of a request that makes no sense it is what was granted
	// before.
	Asked int64
	// Granted is what the slice has now.
	Granted int64
	// Listed is false where the resource was never granted and is not offered: the answer does not name it.
	Listed bool
	// Bound is what kept Granted below Asked.
	Bound Bound
	// Left is the most that the slice could have had, for ByPool; what the consumer may have in all its slices of the class, for
	// ByMax, ByFixed and ByOverride; what the slice is to have once others have given it up, for Awaited.
	Left int64
	// Others is what other slices of the consumer have of Left, for ByMax, ByFixed and ByOverride.
	Others int64
}

// Bound is what keeps a grant below the request.
type Bound int

const (
	// Unbound grants what was asked for, or more where reclaim keeps it.
	Unbound Bound = iota
	// ByPool: no more remains of the pool.
	ByPool
	// ByMax, ByFixed and ByOverride: the policy gives one consumer no more.
	ByMax
	ByFixed
	ByOverride
	// NotOffered: the policy does not offer the resource.
	NotOffered
	// Withheld: there would be enough of this one, but not of another, and the policy grants all or nothing.
	Withheld
	// Useless: there would be enough of this one, but there is nothing of another that a virtual node cannot do without.
	Useless
	// ByFreeze: nothing new is accepted.
	ByFreeze
	// Withdrawn: no policy decides any more.
	Withdrawn
	// Awaited: more is being taken back from others. Until then the slice has what is free now.
	Awaited
	// ByPin: what the slice has cannot be changed now.
	ByPin
)

// Amounts are the resources to name in the answer. What was granted once and is not any more stands as an explicit 0.
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

// Whole reports whether all that was asked for is granted.
func (a *Answer) Whole() bool {
	for _, l := range a.Lines {
		if l.Granted < l.Asked {
			return false
		}
	}
	return a.Verdict == Accept
}
