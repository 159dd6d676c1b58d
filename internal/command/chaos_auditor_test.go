package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// lag is the maximum age of the state behind an answer when the auditor sees the answer: batching,
// one evaluation and one write, on a busy machine. A larger value would only hide mistakes.
const lag = 5 * time.Second

// auditor checks every status that is written to a slice, in the order in which the API server
// accepted the writes.
//
// It adds up what the operator has promised only from what the operator wrote into the slices, and
// from the namespaces of the slices. A promise stands until the operator writes another answer,
// whatever the consumer does to the slice meanwhile. When a slice is deleted, or answered in
// another class, the requests of its pods still count in the old class. A drain, and Liqo's answer in
// its own class, end the promise.
//
// The operator decides by the provider's state shortly before it writes. So an answer that raises
// something is compared with the most that was in force since lag ago:
//   - The commitments of a class are within its capacity. A commitment is the larger of what a
//     consumer was granted and what its pods use on the nodes. Commitments in an overlapping class
//     count if they lasted since lag ago. With one overlapping class the limit is the capacity of
//     the class; with more, it is the capacity of all nodes of these classes. Two overlapping
//     classes may be decided one after the other, each by its own capacity, and be written in the
//     reverse order. This check does not apply to a slice or a consumer that is given no more than its
//     own pods already use.
//   - What the consumer has in the class is within the policy's max.
//   - A class that denies an excess grants all or nothing. A consumer that is cordoned, drained or
//     without Tenant gets nothing more, and neither does a slice that is not a replica of its
//     consumer's.
//
// For every answer: a slice has no more than it asks for, an accepted slice is never denied, and a
// slice that Liqo has answered in its own class is not answered. What a consumer grants itself is not a promise of the
// operator, which has to take it back.
type auditor struct {
	t        *testing.T
	provider *provider
	clock    *clock

	*foreignWrites

	mu sync.Mutex
	// at is when the version under inspection arrived.
	at     time.Duration
	slices map[string]*sliceState
	// released are promises of slices that are gone, that are answered in another class, or that have
	// less now. folded is the time up to which the use of pods has been applied to them.
	released map[releaseKey]*releasedPromise
	folded   time.Duration
	// ownUse is when a consumer, by class and ID, was last granted what its pods already use
	// although nothing was left.
	ownUse         map[[2]string]time.Duration
	writes, raises int
	checks         int
	wrong          int
	// history has all versions of slices.
	history []observed
	// wrote receives a value when an answer is observed.
	wrote chan struct{}
}

// releaseKey identifies the pods that use a released promise of a class.
type releaseKey struct{ owner, creator, class string }

// releasedPromise is what still counts of a promise: at most what pods have used ever since. Pods
// that the same creator starts later do not count.
type releasedPromise struct {
	amounts
	since time.Duration
}

// used returns what pods have used of the promise in all of the states.
func (p *releasedPromise) used(of releaseKey, recent []providerState) amounts {
	used := p.amounts
	for _, r := range recent {
		for i := range used {
			used[i] = min(used[i], r.pools[of.class].created[of.creator][i])
		}
	}
	return used
}

// observed is a version of a slice, as text.
type observed struct {
	at        time.Duration
	key, text string
}

// maxReports is the maximum number of mistakes that are reported.
const maxReports = 20

func (a *auditor) fail(format string, args ...any) {
	if a.wrong++; a.wrong <= maxReports {
		a.t.Errorf("%v, version that arrived at %v: "+format,
			append([]any{a.clock.now().Round(time.Millisecond), a.at.Round(time.Millisecond)}, args...)...)
	}
	if a.wrong == 1 {
		a.logContext(fmt.Sprintf(format, args...))
	}
}

func newAuditor(t *testing.T, config *rest.Config, p *provider, clock *clock) *auditor {
	t.Helper()
	api, err := dynamic.NewForConfig(config)
	test.Must(t, err)
	arrivals := newArrivals(t, config, clock.now)
	a := &auditor{
		t: t, provider: p, clock: clock, foreignWrites: newForeignWrites(), slices: map[string]*sliceState{},
		released: map[releaseKey]*releasedPromise{}, ownUse: map[[2]string]time.Duration{},
		wrote: make(chan struct{}, 1),
	}
	versions(t, api, clock.now, func(v sliceVersion) {
		if v.err != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.fail("reading a slice: %v", v.err)
			return
		}
		is := sliceStateOf(v.slice)
		a.observe(v.event, arrivals.of(is.version, v.at), is, a.author(is.key, is.version))
	})
	return a
}

