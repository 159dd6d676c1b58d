package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// shown is a state of the catalog: a title by consumer and class. Each consumer has one tenant.
type shown struct {
	titles map[string]map[string]string
	states map[string]table.TenantState
	more   []table.Tenant
	// keeps are classes that are kept for each consumer.
	keeps []string
}

func (s *shown) Tenants() []table.Tenant {
	var all []table.Tenant
	for consumer := range s.titles {
		all = append(all, table.Tenant{
			Consumer: consumer, Namespace: "tenant-" + consumer, Name: "tenant", UID: "uid-of-" + consumer, State: s.states[consumer],
		})
	}
	return append(all, s.more...)
}

func (s *shown) classes(to table.Tenant) []string {
	return slices.Collect(maps.Keys(s.titles[to.Consumer]))
}

func (s *shown) Kept(string) []string { return s.keeps }

func (s *shown) offer(to table.Tenant, class string, now time.Time) (v1alpha1.OfferStatus, bool) {
	title, found := s.titles[to.Consumer][class]
	status := v1alpha1.OfferStatus{ClusterID: to.Consumer, Class: class}
	status.Title = v1alpha1.Title(title)
	status.ObservedTime.Time, status.ValidUntil.Time = now, now.Add(catalog.Validity)
	return status, found
}

// bench is a plan with the controllers that write it, in a bubble with its own clock. It is a store in
// place of the API server.
type bench struct {
	*plan
	t        *testing.T
	restores restore.Restores

	mu sync.Mutex
	// stored are the titles that were written, by namespace/name.
	stored  map[string]string
	version int
	// drops is a title that the store does not keep, as an old CRD would. Fails has every write fail.
	drops string
	fails bool
	// held, if not nil, keeps writes from ending until it is closed.
	held chan struct{}
	// names are the objects that were written since they were last asked for, and attempts the times of all
	// attempts by namespace.
	names    []string
	attempts map[string][]time.Time
}

// bubble runs a test with controllers that make at most this many writes a second, one after the other.
func bubble(t *testing.T, limit rate.Limit, run func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		restores := restore.New()
		b := &bench{
			plan: newPlan(pacers(restores, logr.Discard()), newEvents(&events.FakeRecorder{}), nil), t: t, restores: restores,
			stored: map[string]string{}, version: 100, attempts: map[string][]time.Time{},
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, k := range []kind{offers, bindings} {
			c := leading.Controller{
				Name: string(k), Sources: []source.Source{b.requests[k]}, Log: logr.Discard(),
				Reconciler: &writing{
					plan: b.plan, kind: k, api: b, limiter: rate.NewLimiter(limit, 1), holding: func() bool { return true },
					writes: newWriteCounter(),
				},
			}
			running.Go(func() {
				if err := c.Start(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		run(b)
		stop()
		running.Wait()
	})
}

// see compares a state, and has everything written that is due.
func (b *bench) see(s *shown) {
	b.compare(s, nil, time.Now())
	synctest.Wait()
}

// pass lets time pass, in which everything is written that is due.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of the bubble
	synctest.Wait()
}

// written returns the names of what was written since the last call, in their order.
func (b *bench) written() (names []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	names, b.names = b.names, nil
	return names
}

// hold keeps the writes from ending until the returned function is called.
func (b *bench) hold() (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make(chan struct{})
	b.held = held
	return func() { close(held); synctest.Wait() }
}

// write implements objectAPI.
func (b *bench) write(_ context.Context, j job, now time.Time) (*observed, error) {
	key := j.namespace + "/" + j.name
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts[j.namespace] = append(b.attempts[j.namespace], now)
	if b.fails {
		return nil, errors.New("the API server is away")
	}
	if !j.present {
		delete(b.stored, key)
		b.names = append(b.names, key)
		return nil, nil
	}
	u, err := j.object(now)
	if err != nil {
		b.t.Errorf("%s is written: %v", key, err)
		return nil, err
	}
	if held := b.held; held != nil {
		b.mu.Unlock()
		<-held
		b.mu.Lock()
	}
	b.names = append(b.names, key)
	status := statusOf(u)
	b.stored[key], _ = status["title"].(string)
	if b.stored[key] == b.drops {
		delete(status, "title")
	}
	b.version++
	u.SetUID(types.UID("uid-of-" + key))
	u.SetResourceVersion(strconv.Itoa(b.version))
	after := observe(u)
	return &after, nil
}

// read implements objectAPI. No write meets another version.
func (b *bench) read(_ context.Context, i id) (*observed, error) {
	b.t.Errorf("%s is read", i)
	return nil, nil
}

// change changes an object as another client would.
func (b *bench) change(i id, change func(*observed)) {
	have, _ := b.cache.get(i)
	b.mu.Lock()
	b.version++
	have.Version = strconv.Itoa(b.version)
	b.mu.Unlock()
	change(&have)
	b.cache.set(i, have)
	b.enqueue(i, 0)
}

func (b *bench) require(want map[string]string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(want, b.stored); diff != "" {
		b.t.Errorf("written (-want +got):\n%s", diff)
	}
}

func oneOffer(title string) *shown {
	return &shown{titles: map[string]map[string]string{"rome": {"gold": title}}}
}

func TestAnObjectIsWrittenOncePerIntervalAndTheNewestStateLast(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		start, last, writes := time.Now(), "", map[time.Duration]int{}
		for i := range 300 { // 30 s of changes, each 100 ms.
			last = strconv.Itoa(i)
			b.see(oneOffer(last))
			writes[time.Since(start).Truncate(interval)] += len(b.written())
			b.pass(100 * time.Millisecond)
		}
		if diff := cmp.Diff(map[time.Duration]int{0: 1, interval: 1, 2 * interval: 1}, writes); diff != "" {
			b.t.Errorf("writes by interval (-want +got):\n%s", diff)
		}
		b.pass(interval)
		b.require(map[string]string{"tenant-rome/gold": last})
		b.pass(renewAfter)
		all := b.attempts["tenant-rome"]
		if left := all[len(all)-1].Sub(all[len(all)-2]); left != renewAfter {
			b.t.Errorf("the next write is after %v, want %v", left, renewAfter)
		}
	})
}

