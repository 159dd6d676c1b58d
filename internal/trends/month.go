package trends

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"
)

// Days is the number of days of a Month.
const Days = 30

// Month is what the accounting database has of the last 30 days, and of the present month. It does not change once it
// is filled. A nil Month knows nothing.
type Month struct {
	// To is the time up to which it is complete, in UTC.
	To    time.Time
	lines map[Subject]*Lines
	due   map[string][]Due
	total []Due
}

// Due is an amount of money.
type Due struct {
	// Class is empty in a total, and for the unnamed class.
	Class, Currency string
	// Amount is a decimal number with two digits after the point.
	Amount string
}

// NewMonth returns a Month without content.
func NewMonth(to time.Time) *Month {
	return &Month{To: to.UTC(), lines: map[Subject]*Lines{}, due: map[string][]Due{}}
}

// From returns the beginning of the first day.
func (m *Month) From() time.Time { return m.To.Truncate(24*time.Hour).AddDate(0, 0, 1-Days) }

// Began returns the beginning of the present month.
func (m *Month) Began() time.Time {
	return time.Date(m.To.Year(), m.To.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// AddPool adds the means of a day of a pool. It ignores a day that is not one of the last 30, as AddConsumer does.
func (m *Month) AddPool(day time.Time, of Subject, capacity, committed float64) {
	if l, i := m.at(day, of); l != nil {
		l.Capacity[i], l.Committed[i] = capacity, committed
	}
}

// AddConsumer adds the means of a day of a consumer.
func (m *Month) AddConsumer(day time.Time, of Subject, granted, used float64) {
	if l, i := m.at(day, of); l != nil {
		l.Committed[i], l.Used[i] = granted, used
	}
}

// at returns the lines of a subject and the point of a day, nil for another day.
func (m *Month) at(day time.Time, of Subject) (*Lines, int) {
	i := int(math.Floor(day.Sub(m.From()).Hours() / 24))
	if i < 0 || i >= Days {
		return nil, 0
	}
	l := m.lines[of]
	if l == nil {
		l = &Lines{From: m.From(), To: m.To, Committed: unknownDays()}
		if of.Consumer == "" {
			l.Capacity = unknownDays()
		} else {
			l.Used = unknownDays()
		}
		m.lines[of] = l
	}
	return l, i
}

// Lines returns a point for each of the last 30 days, the last of which goes up to To. It is the mean over the time of
// the day of which there are records, NaN for none. Of a pool, Used is nil, and of a consumer Capacity. It returns
// false for a subject without records. Nobody may change the lines.
func (m *Month) Lines(of Subject) (Lines, bool) {
	if m == nil || m.lines[of] == nil {
		return Lines{}, false
	}
	return *m.lines[of], true
}

// AddDue adds what is due from a consumer for what it was granted since the month began. Amounts of one currency
// must be added one after another.
func (m *Month) AddDue(consumer string, d Due) error {
	amount, ok := new(big.Rat).SetString(d.Amount)
	if !ok {
		return fmt.Errorf("%q is no amount", d.Amount)
	}
	m.due[consumer] = append(m.due[consumer], d)
	if last := len(m.total) - 1; last >= 0 && m.total[last].Currency == d.Currency {
		sum, _ := new(big.Rat).SetString(m.total[last].Amount)
		m.total[last].Amount = sum.Add(sum, amount).FloatString(2)
		return nil
	}
	m.total = append(m.total, Due{Currency: d.Currency, Amount: amount.FloatString(2)})
	return nil
}

// ForgetDue drops what was added by AddDue.
func (m *Month) ForgetDue() { m.due, m.total = map[string][]Due{}, nil }

// Due returns what is due from a consumer, nil for nothing.
func (m *Month) Due(consumer string) []Due {
	if m == nil {
		return nil
	}
	return m.due[consumer]
}

// Total returns the sum of what is due from all consumers, by currency.
func (m *Month) Total() []Due {
	if m == nil {
		return nil
	}
	return m.total
}

func unknownDays() []float64 { return slices.Repeat([]float64{math.NaN()}, Days) }
