package controllers

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
)

// rounding says what becomes of the part of a quantity that is smaller than the unit counted in.
type rounding int

const (
	// down suits what there is: a byte that is not whole cannot be had.
	down rounding = iota
	// up suits what is asked for, and is how the scheduler counts requests.
	up
)

// amounts brings a list of quantities to the units of the account. What is negative counts as 0, what is too large as the largest
// amount: a nonsensical figure of one object must not upset the sums of all.
func amounts(list corev1.ResourceList, r rounding) capacity.Amounts {
	out := make(capacity.Amounts, len(list))
	for name, q := range list {
		out[string(name)] = amount(string(name), q, r)
	}
	return out
}

func amount(name string, q resource.Quantity, r rounding) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	if !fits(name, q) {
		return math.MaxInt64
	}
	// Value and MilliValue round up.
	v, back := q.Value(), resource.NewQuantity
	if name == capacity.CPU {
		v, back = q.MilliValue(), resource.NewMilliQuantity
	}
	if r == down && back(v, q.Format).Cmp(q) > 0 {
		v--
	}
	return v
}

// fits reports whether the quantity, in the unit of its resource, is within int64.
func fits(name string, q resource.Quantity) bool {
	if name == capacity.CPU {
		return q.CmpInt64(math.MaxInt64/1000) <= 0
	}
	return q.CmpInt64(math.MaxInt64) <= 0
}

// quantities is the way back, for what is shown to an admin.
func quantities(a capacity.Amounts) corev1.ResourceList {
	if len(a) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(a))
	for name, v := range a {
		out[corev1.ResourceName(name)] = capacity.Quantity(name, v)
	}
	return out
}
