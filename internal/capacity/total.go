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

// add adds a row of amounts, none negative, and returns the totals, longer if they had to grow.
func add(totals []total, row Row) []total {
	if len(totals) < len(row) {
		grown := make([]total, len(row))
		copy(grown, totals)
		totals = grown
	}
	for i, amount := range row {
		var carry uint64
		totals[i].lo, carry = bits.Add64(totals[i].lo, uint64(amount), 0)
		totals[i].hi += carry
	}
	return totals
}

// subtract takes off a row that was added before.
func subtract(totals []total, row Row) {
	for i, amount := range row {
		var borrow uint64
		totals[i].lo, borrow = bits.Sub64(totals[i].lo, uint64(amount), 0)
		totals[i].hi -= borrow
	}
}
