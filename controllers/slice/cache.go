package slice

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"proffer.dev/proffer/internal/grant/protocol"
)

// rememberedRemovals is for how many slices that are gone the book still knows so.
const rememberedRemovals = 4096

// grantCache holds the ResourceSlices and what is on record for each: the register of a replica. A slice may come from the watch, from a list
// or from the result of a write, in any order: the newest counts. The same holds for the records.
//
// What a slice was granted is what protocol.Entry says, and never what stands in the slice: others can write that.
type grantCache struct {
	mu    sync.Mutex
	byKey map[string]types.UID
	byUID map[types.UID]*entry
	// removed has the versions at which slices were removed, so that news that is older does not bring one back for good.
	removed *simplelru.LRU[types.UID, string]
	// sorted is nil when it has to be made anew.
	sorted []*claim
	// term is empty while this process does not lead.
	term string
	// deciding is set while a decision is being made, and decision is the number of the last one. No worker begins with what an earlier one
	// has planned, so that a decision need not count it.
	deciding bool
	decision uint64
}

// entry is what is known of one slice, and of one that is gone while a record of it is left.
type entry struct {
	// slice is the last state that is known; of a slice that is gone only what its record says.
	slice slice
	gone  bool
	// removedAt is when it was found to be gone.
	removedAt time.Time
	record    grantRecord
	grants    protocol.Entry
	// adopted is what stood in the slice when a term began with an empty book. It counts until it is on record.
	adopted protocol.Share
	// began is what was on record when the term began, or adopted then. sent says that an answer was sent of which it is not known what came.
	began protocol.Shares
	sent  bool
	// ours is the last answer that is known to stand by a write of this term.
	ours *given
	// job is what is being written, or is to be; nil if all is as it is to be. While writing, a worker has it.
	job     *job
	writing bool
	// failed counts the writes that failed since one was made; until then none is tried.
	failed int
	until  time.Time
	// stuck says that this version of the slice cannot be written, however small the answer is.
	stuck string
	pace  *rate.Limiter
	// view is nil when it has to be made anew.
	view *claim
}

// claim is a slice and what it has, as a decision takes it. It never changes.
type claim struct {
	slice
	gone      bool
	removedAt time.Time
	// holder is the consumer that the record names, empty without a record.
	holder string
	// holds is what counts as granted, by class.
	holds protocol.Shares
	// recorded says that there is a record, or may be; present is the class that it is for.
	recorded bool
	present  string
	released bool
	// settled says that an answer of this term is confirmed in the class of the slice.
	settled bool
	// began, sent and ours are those of the entry.
	began protocol.Shares
	sent  bool
	ours  *given
	// writing says that a worker is at it; stuck says that no answer can be written.
	writing, stuck bool
}

// given is an answer with where it comes from.
type given struct {
	answer
	share protocol.Share
	// at is when it was decided.
	at time.Time
	// short says that the whole answer did not fit into the slice.
	short bool
}

func newGrantCache() *grantCache {
	removed, err := simplelru.NewLRU[types.UID, string](rememberedRemovals, nil)
	utilruntime.Must(err)
	return &grantCache{byKey: map[string]types.UID{}, byUID: map[types.UID]*entry{}, removed: removed}
}

// set records a slice unless a newer state of it is known, and reports whether anything that is decided by has changed.
func (b *grantCache) set(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record(s)
}

func (b *grantCache) record(s slice) bool {
	if at, gone := b.removed.Get(s.uid); gone && !protocol.Newer(s.version(), at) {
		return false
	}
	if uid, found := b.byKey[s.key]; found && uid != s.uid {
		if before := b.byUID[uid]; !protocol.Newer(s.version(), before.slice.version()) {
			return false
		}
		b.leave(uid)
	}
	e := b.byUID[s.uid]
	if e == nil {
		e = &entry{}
		b.byUID[s.uid] = e
	}
	known := !e.gone && e.slice.object != nil
	if known && !protocol.Newer(s.version(), e.slice.version()) {
		return false
	}
	changed := !known || !same(&e.slice, &s) || e.stuck != ""
	e.slice, e.gone, e.removedAt, e.stuck = s, false, time.Time{}, ""
	b.byKey[s.key] = s.uid
	b.touch(e)
	return changed
}

// touch notes that an entry has changed.
func (b *grantCache) touch(e *entry) { e.view, b.sorted = nil, nil }

// remove forgets a slice, but for its record, and reports whether it was known. Another slice of the same name stays.
func (b *grantCache) remove(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed.Add(s.uid, s.version())
	if b.byKey[s.key] != s.uid {
		return false
	}
	b.leave(s.uid)
	return true
}

// leave notes that a slice is gone.
func (b *grantCache) leave(uid types.UID) {
	e := b.byUID[uid]
	delete(b.byKey, e.slice.key)
	e.gone, e.removedAt, e.ours = true, time.Now(), nil
	b.touch(e)
	b.dropIfEmpty(uid)
}

// dropIfEmpty forgets a slice that is gone, once nothing is on record for it.
func (b *grantCache) dropIfEmpty(uid types.UID) {
	if e := b.byUID[uid]; e != nil && e.gone && !e.writing && !e.grants.Recorded() {
		delete(b.byUID, uid)
		b.sorted = nil
	}
}

func (b *grantCache) removeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, uid := range b.byKey {
		b.leave(uid)
	}
}

// setRecord takes what the watch says of a record, and reports whether that is news.
func (b *grantCache) setRecord(r grantRecord) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entryOf(r)
	before := e.grants.OnRecord()
	e.record = r
	e.grants.RecordSeen(&r.Record, r.version)
	b.touch(e)
	return !before.Same(e.grants.OnRecord())
}

