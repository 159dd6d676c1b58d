package broker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const window = time.Hour

// observe makes observations in a row, each a minute after the one before.
func observe(h History, states ...bool) History {
	for _, ready := range states {
		now := h.Last.Add(time.Minute)
		if h.Last.IsZero() {
			now = start
		}
		h = h.Observe(ready, now, window)
	}
	return h
}

func TestTheTimeBetweenObservationsCountsAsTheEarlierOne(t *testing.T) {
	got := observe(History{}, true, true, false, false, true)
	want := History{Ready: 2 * time.Minute, Observed: 4 * time.Minute, Last: start.Add(4 * time.Minute), WasReady: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v, measured := got.Uptime(); v != 50_000 || !measured {
		t.Errorf("uptime %d, %v", v, measured)
	}
}

func TestTimeInWhichNobodyLookedDoesNotCount(t *testing.T) {
	h := observe(History{}, true, true)
	for _, gap := range []time.Duration{MaxGap + time.Second, 24 * time.Hour, -time.Minute} {
		got := h.Observe(false, h.Last.Add(gap), window)
		want := h
		want.Last, want.WasReady = h.Last.Add(gap), false
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", gap, diff)
		}
	}
	if got := h.Observe(true, h.Last.Add(MaxGap), window); got.Observed != h.Observed+MaxGap {
		t.Errorf("a gap of %v does not count: %v", MaxGap, got.Observed)
	}
}

func TestAnUptimeIsNotMeasuredAtFirst(t *testing.T) {
	if _, measured := (History{}).Observe(true, start, window).Uptime(); measured {
		t.Error("measured after one observation")
	}
}

// A failure has no weight after some windows, and all of it at once.
func TestAFailureIsForgottenAfterSomeWindows(t *testing.T) {
	h := observe(History{}, false)
	for range 60 {
		h = observe(h, true)
	}
	if v, _ := h.Uptime(); v != 98_333 {
		t.Errorf("uptime %d after an hour", v)
	}
	for range 60 * 20 {
		h = observe(h, true)
	}
	if v, _ := h.Uptime(); v != 100_000 {
		t.Errorf("uptime %d after 21 hours", v)
	}
	for range 60 {
		h = observe(h, false)
	}
	if v, _ := h.Uptime(); v > 50_000 {
		t.Errorf("uptime %d after an hour of failure", v)
	}
}

func TestWhatAlwaysHoldsOfAHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, now := History{}, start
		for range rapid.IntRange(1, 50).Draw(t, "observations") {
			before := h
			now = now.Add(time.Duration(rapid.IntRange(-1000, 200_000).Draw(t, "milliseconds")) * time.Millisecond)
			h = h.Observe(rapid.Bool().Draw(t, "ready"), now, time.Minute)
			if h.Ready < 0 || h.Ready > h.Observed || h.Observed > 2*time.Minute+MaxGap || h.Observed%time.Second != 0 || h.Ready%time.Second != 0 {
				t.Fatalf("%+v after %+v", h, before)
			}
			if v, measured := h.Uptime(); measured && (v < 0 || v > 100_000) {
				t.Fatalf("uptime %d", v)
			}
		}
	})
}

// What a status keeps are whole seconds, so a restart between any two observations changes nothing.
func TestAHistorySurvivesAStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stays, restarts, now := History{}, History{}, start
		for range 20 {
			now = now.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "milliseconds")) * time.Millisecond)
			ready := rapid.Bool().Draw(t, "ready")
			stays, restarts = stays.Observe(ready, now, window), restarts.Observe(ready, now, window)
			restarts = History{
				Ready:    time.Duration(int64(restarts.Ready.Seconds())) * time.Second,
				Observed: time.Duration(int64(restarts.Observed.Seconds())) * time.Second,
				Last:     time.Unix(restarts.Last.Unix(), 0).UTC(), WasReady: restarts.WasReady,
			}
			if diff := cmp.Diff(stays, restarts); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
