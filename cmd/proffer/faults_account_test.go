package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"proffer.dev/proffer/internal/capacity"
)

// lag is how much older than an answer that is seen may be what it was decided by: batching, one evaluation, one write, all of that on a
// machine that is busy. A longer one would only make the test blind to some mistakes.
const lag = 5 * time.Second

const untilAnswered = time.Duration(math.MaxInt64)

// seen is a slice as it stands in the API.
type seen struct {
	key             string
	uid             types.UID
	version         string
	consumer, class string
	created         int64
	request         amounts
	// answer is what the operator writes, as text, to see whether it is another.
	answer          string
	status          authv1beta1.ResourceSliceConditionStatus
	reason, message string
	granted         amounts
	// resources are all of status.resources, in the units of the account.
	resources capacity.Amounts
	// leftOut is until when the amounts do not count beside those of others: see granted.
	leftOut time.Duration
	// least is the least that it has had of each since lag before leastUntil; from then on that is granted.
	least      amounts
	leastUntil time.Duration
}

// follow notes what the slice had before.
func (s *seen) follow(was *seen, now time.Duration) {
	s.least, s.leastUntil = was.least, was.leastUntil
	if now >= was.leastUntil {
		s.least, s.leastUntil = was.granted, now+lag
	}
	for i := range s.least {
		s.least[i] = min(s.least[i], s.granted[i])
	}
}

// atLeast is what it has had of each all the time since lag ago.
func (s *seen) atLeast(now time.Duration) amounts {
	if now >= s.leastUntil {
		return s.granted
	}
	return s.least
}

func seenOf(s *authv1beta1.ResourceSlice) seen {
	out := seen{
		key: s.Namespace + "/" + s.Name, uid: s.UID, version: s.ResourceVersion, class: string(s.Spec.Class),
		created: s.CreationTimestamp.Unix(), request: amountsIn(s.Spec.Resources),
	}
	if s.Spec.ConsumerClusterID != nil {
		out.consumer = string(*s.Spec.ConsumerClusterID)
	}
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			out.status, out.reason, out.message = c.Status, c.Reason, c.Message
		}
	}
	if out.status == authv1beta1.ResourceSliceConditionAccepted {
		out.granted = amountsIn(s.Status.Resources)
	}
	for name, q := range s.Status.Resources {
		if out.resources == nil {
			out.resources = capacity.Amounts{}
		}
		if name == corev1.ResourceCPU {
			out.resources[string(name)] = q.MilliValue()
		} else {
			out.resources[string(name)] = q.Value()
		}
	}
	out.answer = fmt.Sprint(out.status, out.reason, out.message, s.Status.Resources)
	return out
}

// account follows every status that is written to a slice, in the order in which the API server took them, and checks each.
//
// What has been accepted is added up here by nothing but what stands in the slices. An answer that raises something was decided by what the
// provider had at some time shortly before, so it is compared with the most that was in force since lag ago:
//   - What all consumers have of a class, and have had all that time of those whose nodes are in part the same, the larger of what they were
//     granted and what their pods use on the nodes, is within the capacity. Two classes of in part the same nodes may be decided on one
//     after the other, each by its own capacity, and be written the other way round. It is not where a consumer is given no more than its
//     own pods use already.
//   - What the consumer has in the class is within the policy's max.
//   - A class that denies an excess grants all or nothing. A consumer that is cordoned is given nothing more.
//
// Of every answer: no slice has more than it asks for; what was accepted is never denied; a slice of Liqo's own class is not answered.
type account struct {
	t        *testing.T
	provider *provider
	clock    *clock

	mu     sync.Mutex
	slices map[string]*seen
	// ownUse is when a consumer was last given what its pods use already, though there was no more, by class and consumer.
	ownUse         map[[2]string]time.Duration
	writes, raises int
	checks         int
	wrong          int
	// wrote tells who waits for answers that there was one.
	wrote chan struct{}
}

// maxWrong is how many mistakes are told.
const maxWrong = 20

func (a *account) fail(format string, args ...any) {
	if a.wrong++; a.wrong <= maxWrong {
		a.t.Errorf("%v: "+format, append([]any{a.clock.now().Round(time.Millisecond)}, args...)...)
	}
}

func newAccount(t *testing.T, api dynamic.Interface, p *provider, clock *clock) *account {
	t.Helper()
	a := &account{t: t, provider: p, clock: clock, slices: map[string]*seen{}, ownUse: map[[2]string]time.Duration{}, wrote: make(chan struct{}, 1)}
	all := api.Resource(authv1beta1.ResourceSliceGroupVersionResource)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range w.ResultChan() {
			a.observe(e)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return a
}

func (a *account) observe(e watch.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Error {
		a.fail("the watch of the slices is broken: %v", e.Object)
		return
	}
	var s authv1beta1.ResourceSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		a.fail("a slice cannot be read: %v", err)
		return
	}
	is := seenOf(&s)
	was := a.slices[is.key]
	switch {
	case e.Type == watch.Deleted:
		delete(a.slices, is.key)
		return
	case was == nil || was.uid != is.uid:
		was = &seen{class: is.class}
	}
	is.leftOut = was.leftOut
	is.follow(was, a.clock.now())
	if was.class != is.class {
		is.leftOut = untilAnswered
	}
	a.slices[is.key] = &is
	if was.answer != "" && was.answer != is.answer || was.answer == "" && is.status != "" {
		if is.leftOut == untilAnswered {
			is.leftOut = a.clock.now() + lag
		}
		a.writes++
		select {
		case a.wrote <- struct{}{}:
		default:
		}
		a.answered(was, &is)
	}
}

