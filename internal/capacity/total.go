package capacity

import (
	"math"
	"math/bits"
)

// total is a sum of amounts that cannot overflow, so that what is added can be taken off again exactly: a pod may request
// 2^63-1 bytes, and so may the next one.
type total struct{ hi, lo uint64 }

// amount is the total as an amount, held at the largest int64.
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

// of is an amount, which must not be negative, as a total.
func of(amount int64) total { return total{lo: uint64(amount)} }

// at returns the sum in a place, where the sums may have ended before.
func at(sums *[]total, place int) *total {
	for len(*sums) <= place {
		*sums = append(*sums, total{})
	}
	return &(*sums)[place]
}

// rowOf are totals as amounts. The row of no totals is empty, but not nil.
func rowOf(totals []total) Row {
	row := make(Row, len(totals))
	for i, t := range totals {
		row[i] = t.amount()
	}
	return row
}
