package capacity

import (
	"math"
	"math/bits"
	"strings"
)

// Well-known resource names. A usable offer has the first three.
const (
	CPU    = "cpu"
	Memory = "memory"
	Pods   = "pods"
)

// Amounts maps resource names to amounts: cpu in milli, every other resource in whole units (bytes,
// pods, devices). An absent name is not the same as an amount of 0.
type Amounts map[string]int64

// Empty reports whether no amount is more than 0.
func (a Amounts) Empty() bool {
	for _, amount := range a {
		if amount > 0 {
			return false
		}
	}
	return true
}

// Less returns the amounts without those of others, of each name what is left above 0. It is nil if nothing is left.
func (a Amounts) Less(others Amounts) Amounts {
	var rest Amounts
	for name, amount := range a {
		if left := amount - others[name]; left > 0 {
			if rest == nil {
				rest = Amounts{}
			}
			rest[name] = left
		}
	}
	return rest
}

// InDevices reports whether the amounts of a resource are devices, such as GPUs: the extended resources
// of Kubernetes, whose names have a domain. Each device matters to a pod, however many there are.
func InDevices(name string) bool { return strings.Contains(name, "/") }

// Row is a list of amounts in the column order of a View. A row that is shorter than the columns
// reads as 0 beyond its end.
type Row []int64

// At returns the amount in column i, 0 outside the row.
func (r Row) At(i int) int64 {
	if i >= 0 && i < len(r) {
		return r[i]
	}
	return 0
}

// Sum returns a+b, limited to the range of int64.
func Sum(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

// Share returns floor(amount x part / whole) without intermediate overflow, at most the largest
// int64. No argument may be negative, and whole must be positive.
func Share(amount, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(amount), uint64(part))
	if hi >= uint64(whole) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(whole))
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}