func (a *auditor) observe(event watch.EventType, at time.Duration, is sliceState, author string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = at
	a.foldReleased()
	a.history = append(a.history, observed{at, is.key, fmt.Sprintf("%v: %s by %q: %s", at, event, author, is.line())})
	was := a.slices[is.key]
	if was != nil && (event == watch.Deleted || was.uid != is.uid) {
		a.release(was)
		delete(a.slices, is.key)
		was = nil
	}
	if event == watch.Deleted {
		return
	}
	if was == nil {
		was = &sliceState{class: is.class}
	}
	is.promised, is.promisedIn, is.left, is.forged = was.promised, was.promisedIn, was.left, was.forged
	a.slices[is.key] = &is
	defer is.carryOver(was, a.at)
	if was.answer == is.answer || was.answer == "" && is.status == "" {
		return
	}
	switch author {
	case "":
		a.writes++
		select {
		case a.wrote <- struct{}{}:
		default:
		}
		a.answered(was, &is)
	case forger:
		is.forged = true
	case others:
		if isLiqoClass(is.class) && is.promised != (amounts{}) {
			is.left = is.promised
		}
		a.release(&is)
	}
}

// release ends the promise of a slice. The part that its pods use stays in force.
func (a *auditor) release(s *sliceState) {
	at := releaseKey{ownerOf(s.key), s.creator, s.promisedIn}
	had := a.released[at]
	if had == nil {
		had = &releasedPromise{since: a.at}
		a.released[at] = had
	}
	for i := range s.promised {
		if s.promised[i] > had.amounts[i] {
			had.amounts[i], had.since = s.promised[i], a.at
		}
	}
	s.promised = amounts{}
}

// foldReleased limits each released promise to what pods have used since.
func (a *auditor) foldReleased() {
	for _, r := range a.provider.recent(a.folded, a.at) {
		for of, had := range a.released {
			if r.until < had.since {
				continue
			}
			for i := range had.amounts {
				had.amounts[i] = min(had.amounts[i], r.created[of.creator][i])
			}
			if had.amounts == (amounts{}) {
				delete(a.released, of)
			}
		}
	}
	a.folded = a.at
}

// answered checks one answer of the operator.
func (a *auditor) answered(was, is *sliceState) {
	a.checks++
	// Until Liqo answers its own class, the slice is lowered as in the class that it comes from.
	if isLiqoClass(is.class) && strings.HasPrefix(was.reason, "ResourceSlice") {
		a.fail("%s has Liqo's own class but was answered: %s", is.key, is.answer)
		return
	}
	if (was.status == authv1beta1.ResourceSliceConditionAccepted || was.promised != amounts{}) &&
		is.status != authv1beta1.ResourceSliceConditionAccepted {
		a.fail("%s was accepted before, but is now %s", is.key, is.status)
	}
	before, kept, from := is.promised, is.promised, is.promisedIn
	if (is.left != amounts{}) {
		before, kept, is.left = is.left, is.left, amounts{}
	}
	recent := a.provider.recent(a.at-lag, a.at)
	// If the slice cannot be answered in its new class, the promise stays in the class that made
	// it.
	offered := slices.ContainsFunc(recent, func(r providerState) bool { return r.offers(is.class) })
	if was.promisedIn == "" || was.promisedIn != is.class && is.open && offered {
		a.release(is)
		before, is.promisedIn = amounts{}, is.class
	}
	if !is.promised.within(is.granted) {
		a.release(is) // Its pods may still use what it has no longer.
	}
	is.promised, is.forged = is.granted, false
	shut := !is.open || slices.ContainsFunc(recent, func(r providerState) bool { return r.absent[ownerOf(is.key)] })
	for i := range is.granted {
		if is.granted[i] > is.request[i] && (is.granted[i] > kept[i] || !shut && ownerOf(is.key) != hostileID) {
			a.fail("%s requests %d but has %d", is.key, is.request, is.granted)
		}
		if is.granted[i] > kept[i] {
			a.raises++
			a.checkRaise(kept, is, i, recent)
		}
		if a.hasOneUnit(is, i, recent) || a.isItsOwnUse(is, i, recent) {
			continue
		}
		if is.granted[i] > before[i] {
			a.checkCapacity(before, is, i, recent, []string{is.promisedIn})
		}
		// A promise that moves between overlapping classes does not raise their sum.
		if overlapping := overlappingClasses(is.promisedIn, recent); is.granted[i] > kept[i] ||
			is.granted[i] > before[i] && !slices.Contains(overlapping, from) {
			a.checkCapacity(before, is, i, recent, overlapping)
			for _, other := range overlapping {
				a.checkCapacity(before, is, i, recent, []string{is.promisedIn, other})
			}
		}
	}
}

