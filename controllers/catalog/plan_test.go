package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// shown is a state of the catalog: a title by consumer and class. Each consumer has one tenant.
type shown struct {
	titles map[string]map[string]string
	states map[string]table.TenantState
	more   []table.Tenant
}

func (s *shown) tenants() []table.Tenant {
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

func (s *shown) offer(to table.Tenant, class string, now time.Time) (v1alpha1.OfferStatus, bool) {
	title, found := s.titles[to.Consumer][class]
	status := v1alpha1.OfferStatus{ClusterID: to.Consumer, Class: class}
	status.Title = v1alpha1.Title(title)
	status.ObservedTime.Time, status.ValidUntil.Time = now, now.Add(catalog.Validity)
	return status, found
}

// bench is a term with a clock and a store in place of the API server.
type bench struct {
	*term
	t   *testing.T
	now time.Time
	// stored are the titles that were written, by namespace/name.
	stored  map[string]string
	version int
	// drops is a title that the store does not keep, as an old CRD would.
	drops string
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newBench(t *testing.T) *bench {
	return &bench{
		term: &term{
			cache: newCache(), watches: watches{role: &role{}}, events: newEvents(&events.FakeRecorder{}),
			pacers:  pacers(restore.New(), logr.Discard()),
			objects: map[id]*wantedObject{}, changed: make(chan struct{}, 1),
		},
		t: t, now: start, stored: map[string]string{}, version: 100,
	}
}

func (b *bench) see(s *shown) { b.compare(s, nil, b.now) }

// write makes the writes that are due, and returns the names in their order.
func (b *bench) write() (names []string) {
	b.t.Helper()
	for {
		j, ok := b.take(b.now)
		if !ok {
			return names
		}
		names = append(names, j.namespace+"/"+j.name)
		b.finish(j)
	}
}

// finish makes a write that was taken.
func (b *bench) finish(j job) {
	key := j.namespace + "/" + j.name
	if !j.present {
		delete(b.stored, key)
		b.wrote(j, nil, b.now)
		return
	}
	u, err := j.object(b.now)
	if err != nil {
		b.t.Fatalf("%s is written: %v", key, err)
	}
	status := statusOf(u)
	b.stored[key], _ = status["title"].(string)
	if b.stored[key] == b.drops {
		delete(status, "title")
	}
	b.version++
	u.SetUID(types.UID("uid-of-" + key))
	u.SetResourceVersion(strconv.Itoa(b.version))
	after := observe(u)
	b.wrote(j, &after, b.now)
}

func (b *bench) require(want map[string]string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.stored); diff != "" {
		b.t.Errorf("written (-want +got):\n%s", diff)
	}
}

func oneOffer(title string) *shown {
	return &shown{titles: map[string]map[string]string{"rome": {"gold": title}}}
}

func TestAnObjectIsWrittenOncePerIntervalAndTheNewestStateLast(t *testing.T) {
	b := newBench(t)
	writes := map[time.Duration]int{}
	last := ""
	for i := range 300 { // 30 s of changes, each 100 ms.
		last = strconv.Itoa(i)
		b.see(oneOffer(last))
		writes[b.now.Sub(start).Truncate(interval)] += len(b.write())
		b.now = b.now.Add(100 * time.Millisecond)
	}
	if diff := cmp.Diff(map[time.Duration]int{0: 1, interval: 1, 2 * interval: 1}, writes); diff != "" {
		t.Errorf("writes by interval (-want +got):\n%s", diff)
	}
	b.now = b.now.Add(interval)
	b.write()
	b.require(map[string]string{"tenant-rome/gold": last})
	if left, _ := b.next(b.now); left != renewAfter {
		t.Errorf("the next write is in %v, want %v", left, renewAfter)
	}
}

func TestAChangeDuringAWriteIsWrittenAfterIt(t *testing.T) {
	b := newBench(t)
	b.see(oneOffer("old"))
	j, ok := b.take(b.now)
	if !ok {
		t.Fatal("nothing is due")
	}
	b.see(oneOffer("new"))
	b.finish(j)
	b.require(map[string]string{"tenant-rome/gold": "old"})
	b.now = b.now.Add(interval)
	b.write()
	b.require(map[string]string{"tenant-rome/gold": "new"})
}

func TestAChangeThatIsUndoneBeforeItsTurnIsNotWritten(t *testing.T) {
	b := newBench(t)
	b.see(oneOffer("a"))
	b.write()
	b.see(oneOffer("b"))
	b.see(oneOffer("a"))
	b.now = b.now.Add(interval)
	if names := b.write(); len(names) > 0 {
		t.Errorf("wrote %v", names)
	}
}

func TestAnUnchangedOfferIsWrittenAgainBeforeItIsOld(t *testing.T) {
	b := newBench(t)
	b.see(oneOffer("a"))
	b.write()
	for range 3 {
		b.now = b.now.Add(renewAfter - time.Second)
		if names := b.write(); len(names) > 0 {
			t.Errorf("wrote %v too early", names)
		}
		b.now = b.now.Add(time.Second)
		if names := b.write(); len(names) != 1 {
			t.Errorf("wrote %v", names)
		}
	}
	if renewAfter >= RenewInterval || RenewInterval >= catalog.Validity {
		t.Error("an Offer is not written again in time")
	}
}

func TestTheObjectThatHasWaitedLongestIsWrittenFirst(t *testing.T) {
	b := newBench(t)
	all := &shown{titles: map[string]map[string]string{}}
	for i := range 5 {
		all = &shown{titles: cloned(all.titles)}
		all.titles[fmt.Sprintf("c%d", 4-i)] = map[string]string{"gold": "a"}
		b.see(all)
		b.now = b.now.Add(time.Second)
	}
	want := []string{"tenant-c4/gold", "tenant-c3/gold", "tenant-c2/gold", "tenant-c1/gold", "tenant-c0/gold"}
	if diff := cmp.Diff(want, b.write()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func cloned(of map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	maps.Copy(out, of)
	return out
}

// One write a second is far below the changes: each of 20 objects changes every second.
func TestNoObjectStarvesAtARateThatIsTooLow(t *testing.T) {
	b := newBench(t)
	last := map[string]time.Time{}
	for second := range 300 {
		all := &shown{titles: map[string]map[string]string{}}
		for i := range 20 {
			all.titles[fmt.Sprintf("c%d", i)] = map[string]string{"gold": strconv.Itoa(second)}
		}
		b.see(all)
		if j, ok := b.take(b.now); ok {
			if was, known := last[j.namespace]; known && b.now.Sub(was) > 21*time.Second {
				t.Errorf("%s waited %v", j.namespace, b.now.Sub(was))
			}
			last[j.namespace] = b.now
			b.finish(j)
		}
		b.now = b.now.Add(time.Second)
	}
	if len(last) != 20 {
		t.Errorf("%d of 20 objects were written", len(last))
	}
}

func TestAnOlderCRDThatDropsAFieldCausesNoFurtherWrites(t *testing.T) {
	b := newBench(t)
	b.drops = "a"
	b.see(oneOffer("a"))
	b.write()
	b.now = b.now.Add(interval)
	b.see(oneOffer("a"))
	if names := b.write(); len(names) > 0 {
		t.Errorf("wrote %v again", names)
	}
}

func TestAFailedWriteIsRepeatedLaterAndLater(t *testing.T) {
	b := newBench(t)
	b.see(oneOffer("a"))
	var waits []time.Duration
	for range 12 {
		j, ok := b.take(b.now)
		if !ok {
			t.Fatal("nothing is due")
		}
		b.failed(j, b.now)
		left, _ := b.next(b.now)
		waits = append(waits, left)
		b.now = b.now.Add(left)
	}
	if waits[0] != retryAfter || waits[1] != 2*retryAfter || waits[11] != retryAtMost || !slices.IsSorted(waits) {
		t.Errorf("waits %v", waits)
	}
}

func TestWhatIsNotShownIsDeleted(t *testing.T) {
	b := newBench(t)
	b.see(&shown{titles: map[string]map[string]string{"rome": {"gold": "a", "silver": "b"}, "oslo": {"gold": "c"}}})
	b.write()
	b.now = b.now.Add(interval)
	b.see(&shown{
		titles: map[string]map[string]string{"rome": {"gold": "a"}, "oslo": {"gold": "c"}},
		states: map[string]table.TenantState{"oslo": table.TenantDrained},
	})
	b.write()
	b.require(map[string]string{"tenant-rome/gold": "a"})
	b.see(&shown{})
	b.now = b.now.Add(2 * interval)
	b.write()
	b.require(map[string]string{})
	b.now = b.now.Add(interval)
	b.see(&shown{})
	if len(b.objects) > 0 {
		t.Errorf("%d objects are not forgotten", len(b.objects))
	}
}

func TestAnotherTenantOfTheConsumerOrTheNamespacePublishesNothing(t *testing.T) {
	for name, other := range map[string]table.Tenant{
		"the same consumer in another namespace": {Consumer: "rome", Namespace: "elsewhere", Name: "t", UID: "2"},
		"another consumer in the same namespace": {Consumer: "bern", Namespace: "tenant-rome", Name: "t", UID: "2"},
	} {
		b := newBench(t)
		s := oneOffer("a")
		s.more = []table.Tenant{other}
		b.see(s)
		if names := b.write(); len(names) > 0 {
			t.Errorf("%s: wrote %v", name, names)
		}
		// A drained one does not count.
		s.more[0].State = table.TenantDrained
		b.see(&shown{titles: s.titles, more: s.more})
		b.write()
		b.require(map[string]string{"tenant-rome/gold": "a"})
	}
	b := newBench(t)
	b.see(&shown{titles: map[string]map[string]string{"system:masters": {"gold": "a"}, "{clusterID}": {"gold": "a"}}})
	if names := b.write(); len(names) > 0 {
		t.Errorf("wrote %v", names)
	}
}

func TestAnObjectOfOthersIsNeverWritten(t *testing.T) {
	b := newBench(t)
	b.cache.set(id{offers, "tenant-rome", "gold"}, observed{uid: "foreign", version: "1"})
	b.see(oneOffer("a"))
	b.now = b.now.Add(time.Hour)
	b.see(&shown{})
	if names := b.write(); len(names) > 0 {
		t.Errorf("wrote %v", names)
	}
}

func TestARivalOfAnOfferIsRestoredLessAndLessOften(t *testing.T) {
	b := newBench(t)
	of := id{offers, "tenant-rome", "gold"}
	fight := func(minutes int) (writes int) {
		for range minutes * 60 {
			b.see(oneOffer("A"))
			writes += len(b.write())
			b.now = b.now.Add(time.Second)
			have, _ := b.cache.get(of)
			b.version++
			have.print, have.version = fingerprint{1}, strconv.Itoa(b.version)
			b.cache.set(of, have)
		}
		return writes
	}
	fight(10)
	if n := fight(10); n < 9 || n > 10 {
		t.Errorf("%d writes in 10 minutes, want one a minute", n)
	}
	b.now = b.now.Add(interval)
	b.see(oneOffer("B"))
	if n := len(b.write()); n != 1 {
		t.Errorf("%d writes of a new offer, want 1", n)
	}
}

func TestAnOfferThatIsRenewedRestoresNothing(t *testing.T) {
	b := newBench(t)
	restores := restore.New()
	b.pacers = pacers(restores, logr.Discard())
	writes := 0
	for range 60 * 60 {
		b.see(oneOffer("A"))
		writes += len(b.write())
		b.now = b.now.Add(time.Second)
	}
	if n := testutil.ToFloat64(restores.WithLabelValues(string(offers))); writes < 6 || n != 0 {
		t.Errorf("%v restores in %d writes", n, writes)
	}
}
