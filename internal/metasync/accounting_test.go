package metasync

import (
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

const (
	cores = 1000
	gib   = 1 << 30
)

// askedFor is an amount that a slice asks for, or that it does not ask if the amount is negative.
func askedFor(amount int64) sql.NullInt64 {
	return sql.NullInt64{Int64: max(0, amount), Valid: amount >= 0}
}

// priceOfBillionths is a price in billionths of a currency.
func priceOfBillionths(billionths int64, currency, period string) price {
	return price{
		sql.NullString{String: fmt.Sprintf("%d.%09d", billionths/1e9, billionths%1e9), Valid: true}, currency, period,
	}
}

// grantOfSlice is a grant of one resource to a slice s of a consumer, in full.
func grantOfSlice(consumer string, amount int64, p price) granted {
	return granted{
		namespace: "liqo-tenant-" + consumer, slice: "s", consumer: consumer, class: "gold", policy: "gold", accepted: true,
		asked: askedFor(amount), granted: amount, reason: "InFull", price: p,
	}
}

var (
	hourly  = priceOfBillionths(21_000_000, "EUR", "Hour")     // 0.021
	monthly = priceOfBillionths(2_976_000_000, "EUR", "Month") // 2.976: 0.004 an hour in October
)

// october records October and a part of November: rome has 4 cores and 8 GiB from the 2nd, and uses 1
// core of them; oslo has 2 cores from 22:00 of the 30th on, and uses all of them.
func october(b *books) {
	s := b.session()
	rome, oslo := nothing(), nothing()
	rome.grants[grantKey{"r", "cpu"}] = grantOfSlice("rome", 4*cores, hourly)
	rome.grants[grantKey{"r", "memory"}] = grantOfSlice("rome", 8*gib, monthly)
	rome.offers[offerKey{"rome", "gold", "cpu"}] = offered{"gold", 6 * cores}
	used := map[offerKey]usage{{"rome", "gold", "cpu"}: {1 * cores, 4 * cores}}
	maps.Copy(oslo.grants, rome.grants)
	oslo.grants[grantKey{"o", "cpu"}] = grantOfSlice("oslo", 2*cores, hourly)
	oslo.offers[offerKey{"rome", "gold", "cpu"}] = offered{"gold", 6 * cores}
	oslo.offers[offerKey{"oslo", "gold", "cpu"}] = offered{"gold", 4 * cores}
	usedByBoth := map[offerKey]usage{{"rome", "gold", "cpu"}: {1 * cores, 4 * cores}, {"oslo", "gold", "cpu"}: {2 * cores, 2 * cores}}

	b.must(s, of(nothing(), nil))
	b.goesOn(s, time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC), of(nothing(), nil))
	b.goesOn(s, time.Date(2026, 10, 30, 22, 0, 0, 0, time.UTC), of(rome, used))
	b.goesOn(s, time.Date(2026, 11, 14, 6, 0, 0, 0, time.UTC), of(oslo, usedByBoth))
	b.must(s, of(rome, used))
	// An hour without a leader.
	b.clock.pass(time.Hour)
	again := b.session()
	b.must(again, of(rome, used))
	b.goesOn(again, time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), of(rome, used))
}

// goesOn records a state until a time, without a pause that would be a gap.
func (b *books) goesOn(s *session, until time.Time, now state) {
	b.t.Helper()
	s.sampled = time.Time{} // Use is sampled now.
	b.must(s, now)
	// A pass for each heartbeat of weeks would take too long, so the time of the last one is moved, by the node
	// of a cluster that takes the next pass: the others have it later.
	if _, err := s.conn.ExecContext(b.t.Context(), "UPDATE proffer_cluster SET seen_at = '"+until.Format(time.DateTime)+"'"); err != nil {
		b.t.Fatal(err)
	}
	b.clock.now = until
	b.must(s, now)
}

// table returns what a query yields, a line a row.
func (b *books) table(query string) string {
	b.t.Helper()
	pool := b.database.Open(b.t)
	rows, err := pool.QueryContext(b.t.Context(), query)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, query)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	test.Must(b.t, err)
	lines := []string{strings.Join(columns, " | ")}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		test.Must(b.t, rows.Scan(into...))
		cells := make([]string, len(values))
		for i, v := range values {
			cells[i] = cell(v)
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	test.Must(b.t, rows.Err())
	return strings.Join(lines, "\n")
}

// cell is a value as text, the same for each engine.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return v.UTC().Format(time.DateTime)
	case []byte:
		return trimmed(string(v))
	}
	return trimmed(fmt.Sprint(v))
}

