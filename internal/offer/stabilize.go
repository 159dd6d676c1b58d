package offer

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// What a policy gives of its nodes does not follow each pod of this cluster's own: grants would be rewritten all day, and the youngest of them
// would fall to 0 and come back, each time at the cost of its consumer's pods. So a pool is given out at a level, by these rules, for each
// resource; threshold percentages are of the level.
const (
	// SmallDipPercent: a dip below the level of at most so much waits; a deeper one lowers the level at once, to what there is.
	SmallDipPercent = 10
	// DipBound: a small dip that is not over by then lowers the level to the least that there was meanwhile. So for no longer than that is more
	// given out than there is.
	DipBound = 30 * time.Second
	// DipCalm: a dip is over when there has been as much as the level for so long. One that comes back sooner goes on.
	DipCalm = 10 * time.Second
	// RaisePause: the level is raised when there has been more for so long, to the least that there was meanwhile; or at once, to what there
	// is, where that is more by over SmallDipPercent. Neither happens within this time of a lowering.
	RaisePause = 2 * time.Minute
)

// Stabilizer keeps the levels of pools from one evaluation to the next. The zero Stabilizer knows of none, and starts each at what there is. It
// is not safe for concurrent use.
type Stabilizer struct {
	pools map[string]*levels
}

// levels are those of one policy's pool, by resource.
type levels struct {
	version    string
	byResource map[string]*level
}

// Stabilize sets in.Stable to the levels at a time, and returns after how long to look again if nothing happens until then, 0 for never. Levels are
// kept for policies of free capacity with a threshold: at 0 percent every change is published. An edit of a policy takes effect at once.
func (s *Stabilizer) Stabilize(now time.Time, in *Input) (again time.Duration) {
	before := s.pools
	s.pools, in.Stable = map[string]*levels{}, nil
	column := make(map[string]int, len(in.View.Columns))
	for i, name := range in.View.Columns {
		column[name] = i
	}
	_, places := selectionsOf(in.Policies)
	for i := range in.Policies {
		p := &in.Policies[i]
		if p.Nodes == nil || p.Nodes.Count != Free || p.ThresholdPercent == 0 {
			continue
		}
		was := before[p.Name]
		if was == nil || was.version != p.Version {
			was = &levels{version: p.Version}
		}
		next := &levels{version: p.Version, byResource: map[string]*level{}}
		s.pools[p.Name] = next
		of := plan{Policy: p, pool: &in.View.Pools[places[p]]}
		for _, step := range of.shares(column) {
			l := was.byResource[step.Resource]
			if l == nil {
				l = &level{given: step.Pool}
			}
			next.byResource[step.Resource] = l
			if wait := l.observe(now, step.Pool); wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
			in.stable(p.Name, step.Resource, l.given)
		}
	}
	return again
}

func (in *Input) stable(policy, resource string, amount int64) {
	if in.Stable == nil {
		in.Stable = map[string]capacity.Amounts{}
	}
	if in.Stable[policy] == nil {
		in.Stable[policy] = capacity.Amounts{}
	}
	in.Stable[policy][resource] = amount
}

// level is how much is given out of one resource of a pool.
type level struct {
	given int64
	// there is what there was when it was looked at last: it has been so since.
	there int64
	// dip is since when there was less, rise since when there was more, zero for neither.
	dip, rise episode
	// low is when there was less last, lowered when the level was lowered.
	low, lowered time.Time
}

// episode is a time in which there was never as much as the level, or always more.
type episode struct {
	since time.Time
	least int64
}

func (e *episode) goes(now time.Time, there int64) {
	if e.since.IsZero() {
		*e = episode{since: now, least: there}
	}
	e.least = min(e.least, there)
}

// lasted reports whether the episode has lasted so long.
func (e *episode) lasted(now time.Time, long time.Duration) bool {
	return !e.since.IsZero() && now.Sub(e.since) >= long
}

// observe takes what there is now, and returns when to look again if it stays so, 0 for never.
func (l *level) observe(now time.Time, there int64) (again time.Duration) {
	if l.there < l.given {
		l.low = now
	}
	l.there = there
	switch {
	case there < l.given:
		l.low = now
		l.dip.goes(now, there)
	case now.Sub(l.low) >= DipCalm:
		l.dip = episode{}
	}
	if there > l.given {
		l.rise.goes(now, there)
	} else {
		l.rise = episode{}
	}
	paused := !l.lowered.IsZero() && now.Sub(l.lowered) < RaisePause
	switch {
	case there < l.given-l.small():
		l.set(now, there)
		l.lowered = now
	case l.dip.lasted(now, DipBound):
		l.set(now, l.dip.least)
		l.lowered = now
	case paused:
	case there > capacity.Sum(l.given, l.small()):
		l.set(now, there)
	case l.rise.lasted(now, RaisePause):
		l.set(now, l.rise.least)
	}
	return l.wait(now)
}

// small is the most that a small dip, or a small rise, differs from the level.
func (l *level) small() int64 { return capacity.Share(l.given, SmallDipPercent, 100) }

// set moves the level, to no more than there is.
func (l *level) set(now time.Time, to int64) {
	l.given, l.dip, l.rise = to, episode{}, episode{}
	if l.there > to {
		l.rise.goes(now, l.there)
	}
}

// wait is after how long the level changes if there is as much as now until then.
func (l *level) wait(now time.Time) time.Duration {
	var at time.Time
	switch {
	case l.there < l.given:
		at = l.dip.since.Add(DipBound)
	case l.there > l.given:
		if at = l.rise.since.Add(RaisePause); l.there > capacity.Sum(l.given, l.small()) {
			at = l.lowered.Add(RaisePause)
		}
	default:
		return 0
	}
	return at.Sub(now)
}
