package metasync

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/table"
)

const (
	// passPeriod is the period of the Trigger: a change waits for half of it, and for no more than all of it.
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
	// maxOld bounds the rows of a transaction that are deleted for their age.
	maxOld = 500
	// maxGrantRows bounds the new rows in a minute of the grants of each consumer.
	maxGrantRows = 600
	// failuresLogged is the number of failures that are logged one by one. After them, one is logged in each
	// failureNotice.
	failuresLogged = 10
	failureNotice  = 10 * time.Minute
)

// Config configures Books. Everything must be set.
type Config struct {
	Options
	// Table has the snapshots that are recorded.
	Table *table.Table
	// Holding reports whether this process still leads.
	Holding func() bool
	Log     logr.Logger
}

// Books record snapshots. They are a manager.Runnable, which runs a controller of controller-runtime, and a
// prometheus.Collector.
type Books struct {
	Config
	trigger  *leading.Trigger
	metrics  *metrics
	failures rate.Sometimes
	// notices bounds the log lines about texts that are left out.
	notices rate.Sometimes
	// failing is set from a pass that failed to one that did not.
	failing atomic.Bool
	// Tests replace these. now returns the time that a transaction is dated with, by that of the database
	// server.
	now     func(server time.Time) time.Time
	commit  func(*sql.Tx) error
	timeout time.Duration
}

// New returns Books that have not started.
func New(config Config) *Books {
	return &Books{
		Config: config, metrics: newMetrics(),
		trigger: leading.NewTrigger(passPeriod, leading.Single(types.NamespacedName{Name: config.ClusterID})),
		now:     func(server time.Time) time.Time { return server }, commit: (*sql.Tx).Commit, timeout: passTimeout,
		failures: rate.Sometimes{First: failuresLogged, Interval: failureNotice},
		notices:  rate.Sometimes{Interval: failureNotice},
	}
}

// Wake schedules a pass with the latest snapshot. It never blocks. After a failure it does nothing: the
// retry records the latest snapshot.
func (b *Books) Wake() {
	if !b.failing.Load() {
		b.trigger.Wake()
	}
}

// Start records snapshots until the context ends, and can be started again.
func (b *Books) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.Table.Ready():
	}
	s := newSession(b)
	defer s.close()
	b.metrics.completed.Store(new(time.Now()))
	defer b.metrics.completed.Store(nil)
	c := &leading.Controller{
		Name: "metasync", Reconciler: s, Sources: []source.Source{b.trigger},
		FirstRetry: minBackoff, LastRetry: maxBackoff, Log: logr.Discard(), // The Books log failures themselves.
	}
	return c.Start(ctx)
}

// Reconcile makes one pass. The request is for the whole cluster.
func (s *session) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	failing := s.failing.Load()
	more, err := s.Books.pass(ctx, s, stateOf(s.Table.Current()))
	switch {
	case errors.Is(err, errFenced):
		return reconcile.Result{RequeueAfter: fencedPause}, nil
	case err != nil && ctx.Err() == nil:
		return reconcile.Result{}, err
	case more || failing: // A snapshot that was published during the first pass without a failure woke nobody.
		s.Wake()
	}
	return reconcile.Result{RequeueAfter: heartbeat}, nil
}

// pass makes one pass, and counts and logs how it ends. more reports whether another one must follow
// at once.
func (b *Books) pass(ctx context.Context, s *session, now state) (more bool, err error) {
	if !b.Holding() {
		return false, nil
	}
	more, err = recoverPanic(func() (bool, error) {
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
		b.failing.Store(true)
		b.failures.Do(func() {
			// Whoever runs the database can cause it. The stack trace of an error would hide the reason.
			b.Log.Info("The books could not be written; will retry", "engine", b.Engine, "error", err.Error())
		})
	} else if b.failing.Swap(false) {
		b.Log.Info("The books are written again", "engine", b.Engine)
	}
	return more, err
}

// recoverPanic turns a panic into an error: the books must not end the process.
func recoverPanic(f func() (bool, error)) (more bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, kube.Shorten(string(debug.Stack()), kube.MaxMessage))
		}
	}()
	return f()
}