// hasOneUnit reports whether the slice has exactly one unit of the resource and its consumer has
// pods.
func (a *auditor) hasOneUnit(is *sliceState, i int, recent []providerState) bool {
	return is.granted[i] == 1 &&
		slices.ContainsFunc(recent, func(r providerState) bool { return r.used[ownerOf(is.key)] != amounts{} })
}

// isItsOwnUse reports whether the slice is granted no more than its own pods have used since it was granted
// that before: that counts already.
func (a *auditor) isItsOwnUse(is *sliceState, i int, recent []providerState) bool {
	of := releaseKey{ownerOf(is.key), is.creator, is.promisedIn}
	own := a.released[of]
	return own != nil && is.granted[i] <= own.used(of, recent)[i]
}

// isLiqoClass reports whether Liqo answers the class itself.
func isLiqoClass(class string) bool { return class == "default" || class == "" }

// checkRaise checks that the slice may be raised at all.
func (a *auditor) checkRaise(was amounts, is *sliceState, i int, recent []providerState) {
	owner := ownerOf(is.key)
	if !slices.ContainsFunc(recent,
		func(r providerState) bool { return !r.cordoned[owner] && !r.drained[owner] && !r.absent[owner] }) {
		a.fail("%s (%s) was raised from %d to %d, but its consumer is cordoned, drained or without Tenant: %s",
			is.key, is.version, was, is.granted, is.message)
	}
	if !is.open {
		a.fail("%s was raised from %d to %d, but it is not a replica of its consumer's, or is being deleted",
			is.key, was, is.granted)
	}
	if a.provider.share(is.promisedIn).denyExcess && is.granted != is.request {
		a.fail("%s (%s) was raised from %d to %d of %d, but its class grants all or nothing: %s",
			is.key, is.version, was, is.granted, is.request, is.message)
	}
	limit, limited := int64(0), true
	for _, r := range recent {
		if most := r.pools[is.promisedIn].max; most != nil {
			limit = max(limit, most[i])
		} else {
			limited = false
		}
	}
	limited = limited && !a.isItsOwnUse(is, i, recent) // That is no more for its consumer, whatever has become of max.
	if has := a.granted([]string{is.promisedIn}, nil, recent)[owner][i]; limited && has > limit {
		a.fail("%s was raised from %d to %d: its consumer has %d of the class, want at most %d",
			is.key, was, is.granted, has, limit)
	}
}

// overlappingClasses returns the classes, including this one, that overlapped with this class in
// all the states.
func overlappingClasses(class string, recent []providerState) []string {
	overlapping := []string{class}
	first := true
	for _, r := range recent {
		p, offered := r.pools[class]
		switch {
		case !offered:
		case first:
			overlapping, first = slices.Clone(p.overlapping), false
		default:
			overlapping = slices.DeleteFunc(overlapping,
				func(other string) bool { return !slices.Contains(p.overlapping, other) })
		}
	}
	return overlapping
}

