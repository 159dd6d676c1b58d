package capacity

import (
	"math"
	"math/bits"
)

// Well-known resource names. A usable offer holds the first three.
const (
	CPU    = "cpu"
	Memory = "memory"
	Pods   = "pods"
)

// Amounts are quantities by resource name: cpu in milli, every other resource in whole units (bytes, pods, devices).
// A name that is absent is not the same as a name with amount 0.
type Amounts map[string]int64

// Row is a list of amounts in the column order of a View. A Row shorter than the columns reads as 0 beyond its end.
type Row []int64

// At returns the amount in column i, 0 outside the row.
func (r Row) At(i int) int64 {
	if i >= 0 && i < len(r) {
		return r[i]
	}
	return 0
}

// Sum returns a+b, held at the bounds of int64 instead of wrapping around.
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

// Share returns floor(amount x part / whole) without intermediate overflow, held at the largest int64. Arguments must not be
// negative, and whole must be positive.
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
