package broker

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// MaxGap is the longest time between two observations that counts. Over a longer time nobody has
// looked.
const MaxGap = 2 * time.Minute

// History holds for how long a provider was observed and Ready, in whole seconds. The zero value is for
// a provider that was never observed.
type History struct {
	Ready, Observed time.Duration
	// Last is the time of the latest observation, and WasReady what it was.
	Last     time.Time
	WasReady bool
}

// Observe adds the time since the latest observation, in which the provider was as it was then, and
// returns the history with this observation. The time does not count if it is longer than MaxGap, or
// negative.
//
// A history covers between one window and five quarters of it: when it reaches the latter, all of it
// is scaled down to one window, so what is older has less weight. The time that was not Ready is
// rounded down, so that it becomes 0 after some windows without a failure.
func (h History) Observe(ready bool, now time.Time, window time.Duration) History {
	passed := now.Sub(h.Last).Truncate(time.Second)
	switch {
	case h.Last.IsZero() || passed > MaxGap || passed < 0:
		h.Last = now.Truncate(time.Second)
	case passed == 0 && ready == h.WasReady:
		return h
	default:
		h.Last = h.Last.Add(passed)
		h.Observed += passed
		if h.WasReady {
			h.Ready += passed
		}
	}
	h.WasReady = ready
	h.Ready = min(max(0, h.Ready), h.Observed)
	if h.Observed >= window+window/4 {
		seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
		failed := capacity.Share(seconds(h.Observed-h.Ready), seconds(window), seconds(h.Observed))
		h.Ready = window - time.Duration(failed)*time.Second
		h.Observed = window
	}
	return h
}

// Uptime returns the value of the KPI Uptime, and whether it is measured.
func (h History) Uptime() (value int64, measured bool) {
	if h.Observed < time.Second {
		return 0, false
	}
	return int64(100_000 * (h.Ready / time.Second) / (h.Observed / time.Second)), true
}

// Forgotten reports whether the latest observation is longer ago than the window.
func (h History) Forgotten(now time.Time, window time.Duration) bool { return now.Sub(h.Last) > window }