// checkCapacity checks that a raise fits into the capacity, with all that is promised in the
// classes.
func (a *auditor) checkCapacity(was amounts, is *sliceState, i int, recent []providerState, overlapping []string) {
	a.checks++
	recent = slices.DeleteFunc(slices.Clone(recent), func(r providerState) bool { return !r.offers(is.promisedIn) })
	if len(recent) == 0 {
		a.fail("%s was raised from %d to %d, but no policy offers the class %s: %s (%s)",
			is.key, was, is.granted, is.promisedIn, is.message, is.version)
		return
	}
	owner, now := ownerOf(is.key), a.at
	granted := a.granted(overlapping, is, recent)
	capacity, least, most := int64(0), map[string]int64{}, map[string]int64{}
	for at, r := range recent {
		has := r.pools[is.promisedIn].capacity[i]
		if len(overlapping) > 2 {
			has = max(has, r.pools[is.promisedIn].together[i])
		}
		capacity = max(capacity, has)
		for id := range allKeys(granted, r.pools[is.promisedIn].used) {
			used := r.pools[is.promisedIn].used[id][i]
			if most[id] = max(most[id], used); at == 0 {
				least[id] = used
			}
			least[id] = min(least[id], used)
		}
	}
	if granted[owner][i] <= most[owner] {
		a.ownUse[[2]string{is.promisedIn, owner}] = now
		return
	}
	var sum int64
	var parts []string
	for id := range allKeys(granted, least) {
		part := max(granted[id][i], least[id])
		if at, ok := a.ownUse[[2]string{is.promisedIn, id}]; ok && now-at <= lag && id != owner {
			part = least[id]
		}
		sum += part
		parts = append(parts, fmt.Sprintf("%s %d", id, part))
	}
	if sum > capacity {
		slices.Sort(parts)
		a.fail("%s (%s) was raised from %d to %d: %d of resource %d are committed in %v, whose capacity was at most %d (%s)",
			is.key, is.version, was, is.granted, sum, i, overlapping, capacity, strings.Join(parts, ", "))
	}
}

// lookback is how much of the past is logged with a mistake.
const lookback = 20 * time.Second

// logContext logs the context of the first mistake, or of a wait that failed: the provider's recent states, all
// versions of the slices that it names and the recent ones of others, the promises that count, and the current Grants.
func (a *auditor) logContext(mistake string) {
	var out []string
	for _, r := range a.provider.recent(a.at-lookback, a.at) {
		for class, p := range r.pools {
			out = append(out,
				fmt.Sprintf("%v to %v: %s has %d, max %v, used %v", r.from, r.until, class, p.capacity, p.max, p.used))
		}
		out = append(out, fmt.Sprintf("%v to %v: used %v, cordoned %v, drained %v, absent %v",
			r.from, r.until, r.used, r.cordoned, r.drained, r.absent))
	}
	for _, o := range a.history {
		if o.at >= a.at-lookback || mistake == "" || strings.Contains(mistake, o.key) {
			out = append(out, o.text)
		}
	}
	for _, s := range a.slices {
		out = append(out, "promised: "+s.line())
	}
	for of, had := range a.released {
		out = append(out, fmt.Sprintf("released: %s had %d of %s until %v, by %s",
			of.owner, had.amounts, of.class, had.since, of.creator))
	}
	var grants v1alpha1.GrantList
	if err := a.provider.api.List(a.t.Context(), &grants); err != nil {
		out = append(out, err.Error())
	}
	for i := range grants.Items {
		g := &grants.Items[i]
		text, err := json.Marshal(&g.Spec)
		out = append(out, fmt.Sprintf("Grant (%s): %s %v", g.ResourceVersion, text, err))
	}
	a.t.Log(strings.Join(out, "\n"))
}

func allKeys[A, B any](a map[string]A, b map[string]B) map[string]struct{} {
	out := map[string]struct{}{}
	for key := range a {
		out[key] = struct{}{}
	}
	for key := range b {
		out[key] = struct{}{}
	}
	return out
}

func (a *auditor) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

// awaitWrites returns once that many more answers have been observed, or the time is over.
func (a *auditor) awaitWrites(more int, most time.Duration) {
	over := time.NewTimer(most)
	defer over.Stop()
	for until := a.written() + more; a.written() < until; {
		select {
		case <-a.wrote:
		case <-over.C:
			return
		case <-a.t.Context().Done():
			return
		}
	}
}

// hasSeen returns an error unless the current version of each slice has been observed.
func (a *auditor) hasSeen(latest map[string]sliceState) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, s := range latest {
		if was := a.slices[key]; was == nil || was.version != s.version {
			return fmt.Errorf("version %s of %s has not been observed", s.version, key)
		}
	}
	return nil
}
