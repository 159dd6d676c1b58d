package trends

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var begin = time.Date(2026, 11, 29, 6, 0, 30, 0, time.UTC)

var gold = Subject{Policy: "gold", Resource: "cpu"}

func pool(capacity, committed int64) []Sample {
	return []Sample{{Subject: gold, Capacity: capacity, Committed: committed, Used: committed / 2}}
}

func TestARingKeepsADayOfMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Ring
		known := map[int64]float64{}
		now := begin
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			steps := rapid.SampledFrom([]int{-60, 10, 60, 60, 60, 600, 40_000, 100_000}).Draw(t, "seconds")
			now = now.Add(time.Duration(steps) * time.Second)
			amount := rapid.Int64Range(0, 255).Draw(t, "amount") // Exact in 8 bits.
			minute := now.Unix() / 60
			if minute < r.last {
				clear(known) // The clock was set back.
			}
			if minute != r.last {
				known[minute] = float64(amount)
			}
			r.Add(now, pool(1000, amount), nil)
		}
		for minute := range known {
			if r.last-minute >= 1440 {
				delete(known, minute)
			}
		}
		l, ok := r.Lines(gold, 1440)
		if ok != (r.last > r.first) {
			t.Fatalf("%v with the samples from %d to %d", ok, r.first, r.last)
		}
		for i, got := range l.Committed {
			want, there := known[r.first+int64(i)]
			if !there {
				want = math.NaN()
			}
			if !cmp.Equal(got, want, cmpopts.EquateNaNs()) {
				t.Fatalf("minute %d of %d: got %v, want %v", i, len(l.Committed), got, want)
			}
		}
		if ok && (len(l.Committed) != int(r.last-r.first)+1 || l.To.Unix() != r.last*60 || l.To.Sub(l.From) >= For) {
			t.Fatalf("%d points from %v to %v", len(l.Committed), l.From, l.To)
		}
	})
}

func TestAPointIsTheMeanOfItsMinutes(t *testing.T) {
	var r Ring
	for i := range 10 {
		r.Add(begin.Add(time.Duration(i)*time.Minute), pool(8, int64(i)), []Sample{{Subject: Subject{Consumer: "rome", Resource: "cpu"}, Committed: 4, Used: int64(i)}})
	}
	got, _ := r.Lines(gold, 5)
	want := Lines{
		From: begin.Truncate(time.Minute), To: begin.Add(9 * time.Minute).Truncate(time.Minute),
		Capacity: []float64{8, 8, 8, 8, 8}, Committed: []float64{0.5, 2.5, 4.5, 6.5, 9}, Used: []float64{0, 1, 2, 3, 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, _ = r.Lines(Subject{Consumer: "rome", Resource: "cpu"}, 2)
	if got.Capacity != nil || !cmp.Equal(got.Used, []float64{2, 9}) {
		t.Errorf("of a consumer: %+v", got)
	}
	for _, of := range []Subject{{Policy: "silver", Resource: "cpu"}, {Consumer: "oslo", Resource: "cpu"}} {
		if got, ok := r.Lines(of, 5); ok {
			t.Errorf("of %v: %+v", of, got)
		}
	}
}

// A consumer that has nothing any longer is at 0; a pool that is gone is not known.
func TestWhoHasNothingIsAtZero(t *testing.T) {
	var r Ring
	rome := Sample{Subject: Subject{Consumer: "rome", Resource: "cpu"}, Committed: 4, Used: 2}
	r.Add(begin, pool(8, 4), []Sample{rome})
	r.Add(begin.Add(time.Minute), nil, nil)
	if l, _ := r.Lines(rome.Subject, 2); !cmp.Equal(l.Committed, []float64{4, 0}) || !cmp.Equal(l.Used, []float64{2, 0}) {
		t.Errorf("of the consumer: %+v", l)
	}
	if l, _ := r.Lines(gold, 2); l.Committed[0] != 4 || !math.IsNaN(l.Committed[1]) {
		t.Errorf("of the pool: %+v", l)
	}
}

func TestARingIsBounded(t *testing.T) {
	var r Ring
	sampled := func(minute int, prefix string) {
		var pools, consumers []Sample
		for i := range 1000 {
			name := prefix + string(rune('a'+i%26)) + string(rune('a'+i/26))
			pools = append(pools, Sample{Subject: Subject{Policy: name}})
			consumers = append(consumers, Sample{Subject: Subject{Consumer: name}})
		}
		r.Add(begin.Add(time.Duration(minute)*time.Minute), pools, consumers)
	}
	size := func() (bytes int) {
		for _, all := range []map[Subject]*history{r.pools, r.consumers} {
			for _, h := range all {
				bytes += len(h.of) * int(unsafe.Sizeof(h.of[0]))
			}
		}
		return bytes
	}
	sampled(0, "old")
	if len(r.pools) != MaxPools || len(r.consumers) != MaxConsumers || size() > 2<<20 {
		t.Fatalf("%d pools, %d consumers, %d bytes", len(r.pools), len(r.consumers), size())
	}
	// Who comes later has to wait until others have been gone for a day.
	sampled(1439, "new")
	if _, kept := r.pools[Subject{Policy: "newaa"}]; kept || r.pools[Subject{Policy: "oldaa"}] == nil {
		t.Error("a pool that came later is kept")
	}
	sampled(1440, "new")
	if _, kept := r.pools[Subject{Policy: "newaa"}]; !kept || len(r.pools) != MaxPools || len(r.consumers) != MaxConsumers {
		t.Errorf("%d pools, %d consumers", len(r.pools), len(r.consumers))
	}
}

func TestNumbersAreExactEnough(t *testing.T) {
	for _, amount := range []int64{0, 1, 255, 256, 1000, 12_345, 64 << 30, math.MaxInt64} {
		got := numberOf(amount).float()
		if math.Abs(got-float64(amount)) > float64(amount)/256 {
			t.Errorf("%d becomes %v", amount, got)
		}
	}
	if !math.IsNaN(unknown.float()) {
		t.Error("what is not known is an amount")
	}
}
