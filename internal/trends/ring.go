package trends

import (
	"math"
	"sync"
	"time"
)

const (
	// Every is the time between two samples, For is for how long they are kept.
	Every = time.Minute
	For   = 24 * time.Hour
	// MaxPools and MaxConsumers bound the subjects of each kind. Those that come later are left out until others
	// have been gone for 24 hours.
	MaxPools, MaxConsumers = 100, 200

	samples = int(For / Every)
)

// amounts are the lines of a subject.
type amounts int

const (
	commitments amounts = iota
	uses
	// capacities is a line of pools alone.
	capacities
)

// history holds the samples of a subject. The sample of a minute is at its number modulo samples.
type history struct {
	of [][samples]number
	// last is the number of the last minute with a sample.
	last int64
}

// Ring keeps the samples of the last 24 hours, about 2 MB. The zero Ring is empty. It is safe for concurrent use.
type Ring struct {
	mu sync.RWMutex
	// first and last are the numbers of the first and the last minute with samples, 0 for none.
	first, last int64
	pools       map[Subject]*history
	consumers   map[Subject]*history
}

// Add adds the samples of a time. It ignores a second time in the same minute. If the clock was set back, it begins
// anew.
func (r *Ring) Add(at time.Time, pools, consumers []Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := at.Unix() / int64(Every/time.Second)
	if minute == r.last {
		return
	}
	if r.first == 0 || minute < r.last {
		r.first, r.pools, r.consumers = minute, map[Subject]*history{}, map[Subject]*history{}
	}
	// Nobody knows the minutes in which the process was stopped.
	for missed := max(r.last+1, minute-int64(samples)+1); missed <= minute; missed++ {
		for _, all := range []map[Subject]*history{r.pools, r.consumers} {
			for _, h := range all {
				h.set(missed, unknown, unknown, unknown)
			}
		}
	}
	r.last = minute
	r.first = max(r.first, minute-int64(samples)+1)
	record(r.pools, minute, pools, MaxPools, capacities)
	record(r.consumers, minute, consumers, MaxConsumers, uses)
}

// record adds samples to the histories of one kind, which have the lines up to the last one.
func record(all map[Subject]*history, minute int64, now []Sample, most int, last amounts) {
	for subject, h := range all {
		switch {
		case minute-h.last >= int64(samples):
			delete(all, subject)
		case subject.Consumer != "": // It has nothing now.
			h.set(minute, 0, 0)
		}
	}
	for i := range now {
		s := &now[i]
		h := all[s.Subject]
		if h == nil && len(all) < most {
			h = newHistory(last)
			all[s.Subject] = h
		}
		if h != nil {
			h.set(minute, numberOf(s.Committed), numberOf(s.Used), numberOf(s.Capacity))
			h.last = minute
		}
	}
}

func newHistory(last amounts) *history {
	h := &history{of: make([][samples]number, last+1)}
	for minute := range int64(samples) {
		h.set(minute, unknown, unknown, unknown)
	}
	return h
}

// set sets the sample of a minute, in the order of the lines.
func (h *history) set(minute int64, all ...number) {
	for line := range h.of {
		h.of[line][minute%int64(samples)] = all[line]
	}
}

func (h *history) at(line amounts, minute int64) float64 {
	return h.of[line][minute%int64(samples)].float()
}

// Lines are what a subject had in the last 24 hours, or for as long as the process knows. Each point is the mean of
// a part of that time, NaN for one that is not known; the last one is the last sample. Capacity is nil for a consumer.
type Lines struct {
	From, To                  time.Time
	Capacity, Committed, Used []float64
}

// Lines returns at most this number of points. It returns false for a subject without samples, and
// before the ring has two minutes.
func (r *Ring) Lines(of Subject, points int) (Lines, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	h := r.pools[of]
	if of.Consumer != "" {
		h = r.consumers[of]
	}
	known := r.last - r.first + 1
	if h == nil || known < 2 {
		return Lines{}, false
	}
	timeOf := func(minute int64) time.Time { return time.Unix(minute*int64(Every/time.Second), 0).UTC() }
	l := Lines{From: timeOf(r.first), To: timeOf(r.last)}
	points = min(points, int(known))
	for i := range int64(points) {
		from, to := r.first+known*i/int64(points), r.first+known*(i+1)/int64(points)
		if to > r.last {
			from = r.last
		}
		if len(h.of) > int(capacities) {
			l.Capacity = append(l.Capacity, h.mean(capacities, from, to))
		}
		l.Committed = append(l.Committed, h.mean(commitments, from, to))
		l.Used = append(l.Used, h.mean(uses, from, to))
	}
	return l, true
}

// mean returns the mean of the known samples from one minute to before another, NaN for none.
func (h *history) mean(line amounts, from, to int64) float64 {
	sum, n := 0.0, 0.0
	for minute := from; minute < to; minute++ {
		if x := h.at(line, minute); !math.IsNaN(x) {
			sum, n = sum+x, n+1
		}
	}
	return sum / n
}
