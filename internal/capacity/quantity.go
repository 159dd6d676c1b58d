package capacity

import (
	"math"
	"slices"
	"strconv"
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

// AmountsOf brings a list of quantities to the units of Amounts. What is negative counts as 0, what
// is too large as the largest amount: a nonsensical figure of one object must not upset the sums of
// all.
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

// Quantity returns an amount as Kubernetes writes it. Bytes are written in powers of two or of ten,
// whichever is shorter, so that what an admin wrote as 2Gi or as 2G reads the same.
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

// Human returns an amount as a person reads it: 7.92 or 500m of cpu, 7.59Gi of memory, 110 pods.
// What Quantity writes with few digits stays as it is, such as 2G or 512Mi. The rest has three
// significant digits and is rounded down by less than 1 %, so that no offer reads as more than it
// is. It is a valid quantity. Where amounts are compared, HumanFormat keeps them apart.
func Human(name string, amount int64) string { return human(name, amount, minDigits) }

// HumanFormat returns how one sentence writes these amounts of a resource. It is Human, with more
// digits where different amounts would read the same, or a larger one as less; where more digits do
// not help, the amounts are exact. Negative amounts, which stand for none, are ignored.
func HumanFormat(name string, amounts ...int64) func(amount int64) string {
	sorted := slices.DeleteFunc(slices.Clone(amounts), func(amount int64) bool { return amount < 0 })
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for digits := minDigits; digits <= maxDigits; digits++ {
		if ordered(name, sorted, digits) {
			return func(amount int64) string { return human(name, amount, digits) }
		}
	}
	return func(amount int64) string { return exact(name, amount) }
}

const (
	// minDigits and maxDigits bound the significant digits of an amount that is not written
	// exactly.
	minDigits = 3
	maxDigits = 6
	// shortBytes is the number of digits up to which an amount of bytes is written exactly.
	shortBytes = 4
	// shortCount is the count from which thousands, millions and so on are written.
	shortCount = 100_000
)

// ordered reports whether sorted and different amounts also read as increasing.
func ordered(name string, sorted []int64, digits int) bool {
	for i := 1; i < len(sorted); i++ {
		less, more := sorted[i-1], sorted[i]
		if more-less > more/64 {
			continue // Rounding is less than 1 % and down, so it cannot bring them together.
		}
		a, errA := resource.ParseQuantity(human(name, less, digits))
		b, errB := resource.ParseQuantity(human(name, more, digits))
		if errA != nil || errB != nil || a.Cmp(b) >= 0 {
			return false
		}
	}
	return true
}

func human(name string, amount int64, digits int) string {
	switch {
	case amount <= 0 || name == CPU && amount < 1000:
		return exact(name, amount)
	case bytes(name):
		text := exact(name, amount)
		if len(strings.TrimRight(text, "kKMGTPEi")) <= shortBytes {
			return text
		}
		return scaled(uint64(amount), 1024, 1024, binaryUnits, digits)
	}
	one := uint64(1)
	if name == CPU {
		one = 1000 // the amount is in thousandths
	}
	if uint64(amount)/one < shortCount {
		return decimal(uint64(amount), one, digits)
	}
	return scaled(uint64(amount), one*1000, 1000, decimalUnits, digits)
}

func exact(name string, amount int64) string {
	q := Quantity(name, amount)
	return q.String()
}

const (
	binaryUnits  = "KMGTPE"
	decimalUnits = "kMGTPE"
)

// scaled writes the amount in the largest unit of which it has at least one. The first unit is
// worth so much, each further one is larger by the step.
func scaled(amount, unit, step uint64, units string, digits int) string {
	i := 0
	for ; i < len(units)-1 && amount/unit >= step; i++ {
		unit *= step
	}
	text := decimal(amount, unit, digits) + units[i:i+1]
	if units == binaryUnits {
		text += "i"
	}
	return text
}

// decimal writes amount/unit, rounded down to so many significant digits, and never within the
// whole part. The unit is at most 2^60.
func decimal(amount, unit uint64, digits int) string {
	text := strconv.AppendUint(nil, amount/unit, 10)
	whole, rest := len(text), amount%unit
	if digits <= whole {
		return string(text)
	}
	text = append(text, '.')
	for range digits - whole {
		rest *= 10
		text = append(text, '0'+byte(rest/unit))
		rest %= unit
	}
	return strings.TrimRight(strings.TrimRight(string(text), "0"), ".")
}

func bytes(name string) bool {
	switch name {
	case Memory, "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}
