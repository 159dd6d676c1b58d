package controllers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"proffer.dev/proffer/internal/capacity"
)

// rememberedRemovals is for how many slices that are gone the book still knows so.
const rememberedRemovals = 4096

// sliceBook is the register of the slices, and of what they have been granted. A slice may be told by the watch, by a list and by what a write
// of its status returns, in any order: the newest counts.
//
// While this process leads, what a slice was granted is what this process wrote, or found when it began to lead, and not what stands in the
// slice: others can write that. What is being written counts from before the write until it is known to have been made or not.
type sliceBook struct {
	mu    sync.Mutex
	byKey map[string]*claim
	// removed has the versions at which slices were removed, so that news that is older does not bring one back for good.
	removed *simplelru.LRU[types.UID, string]
	// sorted is nil when it has to be made anew.
	sorted []claim
	// term is 0 while this process does not lead, and another number each time that it does.
	term, terms int
}

// claim is a slice and what it was granted.
type claim struct {
	slice
	// ours is the last answer, nil if there is none of this term.
	ours *given
	// maybe are answers of which it is not known whether they were written: each write goes for one version, so at most one of them was.
	maybe        []given
	maybeVersion string
	// writing is the answer that is on its way, nil if there is none; writingTo is the version that it was decided on.
	writing   *given
	writingTo slice
	// failed counts the writes that failed since one was made; until then none is tried.
	failed int
	until  time.Time
}

// given is an answer with where it comes from.
type given struct {
	answer
	// class is the class in which it was given; policy is the one that decided, empty if that is not known.
	class, policy string
	// version is that of the slice when it was written; at is when.
	version string
	at      time.Time
}

func newSliceBook() *sliceBook {
	removed, err := simplelru.NewLRU[types.UID, string](rememberedRemovals, nil)
	utilruntime.Must(err)
	return &sliceBook{byKey: map[string]*claim{}, removed: removed}
}

// set records a slice unless a newer state of it is known, and reports whether anything that is decided by has changed.
func (b *sliceBook) set(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record(s)
}

func (b *sliceBook) record(s slice) bool {
	if at, gone := b.removed.Get(s.uid); gone && !newer(s.version(), at) {
		return false
	}
	known, found := b.byKey[s.key]
	if found && !newer(s.version(), known.version()) {
		return false
	}
	b.sorted = nil
	if !found || known.uid != s.uid {
		b.byKey[s.key] = &claim{slice: s}
		return true
	}
	changed := !same(&known.slice, &s)
	known.slice = s
	if known.maybe != nil && newer(s.version(), known.maybeVersion) {
		known.learn()
		changed = true
	}
	return changed
}

// learn takes the answer that was written, if any was, from the version that came of it.
func (c *claim) learn() {
	for _, g := range c.maybe {
		if equal(g.answer, c.answer) {
			g.version = c.version()
			c.ours = &g
		}
	}
	c.maybe, c.maybeVersion, c.until = nil, "", time.Time{}
}

// remove forgets a slice, and reports whether it was known. Another slice of the same name stays.
func (b *sliceBook) remove(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed.Add(s.uid, s.version())
	known, found := b.byKey[s.key]
	if !found || known.uid != s.uid {
		return false
	}
	delete(b.byKey, s.key)
	b.sorted = nil
	return true
}

func (b *sliceBook) removeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.byKey)
	b.sorted = nil
}

// list returns the slices by their keys. The caller must not change what they refer to.
func (b *sliceBook) list() []claim {
	all, _ := b.claims()
	return all
}

// claims returns the slices by their keys, and the term, 0 for none. The caller must not change what they refer to.
func (b *sliceBook) claims() ([]claim, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sorted == nil {
		b.sorted = make([]claim, 0, len(b.byKey))
		for _, key := range slices.Sorted(maps.Keys(b.byKey)) {
			b.sorted = append(b.sorted, *b.byKey[key])
		}
	}
	return b.sorted, b.term
}

// begin has this process lead, with the slices as the API server has just listed them: what is ours of their answers is granted.
func (b *sliceBook) begin(listed []slice, ours func(*slice) bool) (term int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetTerm()
	for _, s := range listed {
		b.record(s)
		if known := b.byKey[s.key]; known != nil && known.uid == s.uid && ours(&s) {
			known.ours = &given{answer: s.answer, class: s.class, version: s.version()}
		}
	}
	b.terms++
	b.term = b.terms
	return b.term
}

// end is for when this process leads no longer, and nothing is being written any more.
func (b *sliceBook) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetTerm()
	b.term = 0
}

func (b *sliceBook) forgetTerm() {
	for _, c := range b.byKey {
		*c = claim{slice: c.slice}
	}
	b.sorted = nil
}

