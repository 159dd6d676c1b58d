package capacity

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Rounding says what becomes of the part of a quantity that is smaller than the unit counted in.
type Rounding int

const (
	// Down suits what there is: a byte that is not whole cannot be had.
	Down Rounding = iota
	// Up suits what is asked for, and is how the scheduler counts requests.
	Up
)

// AmountsOf brings a list of quantities to the units of Amounts. What is negative counts as 0, what is too large as the largest
// amount: a nonsensical figure of one object must not upset the sums of all.
func AmountsOf(list corev1.ResourceList, r Rounding) Amounts {
	out := make(Amounts, len(list))
	for name, q := range list {
		out[string(name)] = AmountOf(string(name), q, r)
	}
	return out
}

// AmountOf is AmountsOf for one resource.
func AmountOf(name string, q resource.Quantity, r Rounding) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	if !Fits(name, q) {
		return math.MaxInt64
	}
	// Value and MilliValue round up.
	v, back := q.Value(), resource.NewQuantity
	if name == CPU {
		v, back = q.MilliValue(), resource.NewMilliQuantity
	}
	if r == Down && back(v, q.Format).Cmp(q) > 0 {
		v--
	}
	return v
}

// maxCPU is the largest amount of cpu, in thousandths, that an int64 holds.
var maxCPU = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)

// Fits reports whether the quantity, in the unit of its resource, is within int64.
func Fits(name string, q resource.Quantity) bool {
	if name == CPU {
		return q.Cmp(maxCPU) <= 0
	}
	return q.CmpInt64(math.MaxInt64) <= 0
}

// Quantities is the way back, for what is shown to an admin; nil for no amounts.
func Quantities(a Amounts) corev1.ResourceList {
	if len(a) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(a))
	for name, v := range a {
		out[corev1.ResourceName(name)] = Quantity(name, v)
	}
	return out
}

// Quantity returns an amount as Kubernetes writes it. Bytes are written in powers of two or of ten, whichever is shorter, so
// that what an admin wrote as 2Gi or as 2G reads the same.
func Quantity(name string, amount int64) resource.Quantity {
	if name == CPU {
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	decimal := resource.NewQuantity(amount, resource.DecimalSI)
	if bytes(name) {
		if binary := resource.NewQuantity(amount, resource.BinarySI); len(binary.String()) <= len(decimal.String()) {
			return *binary
		}
	}
	return *decimal
}

func bytes(name string) bool {
	switch name {
	case Memory, "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}
