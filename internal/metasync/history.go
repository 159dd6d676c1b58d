package metasync

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/metasync/db"
	"proffer.dev/proffer/internal/trends"
)

// day is the time of a point of a line.
const day = 24 * time.Hour

const (
	// historyPeriod is the time between two readings of the history, and historyRetry that after one that failed.
	historyPeriod = 30 * time.Minute
	historyRetry  = time.Minute
	// historyTimeout bounds a reading.
	historyTimeout = 30 * time.Second
	// maxLines bounds the lines of pools, and those of consumers. What is beyond it is left out.
	maxLines = 1000
	// maxDue bounds the amounts of money. If there are more, none is known.
	maxDue = 10_000
)

// History reads what the books have of the last month, on every replica. It is a manager.Runnable.
type History struct {
	options Options
	log     logr.Logger
	notices rate.Sometimes
	month   atomic.Pointer[trends.Month]
}

// NewHistory returns a History that has not started.
func NewHistory(o Options, log logr.Logger) *History {
	return &History{options: o, log: log, notices: rate.Sometimes{Interval: failureNotice}}
}

// NeedLeaderElection is false: every replica shows it.
func (*History) NeedLeaderElection() bool { return false }

// Month returns what was read last, nil before the first time.
func (h *History) Month() *trends.Month { return h.month.Load() }

