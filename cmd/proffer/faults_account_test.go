package main

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
)

// lag is how much older than an answer that is seen may be what it was decided by: batching, one evaluation, one write, all of that on a
// machine that is busy. A longer one would only make the test blind to some mistakes.
const lag = 5 * time.Second

// account follows every status that is written to a slice, in the order in which the API server took them, and checks each.
//
// What the operator has promised is added up here by nothing but what it wrote into the slices, and by whose namespace they are in. It stands
// until the operator writes something else, whatever the consumer does to the slice meanwhile. When the slice is deleted, or answered in another
// class, what pods of it request still counts in the class. A drain ends all of it, and so does a move to the class that Liqo answers.
//
// An answer that raises something was decided by what the provider had at some time shortly before, so it is compared with the most that was in
// force since lag ago:
//   - What all consumers have of a class, and have had all that time of those whose nodes are in part the same, the larger of what they were
//     granted and what their pods use on the nodes, is within the capacity: of the class where there is one other class, of all nodes of all
//     of them where there are more. Two classes of in part the same nodes may be decided on one after the other, each by its own capacity,
//     and be written the other way round. It is not where a consumer is given no more than its own pods use already.
//   - What the consumer has in the class is within the policy's max.
//   - A class that denies an excess grants all or nothing. A consumer that is cordoned, drained or has no Tenant is given nothing more, and
//     neither is a slice that is no copy of its consumer's.
//
// Of every answer: no slice has more than it asks for; what was accepted is never denied; a slice of Liqo's own class is not answered. What a
// consumer grants itself is none of the operator's promises; it has to be taken back.
type account struct {
	t        *testing.T
	provider *provider
	clock    *clock

	*forgeries

	mu sync.Mutex
	// at is when the version came that is being looked at.
	at     time.Duration
	slices map[string]*seen
	// released are promises of slices that are gone, or are answered in another class; folded is until when what pods use was taken into account there.
	released map[release]*left
	folded   time.Duration
	// ownUse is when a consumer was last given what its pods use already, though there was no more, by class and consumer.
	ownUse         map[[2]string]time.Duration
	writes, raises int
	checks         int
	wrong          int
	// history is what came last.
	history []string
	// wrote tells who waits for answers that there was one.
	wrote chan struct{}
}

// release is whose pods use what was promised in a class once.
type release struct{ owner, creator, class string }

// left is what counts of that: as much as pods have used ever since. Pods that come later under the same name have no claim to it.
type left struct {
	amounts
	since time.Duration
}

// remembered is how many versions of slices are kept to explain a mistake by.
const remembered = 1000

// maxWrong is how many mistakes are told.
const maxWrong = 20

func (a *account) fail(format string, args ...any) {
	if a.wrong++; a.wrong <= maxWrong {
		a.t.Errorf("%v, of what came at %v: "+format, append([]any{a.clock.now().Round(time.Millisecond), a.at.Round(time.Millisecond)}, args...)...)
	}
	if a.wrong == 1 {
		a.explain()
	}
}

func newAccount(t *testing.T, config *rest.Config, p *provider, clock *clock) *account {
	t.Helper()
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	told := newArrivals(t, config, clock.now)
	a := &account{
		t: t, provider: p, clock: clock, forgeries: newForgeries(), slices: map[string]*seen{}, released: map[release]*left{}, ownUse: map[[2]string]time.Duration{},
		wrote: make(chan struct{}, 1),
	}
	versions(t, api, clock.now, func(v sliceVersion) {
		if v.err != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.fail("a slice cannot be read: %v", v.err)
			return
		}
		is := seenOf(v.slice)
		a.observe(v.event, told.of(is.version, v.at), is, a.author(is.key, is.version))
	})
	return a
}

func (a *account) observe(event watch.EventType, at time.Duration, is seen, author string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = at
	a.fold()
	if len(a.history) == remembered {
		a.history = slices.Delete(a.history, 0, remembered/2)
	}
	a.history = append(a.history, fmt.Sprintf("%v: %s by %q: %s", at, event, author, is.line()))
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
		was = &seen{class: is.class}
	}
	is.promised, is.promisedIn, is.forged = was.promised, was.promisedIn, was.forged
	a.slices[is.key] = &is
	defer is.follow(was, a.at)
	if liqos(is.class) {
		a.release(&is) // Liqo answers at once, with all that is asked for.
	}
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
		a.release(&is)
	}
}

