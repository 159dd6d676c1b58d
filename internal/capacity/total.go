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

// add adds a row of amounts, none negative, and returns the totals, longer if they had to grow.
func add(totals []total, row Row) []total {
	totals = grow(totals, len(row))
	for i, amount := range row {
		totals[i].add(of(amount))
	}
	return totals
}

// subtract takes off a row that was added before.
func subtract(totals []total, row Row) {
	for i, amount := range row {
		totals[i].subtract(of(amount))
	}
}

// addTotals and subtractTotals are add and subtract for totals.
func addTotals(totals, more []total) []total {
	totals = grow(totals, len(more))
	for i, t := range more {
		totals[i].add(t)
	}
	return totals
}

func subtractTotals(totals, less []total) {
	for i, t := range less {
		totals[i].subtract(t)
	}
}

func grow(totals []total, width int) []total {
	if len(totals) >= width {
		return totals
	}
	grown := make([]total, width)
	copy(grown, totals)
	return grown
}

// fill writes totals as amounts.
func (r Row) fill(totals []total) {
	for i, t := range totals {
		r[i] = t.amount()
	}
}
