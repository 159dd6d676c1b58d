package metasync

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

const (
	// passPeriod is the least time between two passes.
	passPeriod = time.Second
	// heartbeat is the time between two passes while nothing changes.
	heartbeat = 10 * time.Second
	// passTimeout bounds one pass.
	passTimeout = time.Minute
	// minBackoff and maxBackoff bound the wait after a pass that failed.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// fencedPause is the wait after another process has raised the epoch: longer than a Lease lasts.
	fencedPause = time.Minute
	// maxBatch bounds the rows of a transaction.
	maxBatch = 5000
	// maxOld bounds the rows of a transaction that are deleted for their age, as the LIMIT in queries.sql does.
	maxOld = 500
	// maxGrantRows bounds the new rows in a minute of the grants of each consumer.
	maxGrantRows = 600
	// failuresLogged are logged one by one, and after these one in each failureNotice.
	failuresLogged = 10
	failureNotice  = 10 * time.Minute
)

// Config is what Books work with. Holding may be nil, everything else must be set.
type Config struct {
	Options
	// Table has the snapshots that are recorded.
	Table *table.Table
	// Holding reports whether this process still leads. Nil stands for a process that always does.
	Holding func() bool
	Log     logr.Logger
}

// Books record snapshots. It is a manager.Runnable and a prometheus.Collector.
type Books struct {
	Config
	debouncer *debounce.Debouncer
	metrics   *metrics
	failures  rate.Sometimes
	// notices are of texts that are left out.
	notices rate.Sometimes
	// failing is set from a pass that failed to one that did not. It is for the goroutine of Start.
	failing bool
	// Tests replace these. now returns the time that a transaction is dated with, by that of the database
	// server.
	now     func(server time.Time) time.Time
	commit  func(*sql.Tx) error
	timeout time.Duration
}

// New returns Books that have not started.
func New(config Config) *Books {
	if config.Holding == nil {
		config.Holding = func() bool { return true }
	}
	return &Books{
		Config: config, debouncer: debounce.New(passPeriod), metrics: newMetrics(),
		now: func(server time.Time) time.Time { return server }, commit: (*sql.Tx).Commit, timeout: passTimeout,
		failures: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
		notices:  rate.Sometimes{Interval: failureNotice},
	}
}

// Wake schedules a pass with the latest snapshot. It never blocks.
func (b *Books) Wake() { b.debouncer.Wake() }

// Start records snapshots until the context ends, and can be started again. The error is always nil.
func (b *Books) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.Table.Ready():
	}
	s := newSession(b)
	defer s.close()
	b.metrics.complete(time.Now())
	defer b.metrics.complete(time.Time{})
	beat := time.AfterFunc(0, b.Wake)
	defer beat.Stop()
	backoff := minBackoff
	for {
		if _, err := b.debouncer.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		more, err := b.pass(ctx, s, stateOf(b.Table.Current()))
		switch {
		case err == nil && more:
			backoff = minBackoff
			beat.Reset(0)
		case err == nil:
			backoff = minBackoff
			beat.Reset(heartbeat)
		case !b.rest(ctx, err, backoff):
			return nil
		default:
			backoff = min(2*backoff, maxBackoff)
			beat.Reset(0)
		}
	}
}

// rest waits after a failure, and reports whether the context has not ended.
func (b *Books) rest(ctx context.Context, err error, backoff time.Duration) bool {
	if errors.Is(err, errFenced) {
		backoff = fencedPause
	}
	timer := time.NewTimer(backoff)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// pass makes one pass, and counts and logs how it ends. more reports whether another one must follow
// at once.
func (b *Books) pass(ctx context.Context, s *session, now state) (more bool, err error) {
	if !b.Holding() {
		return false, nil
	}
	more, err = guarded(func() (bool, error) {
		if err := s.prepare(ctx); err != nil {
			return false, err
		}
		passing, cancel := context.WithTimeout(ctx, b.timeout)
		defer cancel()
		return s.pass(passing, now)
	})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	err = s.conn.hide(err)
	b.metrics.passed(err)
	if err != nil {
		s.forgetState(err)
		b.failing = true
		b.failures.Do(func() { b.Log.Error(err, "The books could not be written; will retry", "engine", b.Engine) })
	} else if b.failing {
		b.failing = false
		b.Log.Info("The books are written again", "engine", b.Engine)
	}
	return more, err
}

// guarded turns a panic into an error: the books must not end the process.
func guarded(f func() (bool, error)) (more bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, kube.Shorten(string(debug.Stack()), kube.MaxMessage))
		}
	}()
	return f()
}
