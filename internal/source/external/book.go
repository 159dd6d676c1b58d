package external

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// MaxDistinct bounds the different answers of a monitor that are kept.
	MaxDistinct = 1024
	// MaxConsumers bounds the consumers that a monitor is asked about. The others have its default
	// answer.
	MaxConsumers = 10_000
	// patience is for how long reading must have failed until the monitor, or its answer for a consumer,
	// counts as unavailable. A restart of the monitor is shorter.
	patience = 10 * time.Second
)

// notYet is the problem of a monitor that has not answered, and of which nothing worse is known.
const notYet = "it has not answered yet"

// book keeps the answers of one monitor. It is safe for concurrent use.
type book struct {
	mu sync.Mutex
	// asked is set once the consumers are known.
	asked bool
	// entries has one for each consumer that the monitor is asked about, and for the empty ID.
	entries map[string]*consumerEntry
	// distinct are the answers in use, by a hash of their content.
	distinct map[[sha256.Size]byte]*sharedAnswer
	// names holds the resource names of all answers so far. They are never dropped: a resource that was
	// offered once is offered as 0 for ever.
	names sets.Set[string]
	// down is the failure of the whole monitor.
	down failure
}

// consumerEntry holds the state of a consumer.
type consumerEntry struct {
	// asked is set once the monitor was asked about the consumer.
	asked bool
	// answer is nil before the first one, which at is the time of.
	answer *sharedAnswer
	at     time.Time
	failure
}

// sharedAnswer is shared by the entries with equal amounts.
type sharedAnswer struct {
	key     [sha256.Size]byte
	amounts capacity.Amounts
	users   int
}

// failure is a series of failed readings. The zero value is none.
type failure struct {
	since   time.Time
	problem string
	// stale is set once it has lasted too long.
	stale bool
}

// fail notes a failed reading, and reports whether that changes anything but the end of the series.
func (f *failure) fail(began, now time.Time, problem string) (changed bool) {
	if f.since.IsZero() {
		f.since = began
	}
	before := *f
	f.problem, f.stale = problem, f.stale || now.Sub(f.since) >= patience
	return *f != before
}

// end ends the series, and reports whether anybody could have noticed it.
func (f *failure) end() (changed bool) {
	changed = f.problem != ""
	*f = failure{}
	return changed
}

func newBook() *book {
	return &book{
		entries: map[string]*consumerEntry{"": {}}, distinct: map[[sha256.Size]byte]*sharedAnswer{},
		names: sets.Set[string]{},
	}
}

// follow sets the consumers, sorted, that the monitor is asked about. It returns those that are new,
// and those that it was asked about before and no longer is.
func (b *book) follow(ids []string) (added, left []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = true
	ids = ids[:min(len(ids), MaxConsumers)]
	for id, e := range b.entries {
		if _, followed := slices.BinarySearch(ids, id); id != "" && !followed {
			if e.asked {
				left = append(left, id)
			}
			b.release(e)
			delete(b.entries, id)
		}
	}
	for _, id := range ids {
		if b.entries[id] == nil {
			b.entries[id] = &consumerEntry{}
			added = append(added, id)
		}
	}
	return added, left
}

// asking notes that the monitor is about to be asked about a consumer.
func (b *book) asking(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[id]; e != nil {
		e.asked = true
	}
}

// all returns the IDs that the monitor is asked about, the empty one first.
func (b *book) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.entries))
}

