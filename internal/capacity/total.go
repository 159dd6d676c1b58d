package capacity

import (
	"math"
	"math/bits"
)

// total is a sum of amounts that cannot overflow, so that an amount can be subtracted again
// exactly: several pods may each request 2^63-1 bytes.
type total struct{ hi, lo uint64 }

// amount returns the total as an amount, at most the largest int64.
func (t total) amount() int64 {
	if t.hi > 0 || t.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.lo)
}

func (t *total) add(o total) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, o.lo, 0)
	t.hi, _ = bits.Add64(t.hi, o.hi, carry)
}

func (t *total) subtract(o total) {
	var borrow uint64
	t.lo, borrow = bits.Sub64(t.lo, o.lo, 0)
	t.hi, _ = bits.Sub64(t.hi, o.hi, borrow)
}

// replace subtracts an amount and adds another one.
func (t *total) replace(before, after int64) {
	t.subtract(totalOf(before))
	t.add(totalOf(after))
}

// totalOf returns an amount, which must not be negative, as a total.
func totalOf(amount int64) total { return total{lo: uint64(amount)} }

// totalAt returns the total in a column, extending the totals to it.
func totalAt(totals *[]total, column int) *total {
	for len(*totals) <= column {
		*totals = append(*totals, total{})
	}
	return &(*totals)[column]
}

// rowOf returns totals as amounts. The row of no totals is empty, not nil.
func rowOf(totals []total) Row {
	row := make(Row, len(totals))
	for i, t := range totals {
		row[i] = t.amount()
	}
	return row
}
