package holding

import "cmp"

// custody says in which class a slice is decided on.
type custody int

const (
	// byOthers: in no class of ours. Liqo or another controller answers the slice.
	byOthers custody = iota
	// byClass: in its class, which is served, or was when the slice was granted something there.
	byClass
	// byFormerClass: in the class of its last grant. The slice has moved to a class that no policy serves,
	// and no other controller has answered it there. So the Quota is still that of our answer, and the
	// grant, and what its pods use of classes before that, is kept and lowered as if the slice had stayed.
	byFormerClass
)

// custody returns in which class the slice is decided on, given whether a policy serves its present one.
// Our answer is only replaced at the version that was read, so another controller that answers at the
// same time is never overwritten.
func (c *Slice) custody(served bool) custody {
	switch {
	case served, !c.Holds.In(c.Class).Empty(), c.answeredIn(c.Class):
		return byClass
	case c.Gone(), c.Former == "", len(c.Holds) == 0:
		return byOthers
	case c.Answer.Given && !c.Answer.Own:
		return byOthers
	case c.Former == c.Class: // It was granted nothing here, and its pods use classes before.
		return byClass
	}
	return byFormerClass
}

// inFormerClass returns the slice as if it had stayed in the class of its last grant.
func (c *Slice) inFormerClass() *Slice {
	stays := *c
	stays.MovedTo, stays.Class, stays.Settled = cmp.Or(c.Class, LiqoClass), c.Former, c.SettledInFormer
	return &stays
}