// refused returns the IDs about which the latest reading was refused.
func (b *book) refused() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range b.entries {
		if e.problem != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// follows reports whether the monitor is asked about a consumer.
func (b *book) follows(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[id] != nil
}

// note notes what the monitor answered for a consumer, and reports whether it is news. An answer that
// cannot be kept is an error.
func (b *book) note(id string, amounts capacity.Amounts, now time.Time) (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil {
		return false, nil // It has left in the meantime.
	}
	changed = b.down.end()
	next, err := b.intern(amounts, e)
	if err != nil {
		return changed, err
	}
	next.users++
	changed = e.end() || changed || e.answer != next
	b.release(e)
	e.answer, e.at = next, now
	return changed, nil
}

// intern returns the answer with these amounts, for an entry.
func (b *book) intern(amounts capacity.Amounts, e *consumerEntry) (*sharedAnswer, error) {
	text, _ := json.Marshal(amounts) // It sorts the names, and cannot fail.
	key := sha256.Sum256(text)
	if known := b.distinct[key]; known != nil {
		return known, nil
	}
	if replaces := e.answer != nil && e.answer.users == 1; len(b.distinct) >= MaxDistinct && !replaces {
		return nil, fmt.Errorf("it answers differently for more than %d consumers", MaxDistinct)
	}
	names := b.names.Union(sets.KeySet(amounts))
	if len(names) > MaxResources {
		return nil, fmt.Errorf("it has answered more than %d different resources by now", MaxResources)
	}
	b.names = names
	next := &sharedAnswer{key: key, amounts: amounts}
	b.distinct[key] = next
	return next, nil
}

// release drops the answer of an entry.
func (b *book) release(e *consumerEntry) {
	if e.answer == nil {
		return
	}
	if e.answer.users--; e.answer.users == 0 {
		delete(b.distinct, e.answer.key)
	}
	e.answer = nil
}

// refuse notes that a reading about one consumer failed that began at a time, and reports whether that
// is news.
func (b *book) refuse(id, problem string, began, now time.Time) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil {
		return false
	}
	changed = b.down.end()
	return e.fail(began, now, problem) || changed
}

// lose notes that the monitor could not be read at all, and reports whether that is news.
func (b *book) lose(problem string, began, now time.Time) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.down.fail(began, now, problem)
}

// oldest returns the time of the oldest answer, zero for none.
func (b *book) oldest() (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.answer != nil && (at.IsZero() || e.at.Before(at)) {
			at = e.at
		}
	}
	return at
}

// answers returns what the monitor has answered so far.
func (b *book) answers() capacity.Answers {
	b.mu.Lock()
	defer b.mu.Unlock()
	type kind struct {
		answer *sharedAnswer
		stale  bool
	}
	out := capacity.Answers{Of: make(map[string]capacity.Answered, len(b.entries)), Asked: b.asked}
	kinds := map[kind]int{}
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(b.entries)) {
		e := b.entries[id]
		// A monitor may refuse the empty ID, which matters only while it is asked about nobody else.
		if e.problem != "" && (e.stale || e.answer == nil) && (id != "" || len(b.entries) == 1) {
			problems = append(problems, aboutConsumer(id, e.problem))
		}
		if e.answer == nil {
			out.Awaited = append(out.Awaited, id)
			continue
		}
		k := kind{e.answer, e.stale || b.down.stale}
		index, known := kinds[k]
		if !known {
			index = len(out.Distinct)
			kinds[k] = index
			out.Distinct = append(out.Distinct, capacity.Answer{Amounts: e.answer.amounts, Stale: k.stale})
		}
		out.Of[id] = capacity.Answered{Index: index, At: e.at}
	}
	switch {
	case b.down.problem != "" && (b.down.stale || len(out.Of) == 0):
		out.Problem = b.down.problem
	case len(problems) > 0:
		out.Problem = strings.Join(problems[:min(len(problems), maxShownProblems)], "; ")
		if more := len(problems) - maxShownProblems; more > 0 {
			out.Problem += fmt.Sprintf("; and for %d more consumers", more)
		}
	case len(out.Of) == 0:
		out.Problem = notYet
	}
	return out
}

// maxShownProblems bounds the consumers that a problem names.
const maxShownProblems = 3

func aboutConsumer(id, problem string) string {
	if id == "" {
		return problem
	}
	return "for " + id + ", " + problem
}
