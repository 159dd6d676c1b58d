// Package quantity converts between Kubernetes quantities and the amounts of package capacity,
// which knows no Kubernetes type.
package quantity

import (
	"math"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
)

// Rounding is the direction in which a quantity is rounded to the unit of its amounts.
type Rounding int

const (
	// Down is for capacity: a part of a byte cannot be used.
	Down Rounding = iota
	// Up is for requests, like the scheduler counts them.
	Up
)

// AmountsOf converts a list of quantities. A negative quantity becomes 0, one that is too large the
// largest amount: a nonsensical quantity of one object must not distort the sums of all.
func AmountsOf[K ~string](list map[K]resource.Quantity, r Rounding) capacity.Amounts {
	out := make(capacity.Amounts, len(list))
	for name, q := range list {
		out[string(name)] = AmountOf(string(name), q, r)
	}
	return out
}

// AmountOf converts the quantity of one resource, see AmountsOf.
func AmountOf(name string, q resource.Quantity, r Rounding) int64 {
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
	if r == Down && back(v, q.Format).Cmp(q) > 0 {
		v--
	}
	return v
}

// maxCPU is the largest quantity of cpu whose milli fit an int64.
var maxCPU = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)

// maxText bounds the text of a quantity in bytes. The longest useful one is 2^63-1 with a sign, a
// fraction and a suffix.
const maxText = 64

// longExponent matches what would take resource.Quantity minutes and gigabytes: "1e999999999" has
// eleven characters.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// Parse reads a quantity that a stranger wrote, and reports whether the text is one of a bearable size.
func Parse(text string) (q resource.Quantity, ok bool) {
	if len(text) > maxText || longExponent.MatchString(text) {
		return q, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// fits reports whether the quantity is within int64 in the unit of its amounts.
func fits(name string, q resource.Quantity) bool {
	if name == capacity.CPU {
		return q.Cmp(maxCPU) <= 0
	}
	return q.CmpInt64(math.MaxInt64) <= 0
}

// ListOf converts amounts, see Of. It returns nil for no amounts.
func ListOf(a capacity.Amounts) corev1.ResourceList {
	if len(a) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(a))
	for name, v := range a {
		out[corev1.ResourceName(name)] = Of(name, v)
	}
	return out
}

// Of converts an amount of a resource. The text of the quantity is capacity.Canonical.
func Of(name string, amount int64) resource.Quantity {
	if name == capacity.CPU {
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	decimal := resource.NewQuantity(amount, resource.DecimalSI)
	if capacity.InBytes(name) {
		if binary := resource.NewQuantity(amount, resource.BinarySI); len(binary.String()) <= len(decimal.String()) {
			return *binary
		}
	}
	return *decimal
}