// answered checks one write of an answer.
func (a *account) answered(was, is *seen) {
	a.checks++
	if is.class == "default" {
		a.fail("%s is of Liqo's own class, and was answered: %s", is.key, is.answer)
		return
	}
	if was.status == authv1beta1.ResourceSliceConditionAccepted && is.status != authv1beta1.ResourceSliceConditionAccepted {
		a.fail("%s had been accepted, and is %s", is.key, is.status)
	}
	recent := a.provider.recent(a.clock.now() - lag)
	for i := range is.granted {
		if is.granted[i] > is.request[i] {
			a.fail("%s asks for %d and has %d", is.key, is.request, is.granted)
		}
		if is.granted[i] > was.granted[i] {
			a.raises++
			a.raised(was, is, i, recent)
		}
	}
}

func (a *account) raised(was, is *seen, i int, recent []reading) {
	if a.provider.share(is.class).denyExcess && is.granted != is.request {
		a.fail("%s was raised to %d of %d, in a class that grants all or nothing", is.key, is.granted, is.request)
	}
	if !slices.ContainsFunc(recent, func(r reading) bool { return !r.cordoned[is.consumer] }) {
		a.fail("%s was raised from %d to %d, and its consumer is cordoned", is.key, was.granted, is.granted)
	}
	limit, limited := int64(0), true
	for _, r := range recent {
		if most := r.pools[is.class].max; most != nil {
			limit = max(limit, most[i])
		} else {
			limited = false
		}
	}
	if has := a.granted([]string{is.class}, nil)[is.consumer][i]; limited && has > limit {
		a.fail("%s was raised from %d to %d: its consumer has %d of the class, at most %d", is.key, was.granted, is.granted, has, limit)
	}
	a.withinCapacity(was, is, i, recent)
}

// withinCapacity checks that what was raised was there.
func (a *account) withinCapacity(was, is *seen, i int, recent []reading) {
	a.checks++
	now, beside := a.clock.now(), slices.Clone(recent[0].pools[is.class].beside)
	for _, r := range recent {
		beside = slices.DeleteFunc(beside, func(other string) bool { return !slices.Contains(r.pools[is.class].beside, other) })
	}
	granted := a.granted(beside, is)
	capacity, least, most := int64(0), map[string]int64{}, map[string]int64{}
	for at, r := range recent {
		capacity = max(capacity, r.pools[is.class].capacity[i])
		for id := range allKeys(granted, r.pools[is.class].used) {
			used := r.pools[is.class].used[id][i]
			if most[id] = max(most[id], used); at == 0 {
				least[id] = used
			}
			least[id] = min(least[id], used)
		}
	}
	if granted[is.consumer][i] <= most[is.consumer] {
		a.ownUse[[2]string{is.class, is.consumer}] = now
		return
	}
	var sum int64
	var parts []string
	for id := range allKeys(granted, least) {
		part := max(granted[id][i], least[id])
		if at, ok := a.ownUse[[2]string{is.class, id}]; ok && now-at <= lag && id != is.consumer {
			part = least[id]
		}
		sum += part
		parts = append(parts, fmt.Sprintf("%s %d", id, part))
	}
	if sum > capacity {
		slices.Sort(parts)
		a.fail("%s (%s) was raised from %d to %d: %d of resource %d are committed of the class %s, which has had %d at most (%s)",
			is.key, is.version, was.granted, is.granted, sum, i, is.class, capacity, strings.Join(parts, ", "))
	}
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

// granted adds up by consumer what is accepted in the classes. What a consumer itself brought there from another class makes an excess that is
// none of the operator's: it may not have been known when the answer to another was decided, and when it is answered, what is taken back from
// others for it may still be on its way. So it is left out until shortly after it was answered, but for the slice decided on. Beside a slice
// decided on, other classes count with what they have had all the time.
func (a *account) granted(classes []string, decided *seen) map[string]amounts {
	out := map[string]amounts{}
	for _, s := range a.slices {
		if !slices.Contains(classes, s.class) || decided != nil && s != decided && a.clock.now() < s.leftOut {
			continue
		}
		has := s.granted
		if decided != nil && s.class != decided.class {
			has = s.atLeast(a.clock.now())
		}
		out[s.consumer] = out[s.consumer].plus(has)
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

// within waits until no more is accepted than there is, but for what reclaim leaves to who uses it.
func (a *account) within() {
	a.t.Helper()
	eventually(a.t, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.provider.now()
		var errs []error
		for class := range now.pools {
			a.checks++
			errs = append(errs, a.holds(class, []string{class}, now.pools[class].capacity, now))
			var together amounts
			for _, b := range now.pools[class].beside {
				for i := range together {
					together[i] = max(together[i], now.pools[b].capacity[i])
				}
			}
			errs = append(errs, a.holds(class, now.pools[class].beside, together, now))
		}
		return errors.Join(errs...)
	})
}

// holds compares what is accepted in the classes with a capacity.
func (a *account) holds(class string, classes []string, capacity amounts, now reading) error {
	granted := a.granted(classes, nil)
	for i := range capacity {
		var sum int64
		used := true
		for id, has := range granted {
			sum += has[i]
			// One unit of each slice is left to who has pods: Liqo evicts all of them without. Each class leaves what is used.
			used = used && has[i] <= int64(len(classes))*now.used[id][i]+faultSlices/faultConsumers
		}
		if sum > capacity[i] && (a.provider.share(class).evicts || !used) {
			return fmt.Errorf("%d of resource %d are accepted in %v, which have %d: %v", sum, i, classes, capacity[i], granted)
		}
	}
	return nil
}

// standing are all slices as they were last seen, by key.
func (a *account) standing() map[string]seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]seen{}
	for _, key := range slices.Sorted(maps.Keys(a.slices)) {
		out[key] = *a.slices[key]
	}
	return out
}
