package trends

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAPoolWillBeExhausted(t *testing.T) {
	for name, tc := range map[string]struct {
		// committed is what of 100 is committed after some minutes, negative for what is not known.
		committed func(minute int) int64
		minutes   int
		want      time.Duration
	}{
		"steadily, 10 an hour":        {func(m int) int64 { return int64(m / 6) }, 300, 5 * time.Hour},
		"in steps of an hour":         {func(m int) int64 { return int64(m / 60 * 10) }, 361, 4 * time.Hour},
		"too slowly":                  {func(m int) int64 { return int64(m / 60) }, 360, 0},
		"not for an hour yet":         {func(m int) int64 { return int64(m) }, 59, 0},
		"for an hour":                 {func(m int) int64 { return int64(m) }, 60, 41 * time.Minute},
		"already":                     {func(m int) int64 { return int64(min(100, m)) }, 360, 0},
		"by one large grant":          {func(m int) int64 { return int64(m / 300 * 60) }, 360, 0},
		"by one in the middle":        {func(m int) int64 { return int64(m / 180 * 60) }, 360, 0},
		"by one, and a little before": {func(m int) int64 { return int64(10 + m/60 - max(0, m/60-1) + m/210*50) }, 360, 0},
		"it was more":                 {func(m int) int64 { return int64(m*99/359) - int64(m/359*5) }, 360, 21 * time.Minute},
		"by nobody":                   {func(int) int64 { return 50 }, 360, 0},
		"by nobody, it falls":         {func(m int) int64 { return int64(90 - m/6) }, 360, 0},
		"perhaps, up and down":        {func(m int) int64 { return int64(m/60*3 + m%2*60) }, 360, 0},
		"of the day before":           {func(m int) int64 { return int64(min(m/6, 60)) }, 1200, 0},
		"with minutes nobody saw":     {func(m int) int64 { return int64(m/6) - int64(m%3/2*1000) }, 300, 5 * time.Hour},
		"with the last minute unseen": {func(m int) int64 { return int64(m/6) - int64(m/299*1000) }, 300, 5 * time.Hour},
	} {
		var r Ring
		for m := range tc.minutes {
			if amount := tc.committed(m); amount >= 0 {
				r.Add(begin.Add(time.Duration(m)*time.Minute), pool(100, amount), nil)
			}
		}
		var want []Exhaustion
		if tc.want > 0 {
			want = []Exhaustion{{"gold", "cpu", tc.want}}
		}
		got := r.Exhaustions()
		near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= max(a, b)/10 })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnExhaustionIsOfTheLastSamples(t *testing.T) {
	var r Ring
	for m := range 361 {
		r.Add(begin.Add(time.Duration(m)*time.Minute), pool(100, int64(m/6)), nil)
		if got := r.Exhaustions(); m == 300 && len(got) != 1 {
			t.Fatalf("after 5 hours: %v", got)
		}
	}
	before := r.Exhaustions()
	r.Add(begin.Add(361*time.Minute), pool(100, 100), nil)
	if after := r.Exhaustions(); len(before) != 1 || len(after) != 0 {
		t.Errorf("before nothing was left %v, then %v", before, after)
	}
	r.Add(begin, pool(100, 1), nil)
	if got := r.Exhaustions(); len(got) != 0 {
		t.Errorf("after the clock was set back: %v", got)
	}
}

// What was foreseen before the clock was set back is forgotten, even in the same minute as before.
func TestAClockThatIsSetBackForgetsWhatWasForeseen(t *testing.T) {
	var r Ring
	for m := range 120 {
		r.Add(begin.Add(time.Duration(m)*time.Minute), pool(255, int64(m)), nil)
	}
	if got := r.Exhaustions(); len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	for m := 100; m < 120; m++ {
		r.Add(begin.Add(time.Duration(m)*time.Minute), pool(255, 0), nil)
	}
	if got := r.Exhaustions(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsNotGivenOutFasterIsNoTrend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Ring
		amount := rapid.Int64Range(0, 255).Draw(t, "amount")
		for m := range 360 {
			amount -= rapid.Int64Range(0, min(1, amount)).Draw(t, "less")
			r.Add(begin.Add(time.Duration(m)*time.Minute), pool(256, amount), nil)
		}
		if got := r.Exhaustions(); len(got) > 0 {
			t.Fatalf("%+v", got)
		}
	})
}

func TestTheNextExhaustionComesFirst(t *testing.T) {
	var r Ring
	for m := range 120 {
		var pools []Sample
		for i, name := range []string{"c", "a", "b"} {
			pools = append(pools, Sample{Subject: Subject{Policy: name, Resource: "cpu"}, Capacity: 255, Committed: int64(m / (1 + i%2))})
		}
		r.Add(begin.Add(time.Duration(m)*time.Minute), pools, nil)
	}
	var names []string
	for _, e := range r.Exhaustions() {
		names = append(names, e.Policy)
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
