package offer

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// The pool of a policy does not follow every pod of this cluster's own: grants would be rewritten all
// day, and the youngest of them would fall to 0 and come back, each time at the cost of its consumer's
// pods. A pool is therefore given out at a level, one for each resource, by the rules below. The
// threshold of a policy is a percentage of the level.
const (
	// SmallDipPercent: a dip below the level by at most this much waits. A deeper dip lowers the level at
	// once, to what there is.
	SmallDipPercent = 10
	// DipBound: a small dip that lasts this long lowers the level to the least that there was during the
	// dip. More than there is is given out for no longer than this.
	DipBound = 30 * time.Second
	// DipCalm: a dip ends when there has been as much as the level for this long. A dip that comes back
	// sooner goes on.
	DipCalm = 10 * time.Second
	// RaisePause: the level is raised when there has been more for this long, to the least that there was
	// during that time; a rise by more than SmallDipPercent raises it at once, to what there is. Neither
	// happens within this time of a lowering.
	RaisePause = 2 * time.Minute
)

// Stabilizer keeps the levels of pools from one evaluation to the next. The zero Stabilizer has no
// levels; each starts at what there is. It is not safe for concurrent use. A copy goes on by itself.
type Stabilizer struct {
	// pools is replaced and never changed, as is all that it holds.
	pools map[string]poolLevels
}

// poolLevels holds the levels of one policy's pool, by resource.
type poolLevels struct {
	version   string
	resources map[string]level
}

// StabilizerAt returns a Stabilizer with these levels, by policy and resource, whose pools have been at
// their levels so far.
func StabilizerAt(policies []Policy, given map[string]capacity.Amounts) Stabilizer {
	s := Stabilizer{pools: map[string]poolLevels{}}
	for i := range policies {
		p := &policies[i]
		l := poolLevels{version: p.Version, resources: map[string]level{}}
		for resource, amount := range given[p.Name] {
			l.resources[resource] = level{given: amount, there: amount}
		}
		s.pools[p.Name] = l
	}
	return s
}

// Stabilize sets in.Levels to the levels at a time, and returns after how long a level will change if
// nothing else does, 0 for never. Levels exist for policies of free capacity of this cluster's own nodes
// with a threshold: with a threshold of 0 every change is published, and what peers no longer give is
// never given out. Devices have no level. An edit of a policy resets its levels.
func (s *Stabilizer) Stabilize(now time.Time, in *Input) (again time.Duration) {
	before := s.pools
	s.pools, in.Levels = map[string]poolLevels{}, map[string]capacity.Amounts{}
	_, pools := selectionsOf(in.Policies)
	for i := range in.Policies {
		p := &in.Policies[i]
		if p.Nodes == nil || p.Nodes.Selection.Peers != nil || p.Nodes.Count != Free || p.ThresholdPercent == 0 {
			continue
		}
		was := before[p.Name]
		if was.version != p.Version {
			was = poolLevels{}
		}
		next := poolLevels{version: p.Version, resources: map[string]level{}}
		s.pools[p.Name], in.Levels[p.Name] = next, capacity.Amounts{}
		for _, step := range newPool(p.Nodes, &in.View, pools[p], nil).steps {
			if capacity.InDevices(step.Resource) {
				continue
			}
			l, known := was.resources[step.Resource]
			if !known {
				l = level{given: step.Pool}
			}
			if wait := l.observe(now, step.Pool); wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
			next.resources[step.Resource] = l
			in.Levels[p.Name][step.Resource] = l.given
		}
	}
	return again
}

// level is the amount of one resource of a pool that is given out.
type level struct {
	given int64
	// there is the amount that was last observed. It has not changed since.
	there int64
	// dip is the time of an amount below the level, rise the time of an amount above it, zero for none.
	dip, rise episode
	// low is the last time at which the amount was below the level, lowered the last time at which the
	// level was lowered.
	low, lowered time.Time
}

// episode is a period in which the amount was always below the level, or always above it.
type episode struct {
	since time.Time
	least int64
}

// continues starts the episode unless it runs already, and notes an amount.
func (e *episode) continues(now time.Time, there int64) {
	if e.since.IsZero() {
		*e = episode{since: now, least: there}
	}
	e.least = min(e.least, there)
}

// lasted reports whether the episode has lasted for a duration.
func (e *episode) lasted(now time.Time, long time.Duration) bool {
	return !e.since.IsZero() && now.Sub(e.since) >= long
}

// observe notes what there is, and returns after how long the level changes if that stays, 0 for
// never.
func (l *level) observe(now time.Time, there int64) (again time.Duration) {
	if l.there < l.given {
		l.low = now
	}
	l.there = there
	switch {
	case there < l.given:
		l.low = now
		l.dip.continues(now, there)
	case now.Sub(l.low) >= DipCalm:
		l.dip = episode{}
	}
	if there > l.given {
		l.rise.continues(now, there)
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

// small is the largest difference from the level of a small dip or a small rise.
func (l *level) small() int64 { return capacity.Share(l.given, SmallDipPercent, 100) }

// set moves the level, to no more than there is.
func (l *level) set(now time.Time, to int64) {
	l.given, l.dip, l.rise = to, episode{}, episode{}
	if l.there > to {
		l.rise.continues(now, l.there)
	}
}

// wait is the time until the level changes if the amount stays as it is, 0 for never.
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
