package federation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// readings runs a follower for this time, and returns when it has read the provider.
func readings(t *testing.T, run time.Duration, version string, awaitChange func(context.Context) bool) []time.Duration {
	t.Helper()
	var at []time.Duration
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), run)
		defer cancel()
		follower{
			read: func(context.Context) string {
				at = append(at, time.Since(start))
				return version
			},
			awaitChange: func(ctx context.Context, from string) bool {
				if from != version {
					t.Errorf("awaits changes from %q, want %q", from, version)
				}
				return awaitChange(ctx)
			},
		}.run(ctx)
		if got := time.Since(start); got != run {
			t.Errorf("ran for %v, want %v", got, run)
		}
	})
	return at
}

func silent(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestAProviderThatAnnouncesNothingIsReadOnceAPeriod(t *testing.T) {
	for name, awaitChange := range map[string]func(context.Context) bool{
		"a silent connection":         silent,
		"a request that ends at once": func(context.Context) bool { return false },
	} {
		at := readings(t, 10*time.Minute, "7", awaitChange)
		if len(at) < 9 || len(at) > 13 {
			t.Errorf("%s: read %d times in 10 minutes", name, len(at))
		}
		for i := range at[1:] {
			if wait := at[i+1] - at[i]; wait < pollPeriod || wait > pollPeriod+pollJitter {
				t.Errorf("%s: waited for %v", name, wait)
			}
		}
	}
}

func TestAChangeIsAwaitedUntilTheNextReading(t *testing.T) {
	var deadlines []time.Time
	at := readings(t, 10*time.Minute, "7", func(ctx context.Context) bool {
		deadline, _ := ctx.Deadline()
		deadlines = append(deadlines, deadline)
		return silent(ctx)
	})
	for i := range at[1:] {
		if awaited := deadlines[i].Sub(deadlines[0]) + at[1]; awaited != at[i+1] {
			t.Errorf("a change is awaited until %v, and the next reading is at %v", awaited, at[i+1])
		}
	}
}

func TestAChangeIsReadAtOnce(t *testing.T) {
	announced := false
	at := readings(t, time.Minute, "7", func(ctx context.Context) bool {
		if announced {
			return silent(ctx)
		}
		announced = true
		announcing, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		<-announcing.Done()
		return true
	})
	if len(at) < 2 || at[1] != 3*time.Second {
		t.Errorf("read at %v, want one after 3 s", at)
	}
}

// A flood of changes costs one reading in each changePeriod.
func TestAProviderThatAnnouncesChangesAllTheTimeIsReadSeldom(t *testing.T) {
	at := readings(t, 10*time.Minute, "7", func(context.Context) bool { return true })
	if most := changeBurst + int(10*time.Minute/changePeriod) + 1; len(at) > most {
		t.Errorf("read %d times in 10 minutes, want at most %d", len(at), most)
	}
	for i := range at[1:] {
		if wait := at[i+1] - at[i]; wait > changePeriod {
			t.Errorf("a change waited for %v", wait)
		}
	}
}

// Without a version there is nothing to await changes from.
func TestAProviderThatCannotBeReadIsTriedOnceAPeriod(t *testing.T) {
	at := readings(t, 10*time.Minute, "", func(context.Context) bool {
		t.Error("awaits a change")
		return true
	})
	if len(at) < 9 || len(at) > 13 {
		t.Errorf("read %d times in 10 minutes", len(at))
	}
}