// trimmed leaves out the zeros at the end of a decimal number.
func trimmed(text string) string {
	if strings.Contains(text, ".") && strings.Trim(text, "0123456789.-") == "" {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// questions returns the queries below "Questions" in docs/how-to/know-what-a-consumer-costs.md.
func questions(t *testing.T) []string {
	t.Helper()
	text := test.Read(t, "../../docs/how-to/know-what-a-consumer-costs.md")
	_, section, _ := strings.Cut(text, "\n## Questions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []string
	for _, block := range test.Blocks(section, "sql") {
		all = append(all, block.Text)
	}
	return all
}

// answersToQuestions are those for october, on 15 November.
var answersToQuestions = []string{
	`class | resource | unit_hours
gold | cpu | 2880
gold | memory | 5760`,
	`consumer | currency | amount_due
oslo | EUR | 1.09
rome | EUR | 83.52`,
	`consumer | class | resource | held | used
rome | gold | cpu | 2880 | 720
rome | gold | memory | 5760 | 0`,
	`changed_at | what | consumer | class | slice | resource | granted | reason
2026-11-14 06:00:00 | ended | oslo | gold | s | cpu | 2000 | InFull`,
	`cluster | reason | valid_from | valid_to
milan | Stopped | 2026-11-14 06:00:00 | 2026-11-14 07:00:00`,
}

// checkQuestions compares what the queries of docs/how-to/know-what-a-consumer-costs.md yield, as they stand there except that
// today is 15 November, with the answers for october.
func (b *books) checkQuestions() {
	b.t.Helper()
	queries := questions(b.t)
	if len(queries) != len(answersToQuestions) {
		b.t.Fatalf("the page has %d queries, want %d", len(queries), len(answersToQuestions))
	}
	for i, query := range queries {
		query = strings.ReplaceAll(query, "CURRENT_DATE", "DATE '2026-11-15'")
		if diff := cmp.Diff(answersToQuestions[i], b.table(query)); diff != "" {
			b.t.Errorf("%s%s", query, diff)
		}
	}
}

func TestTheQuestionsInTheDocsAreAnswered(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		october(b)
		b.checkQuestions()
	})
}

func TestTheViewsDivideIntervalsIntoDays(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		october(b)
		for query, want := range map[string]string{
			"SELECT day, unit_hours, amount_due FROM proffer_granted_daily WHERE consumer = 'oslo' AND day < DATE '2026-11-02' ORDER BY day": `day | unit_hours | amount_due
2026-10-30 00:00:00 | 4 | 0.084
2026-10-31 00:00:00 | 48 | 1.008
2026-11-01 00:00:00 | 48 | 1.008`,
			// The same price of a month is more an hour in November, which is shorter.
			"SELECT day, unit_hours, amount_due FROM proffer_granted_daily WHERE resource = 'memory' AND day IN (DATE '2026-10-31', DATE '2026-11-01') ORDER BY day": `day | unit_hours | amount_due
2026-10-31 00:00:00 | 192 | 0.768
2026-11-01 00:00:00 | 192 | 0.7936`,
			// Open rows count up to the last pass.
			"SELECT day, unit_hours FROM proffer_offered_daily WHERE consumer = 'rome' AND day > DATE '2026-11-13' ORDER BY day": `day | unit_hours
2026-11-14 00:00:00 | 144
2026-11-15 00:00:00 | 72`,
			"SELECT COUNT(*) AS days, MAX(unit_hours) AS most FROM proffer_used_daily WHERE consumer = 'oslo'": `days | most
16 | 48`,
			"SELECT day, unit_hours, granted_unit_hours FROM proffer_used_daily WHERE consumer = 'rome' AND day = DATE '2026-10-31'": `day | unit_hours | granted_unit_hours
2026-10-31 00:00:00 | 24 | 96`,
		} {
			if diff := cmp.Diff(want, b.table(query)); diff != "" {
				t.Errorf("%s\n%s", query, diff)
			}
		}
	})
}

// MySQL must not round where PostgreSQL does not, and the largest amounts must fit.
func TestTheViewsAreExactForTheSmallestAndTheLargestAmounts(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		p := nothing()
		p.grants[grantKey{"small", "cpu"}] = grantOfSlice("rome", 1, priceOfBillionths(1, "EUR", "Hour"))
		p.grants[grantKey{"large", "cpu"}] = grantOfSlice("oslo", 1<<63-1, priceOfBillionths(999_999_999_999_999_999, "EUR", "Hour"))
		session := b.session()
		b.must(session, of(p, nil))
		b.clock.pass(time.Second)
		b.must(session, of(nothing(), nil))
		if diff := cmp.Diff(`consumer | unit_hours | amount_due
oslo | 2562047788015.215501944 | 2562047788015215499382.396656429
rome | 0.000000278 | 0`, b.table("SELECT consumer, unit_hours, amount_due FROM proffer_granted_daily ORDER BY consumer")); diff != "" {
			t.Error(diff)
		}
		check(t, b.intervals("SELECT price, valid_from, valid_to FROM proffer_grant_interval WHERE uid = 'small'"), []interval{{"0.000000001", "0s", "1s"}})
	})
}