func TestAChangeDuringAWriteIsWrittenAfterIt(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		release := b.hold()
		b.see(oneOffer("old"))
		b.see(oneOffer("new"))
		release()
		b.require(map[string]string{"tenant-rome/gold": "old"})
		b.pass(interval)
		b.require(map[string]string{"tenant-rome/gold": "new"})
	})
}

// A definition that is deleted and created again, as by kubectl replace --force, takes the objects with it.
func TestObjectsAreWrittenAgainOnceTheirDefinitionIsBack(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		s := oneOffer("a")
		b.see(s)
		b.mu.Lock()
		clear(b.stored)
		b.mu.Unlock()
		handler{b.plan, offers}.RemoveAll()
		b.see(s)
		b.pass(interval)
		b.require(map[string]string{"tenant-rome/gold": "a"})
	})
}

func TestAChangeThatIsUndoneBeforeItsTurnIsNotWritten(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.see(oneOffer("a"))
		b.written()
		b.see(oneOffer("b"))
		b.see(oneOffer("a"))
		b.pass(interval)
		if names := b.written(); len(names) > 0 {
			b.t.Errorf("wrote %v", names)
		}
	})
}

func TestAnOfferIsLeftAloneWhileItIsKept(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		keeps := &shown{titles: map[string]map[string]string{"rome": {}}, keeps: []string{"gold", "silver"}}
		expect := func(when string, titles map[string]string, writes int) {
			b.t.Helper()
			b.require(titles)
			if names := b.written(); len(names) != writes {
				b.t.Errorf("%s: wrote %v, want %d writes", when, names, writes)
			}
		}
		a := map[string]string{"tenant-rome/gold": "a"}
		b.see(oneOffer("a"))
		expect("at first", a, 1)
		b.see(keeps)
		b.pass(interval)
		expect("kept", a, 0)
		b.see(oneOffer("a"))
		b.pass(renewAfter - interval)
		expect("shown again, and renewed", a, 1)
		b.see(keeps)
		b.pass(interval)
		b.see(oneOffer("b"))
		expect("shown with another title", map[string]string{"tenant-rome/gold": "b"}, 1)

		b.pause() // As by another leader.
		b.see(keeps)
		b.pass(interval)
		expect("kept by another leader", map[string]string{"tenant-rome/gold": "b"}, 0)
		b.see(&shown{titles: keeps.titles})
		b.pass(interval)
		expect("not kept any longer", map[string]string{}, 1)
		b.pass(interval)
		if len(b.objects) > 0 {
			b.t.Errorf("left in memory: %v", b.objects)
		}
	})
}

