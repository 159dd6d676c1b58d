package metasync

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

func TestAFailedPassIsRepeatedLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab, before := table.New(), failedCalls(t)
		b := New(Config{
			Options: Options{Engine: config.MySQL, DSNFile: filepath.Join(t.TempDir(), "none"), ClusterID: "milan", Sample: time.Minute},
			Table:   tab, Holding: leads, Log: logr.Discard(),
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		failed := func() float64 { return testutil.ToFloat64(b.metrics.passes.WithLabelValues(resultError)) }
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		if n := failed(); n != 0 {
			t.Fatalf("%v passes before the first snapshot", n)
		}
		tab.Publish(*newProvider().snapshot())
		for range 600 {
			b.Wake()                // No snapshot shortens the wait.
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		}
		synctest.Wait()
		// After 1, 2, 4, 8, 16 and 32 s, and then each minute, with up to a second of debouncing each.
		n := failed()
		if n < 13 || n > 16 {
			t.Errorf("%v failed passes in 10 minutes, want about 14", n)
		}
		if got := failedCalls(t) - before; got < n { // Books of other tests fail meanwhile.
			t.Errorf("the controller metasync has counted %v failures, want %v", got, n)
		}
		if lag := b.metrics.lagAt(time.Now()); lag != 10*time.Minute {
			t.Errorf("the lag is %v, want 10m", lag)
		}
		cancel()
		test.Check(t, <-done)
		if lag := b.metrics.lagAt(time.Now()); lag != 0 {
			t.Errorf("the lag of a replica that does not lead is %v, want 0", lag)
		}
	})
}

// failedCalls returns the failures of the controller metasync, as controller-runtime counts them.
func failedCalls(t *testing.T) (failures float64) {
	families, err := crmetrics.Registry.Gather()
	test.Must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "controller_runtime_reconcile_errors_total" && m.GetLabel()[0].GetValue() == "metasync" {
				failures += m.GetCounter().GetValue()
			}
		}
	}
	return failures
}

// While passes fail, no snapshot schedules another one. One that is published during the first pass that
// does not fail must not wait for the heartbeat.
func TestASnapshotThatIsPublishedWhileTheBooksRecoverIsRecordedSoon(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b, provider := newBooks(t, s), newProvider()
		b.Table = table.New()
		b.Table.Publish(*provider.snapshot())
		var published time.Time
		commits, recorded := 0, make(chan time.Duration, 1)
		b.commit = func(tx *sql.Tx) error {
			switch commits++; commits {
			case 1:
				return errors.New("the connection is lost")
			case 2:
				provider.consumers = []offer.Consumer{{ID: "rome"}}
				b.Table.Publish(*provider.snapshot())
				published = time.Now()
				b.Wake()
			case 3:
				recorded <- time.Since(published)
			}
			return tx.Commit()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		if took := <-recorded; took >= heartbeat {
			t.Errorf("the snapshot was recorded after %v", took)
		}
		test.Eventually(t, func() int { return 1 - len(b.intervals("SELECT consumer, valid_from, valid_to FROM proffer_consumer")) })
		cancel()
		test.Must(t, <-done)
	})
}

func TestAProcessThatDoesNotLeadMakesNoPass(t *testing.T) {
	b := New(Config{Options: Options{Engine: config.MySQL, DSNFile: "none"}, Holding: func() bool { return false }, Log: logr.Discard()})
	if more, err := b.pass(t.Context(), newSession(b), of(nothing(), nil)); more || err != nil {
		t.Errorf("got %v, %v", more, err)
	}
}

func TestAPanicIsAFailedPassAndNothingElse(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) {
		b := newBooks(t, s)
		session := b.session()
		b.must(session, granting(1000))
		_, err := b.pass(t.Context(), session, state{
			published: func(func(grantKey) price) *published { panic("a bug") }, used: func() map[offerKey]usage { return nil },
		})
		if err == nil || !strings.HasPrefix(err.Error(), "panic: a bug\n") {
			t.Errorf("got %v", err)
		}
		b.clock.pass(time.Second)
		b.must(session, granting(2000))
		check(t, b.intervals(grantRows), []interval{{"1000", "0s", "0s"}, {"2000", "1s", ""}})
	})
}

func TestAPassEndsWhenItsRoomOrTimeIsSpent(t *testing.T) {
	for name, tc := range map[string]struct {
		pass pass
		full bool
	}{
		"room and time": {pass{left: 2, until: time.Now().Add(time.Hour)}, false},
		"no room":       {pass{left: 1, until: time.Now().Add(time.Hour)}, true},
		"no time":       {pass{left: maxBatch, until: time.Now().Add(-time.Second)}, true},
	} {
		if full := tc.pass.full(); full != tc.full || tc.pass.more != tc.full {
			t.Errorf("%s: full is %v and more %v, want %v", name, full, tc.pass.more, tc.full)
		}
	}
}
