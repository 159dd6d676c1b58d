package metasync

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/dbtest"
	"proffer.dev/proffer/internal/table"
)

func TestAFailedPassIsRepeatedLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := table.New()
		b := New(Config{
			Options: Options{Engine: config.MySQL, DSNFile: filepath.Join(t.TempDir(), "none"), ClusterID: "milan", Sample: time.Minute},
			Table:   tab, Log: logr.Discard(),
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		errors := func() float64 { return testutil.ToFloat64(b.metrics.passes.WithLabelValues(resultError)) }
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		if n := errors(); n != 0 {
			t.Fatalf("%v passes before the first snapshot", n)
		}
		tab.Publish(*newProvider().snapshot())
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		// After 1, 2, 4, 8, 16 and 32 s, and then each minute, with up to a second of debouncing each.
		if n := errors(); n < 13 || n > 16 {
			t.Errorf("%v failed passes in 10 minutes, want about 14", n)
		}
		if lag := b.metrics.lagAt(time.Now()); lag != 10*time.Minute {
			t.Errorf("the lag is %v, want 10m", lag)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if lag := b.metrics.lagAt(time.Now()); lag != 0 {
			t.Errorf("the lag of a replica that does not lead is %v, want 0", lag)
		}
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
