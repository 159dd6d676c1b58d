package broker

import (
	"math"
	"strconv"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// KPI is a measured property of a provider.
type KPI int

// The KPIs with the unit of their values.
const (
	// Uptime is in thousandths of a percent.
	Uptime KPI = iota
	// Latency is in microseconds.
	Latency
	// Price is for one unit of a resource and an hour, in 10^-9 of a currency that is the same for all providers.
	Price
	// Remaining is in the units of package capacity: milli for cpu, whole for all else.
	Remaining
	// MeasuredLower and MeasuredHigher are a number that an admin has measured, in 10^-9 of its unit. They have
	// the same value, of which less or more is better.
	MeasuredLower
	MeasuredHigher
)

// String returns the name of the KPI.
func (k KPI) String() string {
	return [...]string{"Uptime", "Latency", "Price", "Remaining", "Measured", "Measured"}[k]
}

// MoreIsBetter reports whether a larger value is better.
func (k KPI) MoreIsBetter() bool { return k == Uptime || k == Remaining || k == MeasuredHigher }

// decimals is the number of digits after the point of the unit in which values are shown.
func (m Measure) decimals() int {
	switch {
	case m.KPI == Price || m.KPI == MeasuredLower || m.KPI == MeasuredHigher:
		return 9
	case m.KPI == Remaining && m.Of != capacity.CPU:
		return 0
	}
	return 3
}

// Measure is a KPI.
type Measure struct {
	KPI KPI
	// Of is the resource of Price and Remaining, and the name of what an admin has measured.
	Of string
}

// String returns the name of the KPI and what it is of.
func (m Measure) String() string { return strings.TrimSpace(m.KPI.String() + " " + m.Of) }

// Text shows a value: an uptime in percent, a latency in milliseconds, cpu in cores.
func (m Measure) Text(v int64) string {
	return m.Decimal(v) + map[KPI]string{Uptime: " %", Latency: " ms"}[m.KPI]
}

// Decimal returns the number of a value, in the unit of Text.
func (m Measure) Decimal(v int64) string { return decimal(v, m.decimals()) }

// Parse reads what Decimal returns, as parseDecimal does.
func (m Measure) Parse(text string) (int64, bool) { return parseDecimal(text, m.decimals()) }

// decimal returns v / 10^decimals, without zeros at the end. A negative v is 0.
func decimal(v int64, decimals int) string {
	digits := strconv.FormatInt(max(0, v), 10)
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - decimals
	return strings.TrimSuffix(digits[:point]+"."+strings.TrimRight(digits[point:], "0"), ".")
}

// parseDecimal reads a number without a sign or an exponent as a multiple of 10^-decimals. Further
// digits are dropped. It reports false for any other text, and for what does not fit.
func parseDecimal(text string, decimals int) (int64, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction += strings.Repeat("0", max(0, decimals-len(fraction)))
	digits := whole + fraction
	if whole == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseInt(whole+fraction[:decimals], 10, 64)
	return v, err == nil
}

// outgrows reports whether score a is larger than score b by at least this percentage.
func outgrows(a, b, percent int64) bool { return a > b && a*100 >= b*(100+percent) }

// part compares a value with the best one.
func (m Measure) part(v, best int64) int64 {
	v, best = max(0, v), max(0, best)
	switch {
	case v == best:
		return 1000
	case m.KPI.MoreIsBetter():
		return capacity.Share(1000, v, best)
	default:
		return capacity.Share(1000, best, v)
	}
}

// best returns the best value of these providers, of which one is measured.
func (m Measure) best(providers []*Provider) (best int64) {
	if !m.KPI.MoreIsBetter() {
		best = math.MaxInt64
	}
	for _, p := range providers {
		switch v, measured := p.Values[m]; {
		case !measured:
		case m.KPI.MoreIsBetter():
			best = max(best, v)
		default:
			best = min(best, v)
		}
	}
	return best
}
