package offer

import (
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// pool is the share of some nodes that one policy gives out: what it has, what is committed of it, and
// what remains. It does not change once committed.
type pool struct {
	*capacity.Pool
	nodes *Nodes
	view  *capacity.View
	// index is the place of the Pool in the View.
	index int
	// granted is, by column, what grants commit of the pool beyond what pods use of it.
	granted capacity.Row
	// steps are the arithmetic of the pool, sorted by resource.
	steps []Step
}

// newPool returns the pool of a policy before anything is committed, nil for a policy without nodes. The
// levels are the amounts at which it is given out, for resources with a level.
func newPool(policy *Policy, view *capacity.View, index int, levels capacity.Amounts) *pool {
	nodes := policy.Nodes
	if nodes == nil {
		return nil
	}
	p := &pool{Pool: &view.Pools[index], nodes: nodes, view: view, index: index}
	count := 0
	for _, listed := range p.Listed {
		if listed {
			count++
		}
	}
	p.steps = make([]Step, 0, count)
	for c, listed := range p.Listed {
		if !listed {
			continue
		}
		name := view.Columns[c]
		s := Step{
			Resource: name, Source: FromNodes, Max: unset, Held: unset,
			Reserve: nodes.Reserve[name], Percent: nodes.Percent, column: c,
		}
		if percent, ok := nodes.Percentages[name]; ok {
			s.Percent = percent
		}
		s.Counted, s.Blocked = p.Free[c], p.Blocked.At(c)
		if nodes.Count == Allocatable {
			s.Counted, s.Blocked = p.Allocatable[c], 0
		}
		s.Pool = s.present()
		if given, ok := levels[name]; ok {
			s.Pool = given
		}
		if policy.Reclaim == Evict {
			s.spared = s.whole() - s.present()
		}
		p.steps = append(p.steps, s)
	}
	slices.SortFunc(p.steps, byResource)
	return p
}

// overlaps reports whether two pools share a node.
func (p *pool) overlaps(o *pool) bool { return p != nil && o != nil && p.Overlaps[o.index] }

// isWithin reports whether the other pool has every node of this one. A pool without nodes is within
// itself only.
func (p *pool) isWithin(o *pool) bool {
	return p.index == o.index || p.Nodes > 0 && p.Shared[o.index] == p.Nodes
}

// lists reports whether a node of the pool lists the resource.
func (p *pool) lists(resource string) bool {
	return p != nil && slices.ContainsFunc(p.steps, func(s Step) bool { return s.Resource == resource })
}

// used returns the part of a consumer's use of the pool that counts: nothing where only grants count.
func (p *pool) used(use *capacity.Use) capacity.Row {
	if p != nil && p.nodes.Count == Free {
		return use.In(p.index)
	}
	return nil
}

// addGrant commits what a consumer was granted on the nodes of the pool, less what its pods use of
// it: the larger of the two is committed.
func (p *pool) addGrant(granted capacity.Row, use *capacity.Use) {
	if p.granted == nil {
		p.granted = make(capacity.Row, len(granted))
	}
	used := p.used(use)
	for c, amount := range granted {
		p.granted[c] = capacity.Sum(p.granted[c], max(0, amount-used.At(c)))
	}
}

// commit works out what remains, after all grants have been added. Each consumer commits the larger of
// what it was granted and what its pods request; of a pool that counts allocatable, what it was granted.
func (p *pool) commit() {
	for i := range p.steps {
		s := &p.steps[i]
		s.Committed = p.granted.At(s.column)
		if p.nodes.Count == Free {
			s.Committed = capacity.Sum(p.InUse.At(s.column), s.Committed)
		}
		s.Remaining = max(0, s.Pool-s.Committed)
	}
}

// forGiver returns the steps of the pool for the consumer that gives some of its nodes. What a peer gives
// is never offered back to it: the consumer is offered what the other nodes have. Of what remains, that is
// what is left if all that is committed and not in use on its own nodes is on the others.
func (p *pool) forGiver(id string) []Step {
	steps := slices.Clone(p.steps)
	for i := range p.view.Cells {
		c := &p.view.Cells[i]
		if c.Peer != id || !slices.Contains(c.Pools, p.index) {
			continue
		}
		for k := range steps {
			s := &steps[k]
			if p.nodes.Count == Allocatable {
				s.Gives = capacity.Sum(s.Gives, c.Allocatable.At(s.column))
				continue
			}
			s.Gives = capacity.Sum(s.Gives, c.Free.At(s.column))
			s.Taken = capacity.Sum(s.Taken, c.InUse.At(s.column))
		}
	}
	for k := range steps {
		s := &steps[k]
		others := s.shareOf(s.Counted - s.Gives)
		s.Gives = max(0, s.Pool-others)
		s.Taken = min(s.Taken, s.Gives)
	}
	return steps
}

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
			l.resources[resource] = level{given: amount, there: amount, whole: unset}
		}
		s.pools[p.Name] = l
	}
	return s
}

// Stabilize sets in.Levels to the levels at a time, and returns after how long a level will change if
// nothing else does, 0 for never. Levels exist for policies of free capacity of this cluster's own nodes
// with a threshold: with a threshold of 0 every change is published, and what peers no longer give is
// never given out. Devices have a level only while nodes are full, see Step.Blocked, and until it has risen
// again. An edit of a policy resets its levels.
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
		for _, step := range newPool(p, &in.View, pools[p], nil).steps {
			l, has := was.levelOf(now, &step)
			if !has {
				continue
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

// levelOf returns the level of a resource before it is observed, and whether it has one. Devices follow at once what
// comes and goes of them. But the pods that fill a node may come and go all day: so what they block falls at once, and
// rises like everything else.
func (p poolLevels) levelOf(now time.Time, s *Step) (l level, has bool) {
	l, has = p.resources[s.Resource]
	there, whole := s.present(), s.whole()
	switch devices := capacity.InDevices(s.Resource); {
	case !devices && !has:
		return level{given: there}, true
	case !devices:
		return l, true
	case has && (l.whole == whole || l.whole == unset) && (there < whole || l.given < whole):
		l.whole = whole
		return l, true
	}
	return level{given: there, whole: whole, lowered: now}, there < whole
}

// level is the amount of one resource of a pool that is given out.
type level struct {
	given int64
	// there is the amount that was last observed. It has not changed since. whole is, of devices, what it was without
	// full nodes, and unset if that is not known.
	there, whole int64
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