// start books an answer before it is written, and reports whether it may be: the term goes on, the slice is the one that was decided on,
// and nothing else is on its way.
func (b *sliceBook) start(term int, decidedOn *claim, g given) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.still(term, decidedOn)
	if known == nil {
		return false
	}
	known.writing, known.writingTo, b.sorted = &g, decidedOn.slice, nil
	return true
}

// still returns the slice that was decided on, nil if the term is over, another version is known, or an answer is on its way.
func (b *sliceBook) still(term int, decidedOn *claim) *claim {
	known := b.byKey[decidedOn.key]
	if term == 0 || term != b.term || known == nil || known.uid != decidedOn.uid || known.version() != decidedOn.version() || known.writing != nil {
		return nil
	}
	return known
}

// keep notes that an answer stands already as it is to be.
func (b *sliceBook) keep(term int, decidedOn *claim, g given) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.still(term, decidedOn)
	if known == nil {
		return
	}
	g.version = known.version()
	known.ours, b.sorted = &g, nil
}

// forget is for a slice that was answered, and is none of this process' concern any more.
func (b *sliceBook) forget(term int, gone *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.byKey[gone.key]; term == b.term && known != nil && known.uid == gone.uid && known.writing == nil {
		known.ours, b.sorted = nil, nil
	}
}

// pending returns the slice that an answer is to be written to, as it was decided on, and the answer; nil if there is nothing any more.
func (b *sliceBook) pending(key string) (*claim, *given) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byKey[key]
	if known == nil || known.writing == nil {
		return nil, nil
	}
	c := *known
	c.slice = known.writingTo
	return &c, known.writing
}

// awaiting returns the slice that an answer is on its way to, nil if the term is over or the slice is gone.
func (b *sliceBook) awaiting(to *claim, g *given) *claim {
	if known := b.byKey[to.key]; known != nil && known.uid == to.uid && known.writing == g {
		return known
	}
	return nil
}

// written notes that an answer was written, with the slice that came of it.
func (b *sliceBook) written(to *claim, g *given, result *unstructured.Unstructured) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.awaiting(to, g)
	if known == nil {
		return
	}
	g.version = result.GetResourceVersion()
	known.ours, known.writing, known.failed, known.until = g, nil, 0, time.Time{}
	b.record(parseSlice(result))
	known.maybe, known.maybeVersion, b.sorted = nil, "", nil
}

// unwritten notes that a write failed. Unless it was refused for certain, the answer counts until a newer version of the slice shows whether
// it was made all the same. It returns when the next may be tried.
func (b *sliceBook) unwritten(to *claim, g *given, certain bool, wait func(failed int) time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.awaiting(to, g)
	if known == nil {
		return 0
	}
	known.writing, b.sorted = nil, nil
	known.failed++
	left := wait(known.failed)
	known.until = time.Now().Add(left)
	if certain {
		return left
	}
	known.maybe, known.maybeVersion = append(known.maybe, *g), to.version()
	if newer(known.version(), known.maybeVersion) {
		known.learn() // The watch was faster than the error.
	}
	return left
}

// granted is what counts as granted to a slice: what it was answered, and what it may have been. Nil is nothing. The caller must not
// change it.
func (c *claim) granted() capacity.Amounts {
	if c.writing == nil && c.maybe == nil {
		return c.ours.granted()
	}
	var out capacity.Amounts
	count := func(a *answer) {
		if a.verdict != accepted {
			return
		}
		if out == nil {
			out = make(capacity.Amounts, len(a.resources))
		}
		for name, amount := range a.resources {
			out[name] = max(out[name], amount)
		}
	}
	if c.ours != nil {
		count(&c.ours.answer)
	}
	if c.writing != nil {
		count(&c.writing.answer)
	}
	for i := range c.maybe {
		count(&c.maybe[i].answer)
	}
	return out
}

// origin is the answer that says where what is granted came from, nil if there is none.
func (c *claim) origin() *given {
	switch {
	case c.ours != nil:
		return c.ours
	case c.writing != nil:
		return c.writing
	case len(c.maybe) > 0:
		return &c.maybe[len(c.maybe)-1]
	}
	return nil
}

// granted is what an answer grants, nil for nothing. The caller must not change it.
func (g *given) granted() capacity.Amounts {
	switch {
	case g == nil || g.verdict != accepted:
		return nil
	case g.resources == nil:
		return capacity.Amounts{}
	}
	return g.resources
}

// forgetGone drops from a register, by UID, what it has of slices that are not among all.
func forgetGone[T any](register map[types.UID]T, all []claim) {
	there := make(map[types.UID]struct{}, len(all))
	for i := range all {
		there[all[i].uid] = struct{}{}
	}
	maps.DeleteFunc(register, func(uid types.UID, _ T) bool {
		_, stays := there[uid]
		return !stays
	})
}

// newer compares versions of objects of one kind. Where they are not numbers, as those of the API server are, whatever is told last is newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
