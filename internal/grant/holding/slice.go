package holding

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
)

// MaxRequested is the number of resources that a request may name, as many as a policy may. Explicit zeros
// of an answer stop there too.
const MaxRequested = 64

// Slice is one ResourceSlice at one moment, as a decision reads it: its request, its answer, and the grant
// that counts. It never changes. Its maps may be shared.
type Slice struct {
	// Key is namespace/name. UID distinguishes slices of one name.
	Key string
	UID string
	// Created is the creation time in this cluster, in Unix seconds.
	Created int64
	Class   string
	Request capacity.Amounts
	// Labels holds the labels of the slice. Only filters read them.
	Labels map[string]string
	// Nodes holds the labels by which the request narrows the nodes of its seat.
	Nodes map[string]string
	// Invalid marks a request that makes no sense.
	Invalid, Deleting bool
	// Answer stands in the status, whoever wrote it.
	Answer Answer
	// RemovedAt is the time at which the slice was found gone, zero for one that exists.
	RemovedAt time.Time

	// Creator is the name by which pods refer to the slice. It is set if the slice holds anything.
	Creator string
	// Used is the use of pods that is known without the Creator. The operator leaves it empty.
	Used capacity.Amounts
	// Holds lists the amounts that count as granted, by class.
	Holds protocol.Shares
	// Recorded is set if there is, or may be, a record; Present is the class of the record. Released
	// marks a record of which only pods hold something.
	Recorded, Released bool
	Present            string
	// Settled is set if an answer of this term is confirmed in the class of the slice.
	Settled bool
	// Former is the class of the last grant, and SettledInFormer is set if an answer of this term is confirmed
	// there. MovedTo is set if the slice is decided on in Former, although it has moved: see custody.
	Former, MovedTo string
	SettledInFormer bool
	// Vouched lists the amounts that this term answers for. They were on record, or adopted, when it began, or
	// the last answer of the term in their class accepted them. A record can hold more: a delayed write of an
	// earlier leader may be made in this term.
	Vouched protocol.Shares
	// Sent is set while the outcome of an answer is not known. Ours is the last answer that a write of
	// this term is known to have made, nil for none.
	Sent bool
	Ours *Answer
	// Writing is set while a worker writes, Stuck if no answer can be written to this version, however
	// small.
	Writing, Stuck bool
}

// Answer holds the part of an answer that decisions depend on.
type Answer struct {
	// Class is the class that the operator answered in, empty for an answer that was read.
	Class string
	// Given is set for any answer, Accepted for one that accepts. Own is set if the operator wrote it, judged
	// by its content.
	Given, Accepted, Own bool
	Amounts              capacity.Amounts
}

// SetHolds sets the amounts that count as granted, by class, and the fields that follow from the record.
func (c *Slice) SetHolds(holds protocol.Shares, grants *protocol.Entry) {
	c.Holds, c.Recorded, c.Released = holds, grants.Recorded(), grants.Released()
	c.Present = grants.Present()
	if c.Former = c.Present; c.Former == "" && len(holds) == 1 { // Its record is not confirmed yet.
		c.Former = holds[0].Class
	}
	c.Settled, c.SettledInFormer = grants.Settled(c.Class), grants.Settled(c.Former)
}

// Gone reports whether the slice does not exist any more.
func (c *Slice) Gone() bool { return !c.RemovedAt.IsZero() }

// Compare orders slices by key, and slices of one name by UID.
func (c *Slice) Compare(o *Slice) int {
	return cmp.Or(cmp.Compare(c.Key, o.Key), cmp.Compare(c.UID, o.UID))
}

// HoldsForPods reports whether something counts that was held in another class, or more than the
// answer accepts. How much of it counts depends on pods, and changes without the slice.
func (c *Slice) HoldsForPods() bool {
	return len(c.Holds) > 1 ||
		len(c.Holds) == 1 && (c.Holds[0].Class != c.Class || !c.Standing(c.Holds[0]).Same(c.Holds[0]))
}

// OfLiqo reports whether Liqo itself answers the class of the slice.
func (c *Slice) OfLiqo() bool { return c.Class == "" || c.Class == LiqoClass }

// answeredIn reports whether the last answer of this term is in the class.
func (c *Slice) answeredIn(class string) bool { return c.Ours != nil && c.Ours.Class == class }

// answeredLast returns the class of the last answer of this term or, before the first, of the record.
func (c *Slice) answeredLast() string {
	if c.Ours != nil {
		return c.Ours.Class
	}
	return c.Present
}

// Standing returns how much of a share stands as accepted: by the answer of this term in its class
// if there is one, whatever others have written since.
func (c *Slice) Standing(held protocol.Share) protocol.Share {
	a := &c.Answer
	if c.answeredIn(held.Class) {
		a = c.Ours
	}
	if !a.Accepted {
		return held.Least(nil)
	}
	return held.Least(a.Amounts)
}

// MayStand returns Standing or, where no answer stands any more, what its Quota may hold:
// everything on record if the outcome of an answer is not known, else what is vouched for.
func (c *Slice) MayStand(held protocol.Share) protocol.Share {
	switch {
	case c.Sent:
		return held
	case c.answeredIn(held.Class), c.Answer.Accepted:
		return c.Standing(held)
	}
	return c.vouchedOf(held)
}

// vouchedOf returns how much of a share this term answers for.
func (c *Slice) vouchedOf(held protocol.Share) protocol.Share {
	return held.Least(c.Vouched.In(held.Class).Amounts)
}

// granted returns the amounts that a slice has, and an explicit 0 for everything else that stands
// in it as accepted or is on record: denying it would leave its Quota in place. Nil is nothing.
func (c *Slice) granted(has protocol.Share, recorded bool) capacity.Amounts {
	if !c.Answer.Accepted && !recorded && has.Empty() {
		return nil
	}
	out := capacity.Amounts{}
	if has.Empty() && !c.Answer.Own {
		out[capacity.CPU], out[capacity.Memory] = 0, 0
	}
	if c.Answer.Accepted {
		named := c.Answer.Amounts
		if c.answeredIn(has.Class) && c.Ours.Accepted {
			named = c.Ours.Amounts
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if len(out) < MaxRequested {
				out[name] = 0
			}
		}
	}
	maps.Copy(out, has.Amounts)
	return out
}
