package trends

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAMonthHasAPointForEachOfThirtyDays(t *testing.T) {
	m := NewMonth(time.Date(2026, 3, 15, 18, 30, 0, 0, time.UTC))
	from, today := time.Date(2026, 2, 14, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	if !m.From().Equal(from) || !m.Began().Equal(today.AddDate(0, 0, -14)) {
		t.Errorf("it begins at %v, and the month at %v", m.From(), m.Began())
	}
	gold, rome := Subject{Policy: "gold", Resource: "cpu"}, Subject{Consumer: "rome", Class: "gold", Resource: "cpu"}
	for _, day := range []time.Time{from.AddDate(0, 0, -1), today.AddDate(0, 0, 1)} {
		m.AddPool(day, gold, 7, 7)
	}
	if l, ok := m.Lines(gold); ok {
		t.Errorf("days before and after it have %+v", l)
	}
	m.AddPool(from, gold, 8, 4)
	m.AddPool(today, gold, 9, 5)
	m.AddConsumer(today, rome, 5, 3)
	line := func(first, last float64) []float64 {
		all := unknownDays()
		all[0], all[Days-1] = first, last
		return all
	}
	for of, want := range map[Subject]Lines{
		gold: {From: from, To: m.To, Capacity: line(8, 9), Committed: line(4, 5)},
		rome: {From: from, To: m.To, Committed: line(math.NaN(), 5), Used: line(math.NaN(), 3)},
	} {
		got, _ := m.Lines(of)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%+v: -want +got:\n%s", of, diff)
		}
	}
}

func TestWhatIsDueIsAddedUpByCurrency(t *testing.T) {
	m := NewMonth(time.Unix(0, 0))
	for _, d := range []Due{{"gold", "CHF", "0.10"}, {"gold", "EUR", "99999999999999.99"}, {"silver", "EUR", "0.02"}} {
		if err := m.AddDue("rome", d); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.AddDue("oslo", Due{"", "EUR", "-1.00"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Due{{"", "CHF", "0.10"}, {"", "EUR", "99999999999999.01"}}, m.Total()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(m.Due("rome")) != 3 || len(m.Due("oslo")) != 1 || m.Due("lima") != nil {
		t.Errorf("rome %v, oslo %v, lima %v", m.Due("rome"), m.Due("oslo"), m.Due("lima"))
	}
	if err := m.AddDue("rome", Due{"gold", "EUR", "much"}); err == nil {
		t.Error("a text is an amount")
	}
}
