package trends

import "math"

// number is an amount with 8 significant bits: the first half of a float32. That is exact enough for a line, and a
// quarter of the memory of an int64.
type number uint16

// unknown is the number of an amount that nobody knows.
const unknown number = 0x7fc0

// numberOf rounds an amount to the nearest number.
func numberOf(amount int64) number {
	bits := math.Float32bits(float32(amount))
	return number((bits + 0x7fff + bits>>16&1) >> 16)
}

// float returns the amount, NaN for one that is not known.
func (n number) float() float64 { return float64(math.Float32frombits(uint32(n) << 16)) }
