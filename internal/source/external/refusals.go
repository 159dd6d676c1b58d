package external

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// refusals are the consumers whose latest answers cannot be used, and when they are read again.
type refusals struct {
	ids sets.Set[string]
	// pause doubles with each reading of them, up to lastRetry. At is the time of the next one, zero
	// for none.
	pause time.Duration
	at    time.Time
}

// due returns the consumers if it is time to read them again.
func (r *refusals) due() sets.Set[string] {
	if r.at.IsZero() || time.Now().Before(r.at) {
		return nil
	}
	return r.ids
}

// note notes a round that began at a time: the consumers that it was about, and those that were refused.
// It drops those that are followed no longer.
func (r *refusals) note(began time.Time, read, refused []string, follows func(id string) bool) {
	r.ids.Delete(read...).Insert(refused...)
	maps.DeleteFunc(r.ids, func(id string, _ sets.Empty) bool { return !follows(id) })
	switch {
	case len(r.ids) == 0:
		r.pause, r.at = 0, time.Time{}
	case !r.at.After(began):
		r.pause = min(max(firstRetry, 2*r.pause), lastRetry)
		r.at = time.Now().Add(r.pause)
	}
}
