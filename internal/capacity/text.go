package capacity

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// InBytes reports whether the amounts of a resource are bytes.
func InBytes(name string) bool {
	switch name {
	case Memory, "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(name, "hugepages-")
}

// Canonical returns an amount exactly, in the canonical form of a Kubernetes quantity: 7920m of
// cpu, 110 pods. Bytes are in powers of two or of ten, whichever is shorter, so that what an admin
// wrote as 2Gi or as 2G reads the same.
func Canonical(name string, amount int64) string {
	if name == CPU {
		return canonical(amount, 1000, milliSuffixes)
	}
	decimal := canonical(amount, 1000, decimalSuffixes)
	if InBytes(name) {
		if binary := canonical(amount, 1024, binarySuffixes); len(binary) <= len(decimal) {
			return binary
		}
	}
	return decimal
}

// HumanFormat returns how one sentence writes these amounts of a resource: as a person reads them,
// such as 7.92 or 500m of cpu, 7.59Gi of memory, 110 pods. A canonical form with few digits stays as
// it is, such as 2G or 512Mi. Others have three significant digits and are rounded down by less than
// 1 %, so that no offer reads as more than it is. Each result is a valid quantity.
//
// There are more digits if different amounts would read the same, or a larger one as less. If more
// digits do not help, the amounts are Exact. Negative amounts, which stand for none, are ignored.
func HumanFormat(name string, amounts ...int64) func(amount int64) string {
	return HumanFormatLike("", name, amounts...)
}

// HumanFormatLike is HumanFormat for amounts beside a sentence that writes the first of them as text:
// it has at least as many digits, so that both write the same amount alike. A text of another form is ignored.
func HumanFormatLike(text, name string, amounts ...int64) func(amount int64) string {
	sorted := slices.DeleteFunc(slices.Clone(amounts), func(amount int64) bool { return amount < 0 })
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for digits := digitsOf(text, name, amounts); digits <= maxDigits; digits++ {
		if readInOrder(name, sorted, digits) {
			return func(amount int64) string { return human(name, amount, digits) }
		}
	}
	return func(amount int64) string { return Exact(name, amount) }
}

// digitsOf returns the number of digits, from minDigits, with which text is the first of the amounts: more than
// maxDigits if it is exact.
func digitsOf(text, name string, amounts []int64) int {
	if text == "" || len(amounts) == 0 {
		return minDigits
	}
	for digits := minDigits; digits <= maxDigits; digits++ {
		if human(name, amounts[0], digits) == text {
			return digits
		}
	}
	if Exact(name, amounts[0]) == text {
		return maxDigits + 1
	}
	return minDigits
}

// Exact returns the whole amount in the notation of HumanFormat: 13.75 of cpu, 64.5Gi of memory. An amount that
// would need too many digits is Canonical, and so is one of bytes that is shorter that way: 10760Mi.
func Exact(name string, amount int64) string {
	canonical := Canonical(name, amount)
	whole := numberIn(canonical)
	for digits := minDigits; digits <= exactDigits; digits++ {
		text := human(name, amount, digits)
		if InBytes(name) && len(text) > len(canonical) {
			break
		}
		if numberIn(text).Cmp(whole) == 0 {
			return text
		}
	}
	return canonical
}

const (
	// minDigits and maxDigits bound the significant digits of an amount that is not written
	// exactly.
	minDigits = 3
	maxDigits = 6
	// exactDigits is enough for cpu: 99,999.999 has eight.
	exactDigits = 8
	// shortBytes is the number of digits up to which an amount of bytes is written exactly.
	shortBytes = 4
	// shortCount is the count from which thousands, millions and so on are written.
	shortCount = 100_000
)

// The suffixes of a quantity, each 1000 or 1024 times the one before.
var (
	milliSuffixes   = []string{"m", "", "k", "M", "G", "T", "P", "E"}
	decimalSuffixes = milliSuffixes[1:]
	binarySuffixes  = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
)

// canonical writes an amount with the largest suffix that leaves it whole.
func canonical(amount, step int64, suffixes []string) string {
	if amount == 0 {
		return "0"
	}
	i := 0
	for ; amount%step == 0 && i < len(suffixes)-1; i++ {
		amount /= step
	}
	return strconv.FormatInt(amount, 10) + suffixes[i]
}

// readInOrder reports whether different amounts, sorted, also read as increasing.
func readInOrder(name string, sorted []int64, digits int) bool {
	for i := 1; i < len(sorted); i++ {
		less, more := sorted[i-1], sorted[i]
		if more-less > more/64 {
			continue // Rounding is down and by less than 1 %, so it cannot make them equal.
		}
		if numberIn(human(name, less, digits)).Cmp(numberIn(human(name, more, digits))) >= 0 {
			return false
		}
	}
	return true
}

// numberIn returns the number that a text of human or Canonical stands for.
func numberIn(text string) *big.Rat {
	digits := strings.TrimRight(text, "mkKMGTPEi")
	number, _ := new(big.Rat).SetString(digits)
	suffix, step := text[len(digits):], int64(1000)
	power := slices.Index(decimalSuffixes, suffix)
	switch {
	case suffix == "m":
		return number.Quo(number, big.NewRat(1000, 1))
	case power < 0:
		power, step = slices.Index(binarySuffixes, suffix), 1024
	}
	for range power {
		number.Mul(number, big.NewRat(step, 1))
	}
	return number
}

// human writes an amount with this many significant digits, rounded down, as HumanFormat describes.
func human(name string, amount int64, digits int) string {
	switch {
	case amount <= 0 || name == CPU && amount < 1000:
		return Canonical(name, amount)
	case InBytes(name):
		text := Canonical(name, amount)
		if len(strings.TrimRight(text, "kKMGTPEi")) <= shortBytes {
			return text
		}
		return scaled(uint64(amount), 1024, 1024, binarySuffixes[1:], digits)
	}
	one := uint64(1)
	if name == CPU {
		one = 1000 // The amount is in milli.
	}
	if uint64(amount)/one < shortCount {
		return decimal(uint64(amount), one, digits)
	}
	return scaled(uint64(amount), one*1000, 1000, decimalSuffixes[1:], digits)
}

// scaled writes the amount with the largest suffix that leaves at least one, or the first suffix.
// The first suffix stands for unit, each further one for step times the one before.
func scaled(amount, unit, step uint64, suffixes []string, digits int) string {
	i := 0
	for ; i < len(suffixes)-1 && amount/unit >= step; i++ {
		unit *= step
	}
	return decimal(amount, unit, digits) + suffixes[i]
}

// decimal writes amount/unit, rounded down to a number of significant digits, but not within the
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
