package page

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/internal/trends"
)

// trending returns an operator that has known its pool and rome for some minutes. It knows nothing of the fourth.
func trending(minutes int) *fake {
	f := gold()
	for m := range minutes {
		if m == 3 {
			continue
		}
		committed, used := int64(1000*m), int64(500*m)
		f.ring.Add(f.Evaluated().Time.Add(time.Duration(m)*time.Minute),
			[]trends.Sample{{Subject: trends.Subject{Policy: "gold-pool", Resource: "cpu"}, Capacity: 8000, Committed: committed, Used: used}},
			[]trends.Sample{{Subject: trends.Subject{Consumer: "rome", Class: "gold", Resource: "cpu"}, Committed: committed, Used: used}})
	}
	return f
}

func TestLinesShowTheLastDay(t *testing.T) {
	h := New(trending(9).operator())
	expect(t, ask(h, http.MethodGet, "/ui/", "").Body.String(),
		`role="img" aria-label="Since 03:04 UTC, about: capacity 8; committed 0 to 8, last 8; used 0 to 4, last 4"`,
		`<path class="capacity" d="M0 0L6 0L12 0M24 0L30 0L36 0L42 0L48 0"/>`,
		`<path class="committed" d="M0 24L6 21L12 18M24 12L30 9L36 6L42 3L48 0"/>`,
		`<path class="used" d="M0 24L6 22L12 21M24 18L30 17L36 15L42 13L48 12"/>`)
	consumer := ask(h, http.MethodGet, "/ui/consumers/rome", "").Body.String()
	expect(t, consumer, `aria-label="Since 03:04 UTC, about: granted 0 to 8, last 8; used 0 to 4, last 4"`, `<path class="committed" d="M0 24L6 21`)
	if strings.Contains(consumer, `class="capacity"`) {
		t.Error("a consumer has a capacity")
	}
}

func TestLinesThatAreNotKnownAreADash(t *testing.T) {
	for _, minutes := range []int{0, 1} {
		text := ask(New(trending(minutes).operator()), http.MethodGet, "/ui/", "").Body.String()
		expect(t, text, "<td>4</td><td>–</td></tr>")
		if strings.Contains(text, `class="lines"`) {
			t.Errorf("there are lines after %d minutes", minutes)
		}
	}
}

func TestTheLastMonthIsShownWhereTheBooksHaveIt(t *testing.T) {
	f := gold()
	h := New(f.operator())
	const column = "Last 30 days"
	for _, at := range []string{"/ui/", "/ui/consumers/rome"} {
		if text := ask(h, http.MethodGet, at, "").Body.String(); strings.Contains(text, column) || strings.Contains(text, "Due so far") {
			t.Errorf("%s shows a month that nobody knows", at)
		}
	}
	f.month = trends.NewMonth(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	today := f.month.To.Truncate(24 * time.Hour)
	f.month.AddPool(today, trends.Subject{Policy: "gold-pool", Resource: "cpu"}, 8000, 4000)
	f.month.AddPool(today.AddDate(0, 0, -1), trends.Subject{Policy: "gold-pool", Resource: "cpu"}, 8000, 2000)
	f.month.AddConsumer(today, trends.Subject{Consumer: "rome", Class: "gold", Resource: "cpu"}, 2000, 1000)
	for _, d := range []trends.Due{{Class: "gold", Currency: "EUR", Amount: "12.30"}, {Currency: "EUR", Amount: "0.04"}} {
		if err := f.month.AddDue("rome", d); err != nil {
			t.Fatal(err)
		}
	}
	h = New(f.operator())
	expect(t, ask(h, http.MethodGet, "/ui/", "").Body.String(), column,
		`aria-label="Means of the days since 2025-12-04, about: capacity 8; committed 2 to 4, last 4"`, `<path class="committed" d="M46 18L48 12"/>`,
		"Due so far for January 2026, by the accounting database up to 2026-01-02 03:00 UTC: 12.34 EUR.")
	expect(t, ask(h, http.MethodGet, "/ui/consumers/rome", "").Body.String(), column,
		`aria-label="Means of the days since 2025-12-04, about: granted 2; used 1"`,
		"up to 2026-01-02 03:00 UTC: 12.30 EUR in class gold, 0.04 EUR in class &lt;unnamed&gt;.")
}

// A line that rose and fell is not told by its two ends.
func TestTheTextOfALineHasItsLeastAndItsMost(t *testing.T) {
	for want, line := range map[string][]float64{
		"1 to 7, last 4": {math.NaN(), 4000, 7000, math.NaN(), 1000, 4000, math.NaN()}, "4": {4000, 4000},
	} {
		if got := spanOf("cpu", knownOf(line)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(knownOf([]float64{math.NaN()})) > 0 {
		t.Error("a line of which nothing is known has a text")
	}
}

// A day of lines of 100 pools is a small part of a page.
func TestADayOfLinesIsShort(t *testing.T) {
	f := gold()
	of := trends.Subject{Policy: "gold-pool", Resource: "cpu"}
	for m := range 1440 {
		f.ring.Add(f.Evaluated().Time.Add(time.Duration(m)*time.Minute), []trends.Sample{{Subject: of, Capacity: 8000, Committed: int64(m * 37 % 8000), Used: int64(m * 91 % 8000)}}, nil)
	}
	l := linesOf(f, of)
	if all := len(l.Capacity + l.Committed + l.Used); all > 1000 || strings.Count(l.Used, "L") != linePoints-1 {
		t.Errorf("%d bytes: %s", all, l.Used)
	}
}
