package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"proffer.dev/proffer/test"
)

// sliceVersion is one event of the watch of slices.
type sliceVersion struct {
	event watch.EventType
	// at is the clock's time when the event arrived.
	at    time.Duration
	slice *authv1beta1.ResourceSlice
	err   error
}

// versions calls handle for each version of each slice, in the order in which the API server
// accepted them. One goroutine does so, which ends with the test. Arrival times are exact, however
// long handle takes.
func versions(t *testing.T, api dynamic.Interface, now func() time.Duration, handle func(sliceVersion)) {
	t.Helper()
	all := api.Resource(authv1beta1.ResourceSliceGroupVersionResource)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	test.Must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context,
			o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	const bufferSize = 100_000 // Above the number of versions in a test.
	came := make(chan sliceVersion, bufferSize)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(came)
		for e := range w.ResultChan() {
			came <- sliceVersionOf(e, now())
		}
	})
	wg.Go(func() {
		for v := range came {
			handle(v)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func sliceVersionOf(e watch.Event, at time.Duration) sliceVersion {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Error {
		return sliceVersion{err: fmt.Errorf("the watch of slices failed: %v", e.Object)}
	}
	v := sliceVersion{event: e.Type, at: at, slice: &authv1beta1.ResourceSlice{}}
	v.err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, v.slice)
	return v
}

// Writers of statuses other than the operator: a consumer that grants itself something, and others
// that may answer, such as Liqo.
const (
	forger = "forger"
	others = "others"
)

// foreignWrites records who wrote a status other than the operator, by the resulting
// resourceVersion. The author of a version of a slice is known only once no such write to the slice
// is in flight.
type foreignWrites struct {
	mu       sync.Mutex
	ended    *sync.Cond
	writing  map[string]int
	versions map[string]string
}

func newForeignWrites() *foreignWrites {
	f := &foreignWrites{writing: map[string]int{}, versions: map[string]string{}}
	f.ended = sync.NewCond(&f.mu)
	return f
}

// by calls write, which writes the status of a slice as someone other than the operator.
func (f *foreignWrites) by(who, key string, write func() (version string, err error)) error {
	f.mu.Lock()
	f.writing[key]++
	f.mu.Unlock()
	version, err := write()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing[key]--
	f.ended.Broadcast()
	if err == nil {
		f.versions[version] = who
	}
	return err
}

// author returns who wrote this version of a slice, empty for the operator.
func (f *foreignWrites) author(key, version string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.versions[version] == "" && f.writing[key] > 0 {
		f.ended.Wait()
	}
	return f.versions[version]
}

// notInLabels matches a character that is not allowed in the value of a label.
var notInLabels = regexp.MustCompile(`[^-A-Za-z0-9_.]`)

// creatorOf returns the user that creates the pods of a slice: the common name of the slice's
// certificate (Liqo's authentication.CommonNameResourceSliceCSR), as it is written into the label
// liqo.io/creator-user (resource.EscapeLabel).
func creatorOf(id, slice string) string {
	hash := sha256.Sum256([]byte(id))
	return notInLabels.ReplaceAllString(fmt.Sprintf("%s-%x", slice, hash[:6]), "-")
}

// ownerOf returns the consumer whose tenant namespace has the slice.
func ownerOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return strings.TrimPrefix(namespace, namespaceOf(""))
}

// promise is what the operator last accepted for a slice, in milli of cpu, and the class at that
// time.
type promise struct {
	uid   types.UID
	class string
	cpu   int64
}

// history sums up what the operator has promised, only from the versions of the slices. A status
// that somebody else writes does not change a promise: what was accepted stands in a Quota until
// the operator lowers it. The promise of a slice that was deleted, or is answered in another class,
// counts while pods of the slice still run.
type history struct {
	t *testing.T
	*foreignWrites

	mu       sync.Mutex
	latest   map[string]*sliceState
	promised map[string]promise
	// released are promises of slices that are gone, or that are answered in another class, by
	// creator and class.
	released map[[2]string]promise
	// pods has the requests of the pods that the operator has seen, by creator.
	pods map[string]int64
	// pools and perConsumer have what the operator may promise of a class, in total and to one
	// consumer. A missing entry is no limit.
	pools, perConsumer map[string]int64
	// lowered has the slices that the operator has ever answered with less than before.
	lowered map[string]string
	written map[string]int
}

func newHistory(t *testing.T, api dynamic.Interface) *history {
	t.Helper()
	h := &history{
		t: t, foreignWrites: newForeignWrites(), latest: map[string]*sliceState{}, promised: map[string]promise{},
		released: map[[2]string]promise{}, pods: map[string]int64{},
		pools: map[string]int64{}, perConsumer: map[string]int64{}, lowered: map[string]string{},
		written: map[string]int{},
	}
	versions(t, api, func() time.Duration { return 0 }, func(v sliceVersion) {
		if v.err != nil {
			t.Error(v.err)
			return
		}
		is := sliceStateOf(v.slice)
		h.observe(v.event, is, h.author(is.key, is.version))
	})
	return h
}

func (h *history) observe(event watch.EventType, is sliceState, author string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.latest[is.key]
	if was != nil && was.uid != is.uid || event == watch.Deleted {
		h.release(is.key)
		delete(h.latest, is.key)
		was = nil
	}
	if event == watch.Deleted {
		return
	}
	h.latest[is.key] = &is
	if is.status == "" || was != nil && was.answer == is.answer {
		return
	}
	switch author {
	case "":
		h.answered(is)
	case others: // From here on the Quota is that of their answer.
		h.release(is.key)
	}
}

func (h *history) answered(is sliceState) {
	before, after := h.promised[is.key], promise{uid: is.uid, class: is.class, cpu: is.granted[cpu]}
	h.written[is.key]++
	if before.class != "" && before.class != after.class {
		h.release(is.key)
		before = promise{}
	}
	h.promised[is.key] = after
	if after.cpu < before.cpu {
		h.lowered[is.key] = fmt.Sprintf("from %d to %d: %s", before.cpu, after.cpu, is.message)
	}
	if after.cpu > before.cpu {
		h.raised(is, before.cpu)
	}
}

// release ends the promise of a slice that is gone, or that is answered in another class.
func (h *history) release(key string) {
	p, ok := h.promised[key]
	if !ok {
		return
	}
	delete(h.promised, key)
	creator := creatorOf(ownerOf(key), key[strings.Index(key, "/")+1:])
	at := [2]string{creator, p.class}
	p.cpu = max(p.cpu, h.released[at].cpu)
	h.released[at] = p
}

// committed returns what counts in a class, by consumer.
func (h *history) committed(class string) map[string]int64 {
	// If a slice was recreated with the same name, the pods count as those of the new one too.
	byCreator := map[string]map[string]int64{}
	add := func(owner, creator string, cpu int64) {
		if byCreator[owner] == nil {
			byCreator[owner] = map[string]int64{}
		}
		byCreator[owner][creator] = max(byCreator[owner][creator], cpu)
	}
	for key, p := range h.promised {
		if p.class == class {
			add(ownerOf(key), creatorOf(ownerOf(key), key[strings.Index(key, "/")+1:]), p.cpu)
		}
	}
	for at, p := range h.released {
		if at[1] == class {
			add(h.ownerOfCreator(at[0]), at[0], min(p.cpu, h.pods[at[0]]))
		}
	}
	out := map[string]int64{}
	for owner, parts := range byCreator {
		for _, cpu := range parts {
			out[owner] += cpu
		}
	}
	return out
}

func (h *history) ownerOfCreator(creator string) string {
	for _, id := range []string{"rome", "oslo"} {
		if strings.HasSuffix(creator, creatorOf(id, "")) {
			return id
		}
	}
	return ""
}

func (h *history) raised(is sliceState, from int64) {
	committed := h.committed(is.class)
	var sum int64
	for _, cpu := range committed {
		sum += cpu
	}
	if pool, limited := h.pools[is.class]; limited && sum > pool {
		h.t.Errorf("%s was raised from %d to %d: %d of %d are promised in class %s: %v",
			is.key, from, is.granted[cpu], sum, pool, is.class, committed)
	}
	if perConsumer, limited := h.perConsumer[is.class]; limited && committed[ownerOf(is.key)] > perConsumer {
		h.t.Errorf("%s was raised from %d to %d: its consumer has %d of class %s, want at most %d",
			is.key, from, is.granted[cpu],
			committed[ownerOf(is.key)], is.class, perConsumer)
	}
}

// setBounds sets what may be promised of a class from now on, in milli of cpu. 0 removes a limit.
func (h *history) setBounds(class string, pool, perConsumer int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pools, class)
	delete(h.perConsumer, class)
	if pool > 0 {
		h.pools[class] = pool
	}
	if perConsumer > 0 {
		h.perConsumer[class] = perConsumer
	}
}

func (h *history) addPods(creator string, cpu int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pods[creator] += cpu
}

// promisedTo returns what the operator last accepted for the slice.
func (h *history) promisedTo(key string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.promised[key].cpu
}

// answers returns how many answers the operator has written to the slice.
func (h *history) answers(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.written[key]
}

// requireKept fails the test if the operator ever lowered one of the slices.
func (h *history) requireKept(keys ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, how := range h.lowered {
		if slices.Contains(keys, key) {
			h.t.Errorf("%s was lowered %s", key, how)
		}
	}
}
