package federation

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

const (
	// pollPeriod is the time between two readings of a provider that reports no change. A random part of up
	// to pollJitter is added, so that providers are not all read at the same time.
	pollPeriod = 50 * time.Second
	pollJitter = 20 * time.Second
	// changePeriod is the time between two readings of a provider that reports changes all the time, after
	// changeBurst of them.
	changePeriod = 20 * time.Second
	changeBurst  = 3
)

// follower reads one provider again and again.
type follower struct {
	// read reads what the provider publishes, and returns the version to await changes from, empty if
	// nothing could be read.
	read func(context.Context) (version string)
	// awaitChange reports whether the provider has announced a change. It returns when it does, when the
	// provider ends the request, or with the context.
	awaitChange func(ctx context.Context, version string) bool
}

// run reads the provider until the context ends: at once, after each change that it announces, and
// otherwise once a period. What a provider announces is only a reason to read it, sooner or later.
func (f follower) run(ctx context.Context) {
	changes := rate.NewLimiter(rate.Every(changePeriod), changeBurst)
	for ctx.Err() == nil {
		version := f.read(ctx)
		period := pollPeriod + rand.N(pollJitter)
		next := time.After(period)
		if version != "" && f.changed(ctx, version, period) && changes.Wait(ctx) == nil {
			continue
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// changed awaits a change for no longer than this time, which is that until the next reading.
func (f follower) changed(ctx context.Context, version string, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return f.awaitChange(ctx, version)
}
