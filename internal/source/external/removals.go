package external

import (
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// RemoveAfter is for how long a consumer must be unknown until monitors are told to remove it. It is
	// longer than a peering that is made again, and Liqo itself may call up to 6 minutes late.
	RemoveAfter = 5 * time.Minute
	// inheritance is for how long a replica that does not lead keeps a removal that is due. It is longer
	// than a Lease, so that a new leader makes the calls that the old one could not make.
	inheritance = time.Minute
	// maxTries bounds the calls about one consumer. The pause after the first one doubles each time, so
	// that the last call is about two hours after the first: a monitor may be away for as long.
	maxTries   = 8
	firstPause = time.Minute
	// removeTick is the time between two looks at what is due. A look makes at most maxRemovals calls to
	// an endpoint, and begins none after removeTick.
	removeTick  = 10 * time.Second
	maxRemovals = 100
)

// endpoint is the program that monitors of several policies reach. They may differ in class, form and
// timeout, and it is told once to remove a consumer.
type endpoint struct{ address, caBundle, serverName string }

func endpointOf(m capacity.Monitor) endpoint {
	return endpoint{address: m.Address, caBundle: m.CABundle, serverName: m.ServerName}
}

// removal is a consumer that an endpoint was asked about and is asked about no longer.
type removal struct {
	// due is zero while the consumer is known.
	due   time.Time
	tries int
}

// removals holds the removals of all endpoints that monitors are read at, with at most MaxConsumers
// each.
type removals map[endpoint]map[string]removal

// addDeparted adds consumers that the endpoint is no longer asked about. It returns the number of dropped ones.
func (r removals) addDeparted(at endpoint, ids []string) (dropped int) {
	if r[at] == nil && len(ids) > 0 {
		r[at] = map[string]removal{}
	}
	for _, id := range ids {
		if _, is := r[at][id]; is {
			continue // It may be due.
		}
		if len(r[at]) >= MaxConsumers {
			dropped++
			continue
		}
		r[at][id] = removal{}
	}
	return dropped
}

// update drops the consumers that are asked about again, and the ones of endpoints that no policy
// names. A consumer that is no longer known is due at a time, unless it was before.
func (r removals) update(asked map[endpoint][]*book, known func(id string) bool, due time.Time) {
	for at, pending := range r {
		for id, one := range pending {
			switch {
			case len(asked[at]) == 0, slices.ContainsFunc(asked[at], func(b *book) bool { return b.follows(id) }):
				delete(pending, id)
			case known(id):
				pending[id] = removal{}
			case one.due.IsZero():
				pending[id] = removal{due: due}
			}
		}
		if len(pending) == 0 {
			delete(r, at)
		}
	}
}

// dueAt returns the consumers, sorted, that an endpoint is to be told about now.
func (r removals) dueAt(at endpoint, now time.Time) []string {
	var due []string
	for _, id := range slices.Sorted(maps.Keys(r[at])) {
		if r.isDue(at, id, now) && len(due) < maxRemovals {
			due = append(due, id)
		}
	}
	return due
}

func (r removals) isDue(at endpoint, id string, now time.Time) bool {
	one, is := r[at][id]
	return is && !one.due.IsZero() && !now.Before(one.due)
}

// expire drops what the leader has had the time for.
func (r removals) expire(now time.Time) {
	for at, pending := range r {
		maps.DeleteFunc(pending, func(id string, _ removal) bool { return r.isDue(at, id, now.Add(-inheritance)) })
	}
}

// failed schedules a retry of a call. It reports whether it gave up instead, after maxTries.
func (r removals) failed(at endpoint, id string, now time.Time) (givenUp bool) {
	one, is := r[at][id]
	if !is {
		return false // It has come back in the meantime.
	}
	if one.tries++; one.tries == maxTries {
		delete(r[at], id)
		return true
	}
	one.due = now.Add(firstPause << (one.tries - 1))
	r[at][id] = one
	return false
}
