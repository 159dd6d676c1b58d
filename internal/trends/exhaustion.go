package trends

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// within is the time that an exhaustion must be in, window the time that the line goes through, and least the
	// part of it that must be known.
	within = 24 * time.Hour
	window = 6 * time.Hour
	least  = time.Hour
	// explained is the least part of the variance that the line must explain.
	explained = 0.6
	// half is the least part of the rise that each half of the time must have.
	half = 0.25
)

// Exhaustion is a resource of a pool of which nothing will be left.
type Exhaustion struct {
	Policy, Resource string
	// In is after how long, if it goes on as it did.
	In time.Duration
}

// Exhaustions returns the resources of pools of which nothing will be left within 24 hours, the next one first. Those
// of which nothing is left already are not among them.
func (r *Ring) Exhaustions() []Exhaustion {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []Exhaustion
	for subject, h := range r.pools {
		if in, ok := h.exhaustion(r.last); ok {
			all = append(all, Exhaustion{Policy: subject.Policy, Resource: subject.Resource, In: in})
		}
	}
	slices.SortFunc(all, func(a, b Exhaustion) int {
		return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Resource, b.Resource))
	})
	return all
}

// point is a commitment at a time in minutes, 0 for the last one.
type point struct{ x, y float64 }

// exhaustion returns after how long the line through the commitments reaches the capacity.
func (h *history) exhaustion(last int64) (time.Duration, bool) {
	var known []point
	for minute := max(0, last-int64(window/Every)+1); minute <= last; minute++ {
		if y := h.at(commitments, minute); !math.IsNaN(y) {
			known = append(known, point{float64(minute - last), y})
		}
	}
	capacity, committed := h.at(capacities, last), h.at(commitments, last)
	if len(known) < int(least/Every) || !(committed < capacity) || !grows(known) {
		return 0, false
	}
	slope, ok := fit(known)
	if !ok {
		return 0, false
	}
	minutes := (capacity - committed) / slope
	if minutes > within.Minutes() {
		return 0, false
	}
	return max(Every, time.Duration(minutes)*Every), true
}

// grows reports whether each half of the time has a part of what more is committed at its end than at its begin.
func grows(known []point) bool {
	begin, middle, end := known[0].y, known[len(known)/2].y, known[len(known)-1].y
	return begin < end && middle-begin >= half*(end-begin) && end-middle >= half*(end-begin)
}

// fit returns the slope of the line of least squares. It returns false if the line does not rise, or does not explain
// enough of the variance.
func fit(known []point) (slope float64, ok bool) {
	n := float64(len(known))
	var mean point
	for _, p := range known {
		mean.x, mean.y = mean.x+p.x/n, mean.y+p.y/n
	}
	var xx, xy, yy float64
	for _, p := range known {
		x, y := p.x-mean.x, p.y-mean.y
		xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
	}
	if xy <= 0 || xy*xy < explained*xx*yy {
		return 0, false
	}
	return xy / xx, true
}