// release takes the promise from a slice. Of what its pods use it stays in force.
func (a *account) release(s *seen) {
	at := release{ownerOf(s.key), s.creator, s.promisedIn}
	had := a.released[at]
	if had == nil {
		had = &left{since: a.at}
		a.released[at] = had
	}
	for i := range s.promised {
		if s.promised[i] > had.amounts[i] {
			had.amounts[i], had.since = s.promised[i], a.at
		}
	}
	s.promised = amounts{}
}

// fold has what was released count no more than pods have used of it since.
func (a *account) fold() {
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

// answered checks one write of an answer.
func (a *account) answered(was, is *seen) {
	a.checks++
	if liqos(is.class) {
		a.fail("%s is of Liqo's own class, and was answered: %s", is.key, is.answer)
		return
	}
	if (was.status == authv1beta1.ResourceSliceConditionAccepted || was.promised != amounts{}) &&
		is.status != authv1beta1.ResourceSliceConditionAccepted {
		a.fail("%s had been accepted, and is %s", is.key, is.status)
	}
	before, kept, from := is.promised, is.promised, is.promisedIn
	recent := a.provider.recent(a.at-lag, a.at)
	// Where it cannot be answered in the class that it says, what it had stays in the class where it had it.
	if was.promisedIn == "" || was.promisedIn != is.class && is.open && slices.ContainsFunc(recent, func(r reading) bool { return r.offers(is.class) }) {
		a.release(is)
		before, is.promisedIn = amounts{}, is.class
	}
	is.promised, is.forged = is.granted, false
	shut := !is.open || slices.ContainsFunc(recent, func(r reading) bool { return r.absent[ownerOf(is.key)] })
	for i := range is.granted {
		if is.granted[i] > is.request[i] && (is.granted[i] > kept[i] || !shut && ownerOf(is.key) != hostileID) {
			a.fail("%s asks for %d and has %d", is.key, is.request, is.granted)
		}
		if is.granted[i] > kept[i] {
			a.raises++
			a.allowed(kept, is, i, recent)
		}
		if a.leastUnit(is, i, recent) {
			continue
		}
		if is.granted[i] > before[i] {
			a.withinCapacity(before, is, i, recent, []string{is.promisedIn})
		}
		// What it brings from a class with nodes in common is no more than before of all of these.
		if beside := besideOf(is.promisedIn, recent); is.granted[i] > kept[i] || is.granted[i] > before[i] && !slices.Contains(beside, from) {
			a.withinCapacity(before, is, i, recent, beside)
			for _, other := range beside {
				a.withinCapacity(before, is, i, recent, []string{is.promisedIn, other})
			}
		}
	}
}

// leastUnit reports whether the slice has but one unit of a resource, of a consumer that has pods.
func (a *account) leastUnit(is *seen, i int, recent []reading) bool {
	return is.granted[i] == 1 && slices.ContainsFunc(recent, func(r reading) bool { return r.used[ownerOf(is.key)] != amounts{} })
}

// liqos reports whether Liqo answers the class itself.
func liqos(class string) bool { return class == "default" || class == "" }

// allowed checks that the slice may be given more at all.
func (a *account) allowed(was amounts, is *seen, i int, recent []reading) {
	owner := ownerOf(is.key)
	if !slices.ContainsFunc(recent, func(r reading) bool { return !r.cordoned[owner] && !r.drained[owner] && !r.absent[owner] }) {
		a.fail("%s (%s) was raised from %d to %d, and its consumer is cordoned, drained or gone: %s", is.key, is.version, was, is.granted, is.message)
	}
	if !is.open {
		a.fail("%s was raised from %d to %d, and it is no copy of its consumer's, or being deleted", is.key, was, is.granted)
	}
	if a.provider.share(is.promisedIn).denyExcess && is.granted != is.request {
		a.fail("%s (%s) was raised from %d to %d of %d, in a class that grants all or nothing: %s", is.key, is.version, was, is.granted, is.request, is.message)
	}
	limit, limited := int64(0), true
	for _, r := range recent {
		if most := r.pools[is.promisedIn].max; most != nil {
			limit = max(limit, most[i])
		} else {
			limited = false
		}
	}
	if has := a.granted([]string{is.promisedIn}, nil, recent)[owner][i]; limited && has > limit {
		a.fail("%s was raised from %d to %d: its consumer has %d of the class, at most %d", is.key, was, is.granted, has, limit)
	}
}

// besideOf are the classes that had nodes in common with this one all the time, itself among them.
func besideOf(class string, recent []reading) []string {
	beside := []string{class}
	first := true
	for _, r := range recent {
		p, offered := r.pools[class]
		switch {
		case !offered:
		case first:
			beside, first = slices.Clone(p.beside), false
		default:
			beside = slices.DeleteFunc(beside, func(other string) bool { return !slices.Contains(p.beside, other) })
		}
	}
	return beside
}

// withinCapacity checks that what was raised was there, beside what is promised in the classes.
func (a *account) withinCapacity(was amounts, is *seen, i int, recent []reading, beside []string) {
	a.checks++
	recent = slices.DeleteFunc(slices.Clone(recent), func(r reading) bool { return !r.offers(is.promisedIn) })
	if len(recent) == 0 {
		a.fail("%s was raised from %d to %d, and no policy offers the class %s: %s (%s)", is.key, was, is.granted, is.promisedIn, is.message, is.version)
		return
	}
	owner, now := ownerOf(is.key), a.at
	granted := a.granted(beside, is, recent)
	capacity, least, most := int64(0), map[string]int64{}, map[string]int64{}
	for at, r := range recent {
		has := r.pools[is.promisedIn].capacity[i]
		if len(beside) > 2 {
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
		a.fail("%s (%s) was raised from %d to %d: %d of resource %d are committed in %v, which have had %d at most (%s)",
			is.key, is.version, was, is.granted, sum, i, beside, capacity, strings.Join(parts, ", "))
	}
}

// lookback is how far back a mistake is explained.
const lookback = 20 * time.Second

// explain tells, of the first mistake, what it was found in: what the provider had, what was written to slices, what counts, and what is on record by now.
func (a *account) explain() {
	var out []string
	for _, r := range a.provider.recent(a.at-lookback, a.at) {
		for class, p := range r.pools {
			out = append(out, fmt.Sprintf("%v to %v: %s has %d, max %v, used %v", r.from, r.until, class, p.capacity, p.max, p.used))
		}
		out = append(out, fmt.Sprintf("%v to %v: used %v, cordoned %v, drained %v, absent %v", r.from, r.until, r.used, r.cordoned, r.drained, r.absent))
	}
	out = append(out, a.history...)
	for _, s := range a.slices {
		out = append(out, "counts: "+s.line())
	}
	for of, had := range a.released {
		out = append(out, fmt.Sprintf("%s had %d of %s until %v, by %s", of.owner, had.amounts, of.class, had.since, of.creator))
	}
	var grants v1alpha1.GrantList
	if err := a.provider.api.List(a.t.Context(), &grants); err != nil {
		out = append(out, err.Error())
	}
	for i := range grants.Items {
		g := &grants.Items[i]
		text, err := json.Marshal(&g.Spec)
		out = append(out, fmt.Sprintf("on record (%s): %s %v", g.ResourceVersion, text, err))
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

func (a *account) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

// awaitWrites returns when so many answers more have been seen, or the time is over.
func (a *account) awaitWrites(more int, most time.Duration) {
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

// hasSeen returns an error while the last version of each slice that was seen is not the one that stands.
func (a *account) hasSeen(standing map[string]seen) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, s := range standing {
		if was := a.slices[key]; was == nil || was.version != s.version {
			return fmt.Errorf("the version %s of %s has not been seen", s.version, key)
		}
	}
	return nil
}