func TestAnUnchangedOfferIsWrittenAgainBeforeItIsOld(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.see(oneOffer("a"))
		b.written()
		for range 3 {
			b.pass(renewAfter - time.Second)
			if names := b.written(); len(names) > 0 {
				b.t.Errorf("wrote %v too early", names)
			}
			b.pass(time.Second)
			if names := b.written(); len(names) != 1 {
				b.t.Errorf("wrote %v", names)
			}
		}
	})
	if renewAfter >= RenewInterval || RenewInterval >= catalog.Validity {
		t.Error("an Offer is not written again in time")
	}
}

func TestTheObjectThatHasWaitedLongestIsWrittenFirst(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		release := b.hold()
		all := &shown{titles: map[string]map[string]string{}}
		for i := range 5 {
			all = &shown{titles: cloned(all.titles)}
			all.titles[fmt.Sprintf("c%d", 4-i)] = map[string]string{"gold": "a"}
			b.see(all)
			b.pass(time.Second)
		}
		release()
		want := []string{"tenant-c4/gold", "tenant-c3/gold", "tenant-c2/gold", "tenant-c1/gold", "tenant-c0/gold"}
		if diff := cmp.Diff(want, b.written()); diff != "" {
			b.t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func cloned(of map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	maps.Copy(out, of)
	return out
}

// One write a second is far below the changes: each of 20 objects changes every second.
func TestNoObjectStarvesAtARateThatIsTooLow(t *testing.T) {
	bubble(t, 1, func(b *bench) {
		for second := range 300 {
			all := &shown{titles: map[string]map[string]string{}}
			for i := range 20 {
				all.titles[fmt.Sprintf("c%d", i)] = map[string]string{"gold": strconv.Itoa(second)}
			}
			b.see(all)
			b.pass(time.Second)
		}
		if len(b.attempts) != 20 {
			b.t.Errorf("%d of 20 objects were written", len(b.attempts))
		}
		for namespace, times := range b.attempts {
			for i := range times[1:] {
				if waited := times[i+1].Sub(times[i]); waited > 21*time.Second {
					b.t.Errorf("%s waited %v", namespace, waited)
				}
			}
			if len(times) < 300/21 {
				b.t.Errorf("%s was written %d times", namespace, len(times))
			}
		}
	})
}

func TestAnOlderCRDThatDropsAFieldCausesNoFurtherWrites(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.drops = "a"
		b.see(oneOffer("a"))
		b.written()
		b.pass(interval)
		b.see(oneOffer("a"))
		if names := b.written(); len(names) > 0 {
			b.t.Errorf("wrote %v again", names)
		}
	})
}

func TestAFailedWriteIsRepeatedLaterAndLater(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.fails = true
		b.see(oneOffer("a"))
		b.pass(time.Hour)
		var waits []time.Duration
		for times := b.attempts["tenant-rome"]; len(times) > 1 && len(waits) < 12; times = times[1:] {
			waits = append(waits, times[1].Sub(times[0]))
		}
		if len(waits) < 12 || waits[0] != retryAfter || waits[1] != 2*retryAfter || waits[11] != retryAtMost ||
			!slices.IsSorted(waits) {
			b.t.Errorf("waits %v", waits)
		}
	})
}

func TestAnObjectThatFailsDoesNotDelayTheOthers(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.fails = true
		b.see(oneOffer("a"))
		b.fails = false
		b.see(&shown{titles: map[string]map[string]string{"rome": {"gold": "a"}, "oslo": {"gold": "b"}}})
		b.require(map[string]string{"tenant-oslo/gold": "b"})
		b.pass(retryAfter)
		b.require(map[string]string{"tenant-oslo/gold": "b", "tenant-rome/gold": "a"})
	})
}

func TestWhatIsNotShownIsDeleted(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.see(&shown{titles: map[string]map[string]string{"rome": {"gold": "a", "silver": "b"}, "oslo": {"gold": "c"}}})
		b.pass(interval)
		b.see(&shown{
			titles: map[string]map[string]string{"rome": {"gold": "a"}, "oslo": {"gold": "c"}},
			states: map[string]table.TenantState{"oslo": table.TenantDrained},
		})
		b.require(map[string]string{"tenant-rome/gold": "a"})
		b.see(&shown{})
		b.pass(2 * interval)
		b.require(map[string]string{})
		b.pass(interval)
		b.see(&shown{})
		if len(b.objects) > 0 {
			b.t.Errorf("%d objects are not forgotten", len(b.objects))
		}
	})
}