// Start reads until the context ends. It does not wait for the leader, which may still create the tables: the second
// failure in a row is the first that is logged.
func (h *History) Start(ctx context.Context) error {
	retry := historyRetry
	for {
		err := h.read(ctx)
		next := historyPeriod
		if err != nil {
			if retry > historyRetry {
				h.notices.Do(func() {
					h.log.Info("The history of the books could not be read; will retry", "engine", h.options.Engine,
						"error", err.Error())
				})
			}
			next, retry = retry, min(2*retry, historyPeriod)
		} else {
			retry = historyRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// read reads the history over a connection of its own: a pass never waits for it.
func (h *History) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	pool, err := connect(&h.options, nil, historyTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	pool.SetMaxOpenConns(1)
	_, err = recoverPanic(func() (bool, error) {
		m, err := readMonth(ctx, pool.DB, &h.options)
		if m != nil {
			h.month.Store(m)
		}
		return false, err
	})
	return pool.hide(err)
}

// readMonth reads in one transaction. It returns nil if the cluster has no books yet. If only what is due could not
// be read, it returns the lines and an error.
func readMonth(ctx context.Context, pool *sql.DB, o *Options) (*trends.Month, error) {
	tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := endOverdue(ctx, tx, o.Engine); err != nil {
		return nil, err
	}
	r := historyReader{DBTX: tx, cluster: o.ClusterID, microseconds: "TIMESTAMPDIFF(MICROSECOND, %s, %s)"}
	if o.Engine == config.PostgreSQL {
		r.DBTX, r.microseconds = numberedQueries{tx}, "(EXTRACT(EPOCH FROM -(%s - %s)) * 1000000)"
	}
	var seen sql.NullTime
	err = r.QueryRowContext(ctx, "SELECT seen_at FROM proffer_cluster WHERE name = ?", r.cluster).Scan(&seen)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !seen.Valid:
		return nil, nil
	case err != nil:
		return nil, err
	}
	m := trends.NewMonth(seen.Time)
	if o.Retention > 0 {
		r.since = m.To.Add(-o.Retention).Truncate(day).Add(day)
	}
	if err := r.lines(ctx, m); err != nil {
		return nil, err
	}
	if m.Began().Before(r.since) {
		return m, nil // Some of what is due is no longer there.
	}
	if err := r.due(ctx, m); err != nil {
		m.ForgetDue()
		return m, err
	}
	return m, nil
}

// endOverdue has the server end a statement that takes too long: MySQL goes on when its client is gone.
func endOverdue(ctx context.Context, tx *sql.Tx, engine config.DatabaseEngine) error {
	milliseconds := historyTimeout.Milliseconds()
	statement := fmt.Sprintf("SELECT set_config('statement_timeout', '%d', true), "+
		"set_config('idle_in_transaction_session_timeout', '%ss', true)", milliseconds, idleSeconds)
	if engine == config.MySQL {
		var version string
		if err := tx.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
			return err
		}
		statement = fmt.Sprintf("SET SESSION max_execution_time = %d", milliseconds)
		if strings.Contains(version, "MariaDB") {
			statement = fmt.Sprintf("SET SESSION max_statement_time = %d", milliseconds/1000)
		}
	}
	_, err := tx.ExecContext(ctx, statement)
	return err
}

// historyReader reads of one cluster. microseconds is the time between two times in the language of the engine. Rows
// that ended before since, a midnight, may be gone.
type historyReader struct {
	db.DBTX
	cluster      string
	microseconds string
	since        time.Time
}

// dayOf is a day of one line: the sums of two amounts, each times the microseconds for which it was recorded, and
// those microseconds.
type dayOf struct {
	trends.Subject
	day                   time.Time
	first, second, during float64
}

// lineTable says where lines are: the keys of a table of intervals, its two amounts, and which rows make a line.
type lineTable struct {
	name, first, second, condition string
	keys                           columns[dayOf]
}

var poolLines = lineTable{
	"proffer_pool_interval", "capacity", "committed", "i.capacity > 0",
	columns[dayOf]{"policy, resource", func(d *dayOf) []any { return []any{&d.Policy, &d.Resource} }},
}

var consumerLines = lineTable{
	"proffer_usage_interval", "granted", "amount", "i.resource IN ('cpu', 'memory') AND (i.granted > 0 OR i.amount > 0)",
	columns[dayOf]{
		"consumer, class, resource", func(d *dayOf) []any { return []any{&d.Consumer, &d.Class, &d.Resource} },
	},
}

// query returns the query for the days of the first maxLines lines. It takes the cluster and the first day, and both
// again with the first day a second time.
func (t *lineTable) query(microseconds string) string {
	during := fmt.Sprintf(microseconds, "GREATEST(i.valid_from, d.day)",
		"LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY)")
	var selected, joined []string
	for key := range strings.SplitSeq(t.keys.names, ", ") {
		selected, joined = append(selected, "i."+key), append(joined, "s."+key+" = i."+key)
	}
	text := `SELECT KEYS, d.day, SUM(i.FIRST * 1.0e0 * DURING), SUM(i.SECOND * 1.0e0 * DURING), SUM(1.0e0 * DURING)
FROM TABLE AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN (
    SELECT DISTINCT KEYS
    FROM TABLE AS i JOIN proffer_cluster AS c ON c.id = i.cluster_id
    WHERE c.name = ? AND (i.valid_to IS NULL OR i.valid_to >= ?) AND CONDITION
    ORDER BY KEYS LIMIT MOST
) AS s ON JOINED
JOIN proffer_day AS d
    ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE c.name = ? AND (i.valid_to IS NULL OR i.valid_to >= ?) AND d.day >= ?
    AND COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY KEYS, d.day`
	return strings.NewReplacer(
		"KEYS", strings.Join(selected, ", "), "JOINED", strings.Join(joined, " AND "), "TABLE", t.name, "FIRST", t.first,
		"SECOND", t.second, "DURING", during, "CONDITION", t.condition, "MOST", strconv.Itoa(maxLines),
	).Replace(text)
}

// days reads the days of all lines of a table.
func (r *historyReader) days(ctx context.Context, m *trends.Month, t *lineTable) (all []dayOf, err error) {
	args := []any{r.cluster, m.From(), r.cluster, m.From(), m.From()}
	err = eachRow(ctx, r, t.query(r.microseconds), args, func(rows *sql.Rows) error {
		var d dayOf
		err := rows.Scan(append(t.keys.of(&d), &d.day, &d.first, &d.second, &d.during)...)
		all = append(all, d)
		return err
	})
	return all, err
}

// recorded returns for how many microseconds of each day there are books. There is a policy whenever something is
// offered, so the first one tells when they began: on its day, what lasts longest does.
func (r *historyReader) recorded(ctx context.Context, m *trends.Month) (map[time.Time]float64, error) {
	var first sql.NullTime
	err := r.QueryRowContext(ctx, "SELECT MIN(p.valid_from) FROM proffer_policy_version AS p "+
		"JOIN proffer_cluster AS c ON c.id = p.cluster_id WHERE c.name = ?", r.cluster).Scan(&first)
	if err != nil {
		return nil, err
	}
	began := m.From()
	for _, at := range []time.Time{first.Time.Truncate(day), r.since} {
		if at.After(began) {
			began = at
		}
	}
	recorded := map[time.Time]float64{}
	for from := began; from.Before(m.To); from = from.Add(day) {
		recorded[from] = within(from, from, m.To)
	}
	if !first.Time.Before(began) {
		delete(recorded, began)
	}
	gaps := "SELECT g.valid_from, g.valid_to FROM proffer_gap AS g JOIN proffer_cluster AS c ON c.id = g.cluster_id " +
		"WHERE c.name = ? AND g.valid_to > ?"
	err = eachRow(ctx, r, gaps, []any{r.cluster, began}, func(rows *sql.Rows) error {
		var from, to time.Time
		err := rows.Scan(&from, &to)
		for on := range recorded {
			recorded[on] -= within(on, from, to)
		}
		return err
	})
	return recorded, err
}

// within returns how many microseconds of a day are between two times.
func within(on, from, to time.Time) float64 {
	if from.Before(on) {
		from = on
	}
	if end := on.Add(day); end.Before(to) {
		to = end
	}
	return float64(max(0, to.Sub(from)).Microseconds())
}

// lines reads the lines. A consumer without a row has nothing, while there are books.
func (r *historyReader) lines(ctx context.Context, m *trends.Month) error {
	recorded, err := r.recorded(ctx, m)
	if err != nil {
		return err
	}
	pools, err := r.days(ctx, m, &poolLines)
	if err != nil {
		return err
	}
	consumers, err := r.days(ctx, m, &consumerLines)
	if err != nil {
		return err
	}
	for i := range pools {
		if d := &pools[i]; d.during > 0 {
			m.AddPool(d.day, d.Subject, d.first/d.during, d.second/d.during)
		}
	}
	consumers = slices.DeleteFunc(consumers, func(d dayOf) bool { return d.day.Before(r.since) })
	for i := range consumers { // What is the same before and after a gap has a row in it.
		recorded[consumers[i].day] = max(recorded[consumers[i].day], consumers[i].during)
	}
	for i := range consumers {
		d := &consumers[i]
		if _, known := m.Lines(d.Subject); !known {
			for on, during := range recorded {
				if during > 0 {
					m.AddConsumer(on, d.Subject, 0, 0)
				}
			}
		}
		if during := recorded[d.day]; during > 0 {
			m.AddConsumer(d.day, d.Subject, d.first/during, d.second/during)
		}
	}
	return nil
}

func (r *historyReader) due(ctx context.Context, m *trends.Month) error {
	query := `SELECT consumer, class, currency, ROUND(SUM(amount_due), 2) FROM proffer_granted_daily
WHERE cluster = ? AND day >= ? AND amount_due IS NOT NULL
GROUP BY consumer, class, currency ORDER BY currency, consumer, class LIMIT ` + strconv.Itoa(maxDue+1)
	amounts := 0
	return eachRow(ctx, r, query, []any{r.cluster, m.Began()}, func(rows *sql.Rows) error {
		if amounts++; amounts > maxDue {
			return fmt.Errorf("more than %d amounts are due", maxDue)
		}
		var consumer string
		var due trends.Due
		if err := rows.Scan(&consumer, &due.Class, &due.Currency, &due.Amount); err != nil {
			return err
		}
		return m.AddDue(consumer, due)
	})
}