// entryOf returns the entry for a record, a new one of a slice that is gone if none is known.
func (b *grantCache) entryOf(r grantRecord) *entry {
	e := b.byUID[r.uid]
	if e == nil {
		e = &entry{slice: r.slice(), gone: true, removedAt: time.Now()}
		b.byUID[r.uid] = e
	}
	return e
}

// removeRecord takes it that a record was deleted.
func (b *grantCache) removeRecord(r grantRecord) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byUID[r.uid]
	if e == nil {
		return false
	}
	before := e.grants.OnRecord()
	e.grants.RecordSeen(nil, r.version)
	b.touch(e)
	b.dropIfEmpty(r.uid)
	return !before.Same(e.grants.OnRecord())
}

// list returns the slices by their keys. The caller must not change what they refer to.
func (b *grantCache) list() []*claim {
	all, _ := b.claims()
	return all
}

// claims returns the slices by their keys, then those that are gone, and the term, empty for none. Nobody may change them.
func (b *grantCache) claims() ([]*claim, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snapshot()
}

func (b *grantCache) snapshot() ([]*claim, string) {
	if b.sorted == nil {
		b.sorted = make([]*claim, 0, len(b.byUID))
		for _, e := range b.byUID {
			if e.view == nil {
				e.view = e.claim()
			}
			b.sorted = append(b.sorted, e.view)
		}
		slices.SortFunc(b.sorted, func(x, y *claim) int { return x.compare(y) })
	}
	return b.sorted, b.term
}

// holdsForPods reports whether something counts that was held in another class, or more than the answer accepts: how much does depends on pods,
// and changes without the slice.
func (c *claim) holdsForPods() bool {
	return len(c.holds) > 1 || len(c.holds) == 1 && (c.holds[0].Class != c.class || !c.standing(c.holds[0]).Same(c.holds[0]))
}

// compare orders slices by their keys; those of one name by their UIDs.
func (c *claim) compare(o *claim) int {
	return cmp.Or(cmp.Compare(c.key, o.key), cmp.Compare(c.uid, o.uid))
}

// decide is claims for who is about to decide on all slices: until decided is called, no worker begins with one.
func (b *grantCache) decide() ([]*claim, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deciding = b.term != ""
	b.decision++
	return b.snapshot()
}

// decided ends what decide began, once all is planned.
func (b *grantCache) decided() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deciding = false
}

func (e *entry) claim() *claim {
	holds := e.grants.OnRecord()
	if e.writing { // It is about to be on record.
		holds = e.grants.Holds()
	}
	if !e.grants.Recorded() {
		holds = holds.Add(e.adopted)
	}
	c := &claim{
		slice: e.slice, gone: e.gone, removedAt: e.removedAt, holds: holds, recorded: e.grants.Recorded(), released: e.grants.Released(),
		settled: e.grants.Settled(e.slice.class), began: e.began, sent: e.sent, ours: e.ours, writing: e.writing, stuck: e.stuck != "",
	}
	c.present, _ = e.grants.Present()
	if c.recorded || len(c.holds) > 0 {
		c.holder = e.record.consumer
	}
	return c
}

// begin has this process lead, with the records and the slices as the API server has just listed them. If there is no record at all, as after
// a new installation, the answers that stand and are ours are taken for granted: see adopt.
func (b *grantCache) begin(term string, listed []slice, records []grantRecord, adopt func(*slice) (holder string, ok bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range listed {
		b.record(s)
	}
	for _, e := range b.byUID {
		e.forgetTerm()
		e.grants.Begin(nil, "")
	}
	for _, r := range records {
		e := b.entryOf(r)
		e.record = r
		e.grants.Begin(&r.Record, r.version)
		e.began = e.grants.OnRecord()
	}
	for uid, e := range b.byUID {
		if holder, ok := adopt(&e.slice); len(records) == 0 && !e.gone && ok {
			e.record.consumer = holder
			e.adopted = protocol.Share{Class: e.slice.class, Amounts: e.slice.answer.resources}
			e.began = protocol.Shares{e.adopted}
		}
		b.dropIfEmpty(uid)
	}
	b.term, b.sorted = term, nil
}

// end is for when this process leads no longer, and nothing is being written any more.
func (b *grantCache) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, e := range b.byUID {
		e.forgetTerm()
		e.grants.End()
		b.dropIfEmpty(uid)
	}
	b.term, b.sorted, b.deciding = "", nil, false
}

func (e *entry) forgetTerm() {
	*e = entry{slice: e.slice, gone: e.gone, removedAt: e.removedAt, record: e.record, grants: e.grants}
}

// Labels on pods that say which identity offloaded them, see github.com/liqotech/liqo/pkg/utils/resource.EscapeLabel.
var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9-_.]`)

// creatorOf is what Liqo labels the pods with that run under a slice of a consumer: liqo.io/creator-user, which its webhook sets from the
// identity of the slice (authentication.CommonNameResourceSliceCSR).
func creatorOf(name, consumer string) string {
	sum := sha256.Sum256([]byte(consumer))
	return notInLabels.ReplaceAllString(fmt.Sprintf("%s-%x", name, sum[:6]), "-")
}

// forgetGone drops from a register, by UID, what it has of slices that are not among all.
func forgetGone[T any](register map[types.UID]T, all []*claim) {
	there := make(map[types.UID]struct{}, len(all))
	for i := range all {
		there[all[i].uid] = struct{}{}
	}
	maps.DeleteFunc(register, func(uid types.UID, _ T) bool {
		_, stays := there[uid]
		return !stays
	})
}