func TestAnotherTenantOfTheConsumerOrTheNamespacePublishesNothing(t *testing.T) {
	for name, other := range map[string]table.Tenant{
		"the same consumer in another namespace": {Consumer: "rome", Namespace: "elsewhere", Name: "t", UID: "2"},
		"another consumer in the same namespace": {Consumer: "bern", Namespace: "tenant-rome", Name: "t", UID: "2"},
	} {
		bubble(t, rate.Inf, func(b *bench) {
			s := oneOffer("a")
			s.more = []table.Tenant{other}
			b.see(s)
			if names := b.written(); len(names) > 0 {
				b.t.Errorf("%s: wrote %v", name, names)
			}
			// A drained one does not count.
			s.more[0].State = table.TenantDrained
			b.see(&shown{titles: s.titles, more: s.more})
			b.require(map[string]string{"tenant-rome/gold": "a"})
		})
	}
	bubble(t, rate.Inf, func(b *bench) {
		b.see(&shown{titles: map[string]map[string]string{"system:masters": {"gold": "a"}, "{clusterID}": {"gold": "a"}}})
		if names := b.written(); len(names) > 0 {
			b.t.Errorf("wrote %v", names)
		}
	})
}

func TestAnObjectOfOthersIsNeverWritten(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.cache.set(id{offers, "tenant-rome", "gold"}, observed{UID: "foreign", Version: "1"})
		b.see(oneOffer("a"))
		b.pass(time.Hour)
		b.see(&shown{})
		if names := b.written(); len(names) > 0 {
			b.t.Errorf("wrote %v", names)
		}
	})
}

func TestWhatIsOursAndNotShownIsDeletedWhenItAppears(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.see(&shown{})
		stray := id{offers, "default", "gold"}
		b.change(stray, func(o *observed) { o.UID, o.Ours = "stray", true })
		if diff := cmp.Diff([]string{"default/gold"}, b.written()); diff != "" {
			b.t.Error(diff)
		}
	})
}

func TestARivalOfAnOfferIsRestoredLessAndLessOften(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		fight := func(minutes int) (writes int) {
			for range minutes * 60 {
				b.see(oneOffer("A"))
				writes += len(b.written())
				b.pass(time.Second)
				b.change(id{offers, "tenant-rome", "gold"}, func(o *observed) { o.Print = "another" })
			}
			return writes
		}
		fight(10)
		if n := fight(10); n < 9 || n > 10 {
			b.t.Errorf("%d writes in 10 minutes, want one a minute", n)
		}
		b.written()
		b.see(oneOffer("B"))
		b.pass(interval)
		if n := len(b.written()); n != 1 {
			b.t.Errorf("%d writes of a new offer, want 1", n)
		}
	})
}

func TestAnOfferThatIsRenewedRestoresNothing(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		writes := 0
		for range 60 * 60 {
			b.see(oneOffer("A"))
			writes += len(b.written())
			b.pass(time.Second)
		}
		if n := testutil.ToFloat64(b.restores.WithLabelValues(string(offers))); writes < 6 || n != 0 {
			b.t.Errorf("%v restores in %d writes", n, writes)
		}
	})
}

// Each RoleBinding waits for its own ClusterRole, and goes with it.
func TestEachRoleBindingFollowsItsClusterRole(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		b.bindings = []Binding{OfferBinding, ChoiceBinding}
		for _, roles := range []map[string]types.UID{
			{}, {ChoiceBinding.ClusterRole: "1"}, {ChoiceBinding.ClusterRole: "1", OfferBinding.ClusterRole: "2"}, {OfferBinding.ClusterRole: "2"},
		} {
			b.compare(oneOffer("a"), roles, time.Now())
			b.pass(time.Minute)
			want := map[string]string{"tenant-rome/gold": "a"}
			for _, binding := range b.bindings {
				if roles[binding.ClusterRole] != "" {
					want["tenant-rome/"+binding.Name] = ""
				}
			}
			b.require(want)
		}
	})
}

func TestARoleBindingOfTheRoleOfAnotherIsReplaced(t *testing.T) {
	rome := table.Tenant{Consumer: "rome", Namespace: "tenant-rome", Name: "tenant", UID: "1"}
	for _, b := range []Binding{OfferBinding, ChoiceBinding} {
		u, err := bindingOf(rome, b.Name, "role", []Subject{{kind: "User"}})
		test.Must(t, err)
		if observe(u).OtherRole {
			t.Errorf("%s has the role of another", b.Name)
		}
		test.Must(t, unstructured.SetNestedField(u.Object, "view", "roleRef", "name"))
		if !observe(u).OtherRole {
			t.Errorf("%s has its own role", b.Name)
		}
	}
}
