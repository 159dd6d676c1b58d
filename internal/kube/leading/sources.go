package leading

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/kube"
)

// queue is the queue of a controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Trigger is the source of the requests that do not come from the API server. It enqueues them while a
// term runs. It merges bursts: a window opens with the first request and ends half a period later, or one
// period after the previous window ended, whichever is later. It is safe for concurrent use, and never
// blocks for longer than a short lock takes.
type Trigger struct {
	period time.Duration
	all    func() []reconcile.Request

	mu sync.Mutex
	// queue is nil while no term runs.
	queue queue
	// due is the end of the latest window.
	due time.Time
}

// NewTrigger returns a Trigger with this period. The function returns every request there is.
func NewTrigger(period time.Duration, all func() []reconcile.Request) *Trigger {
	return &Trigger{period: period, all: all}
}

// Single returns a function for NewTrigger: the one request for the object of this name.
func Single(name types.NamespacedName) func() []reconcile.Request {
	return func() []reconcile.Request { return []reconcile.Request{{NamespacedName: name}} }
}

// Start implements source.Source. It enqueues every request.
func (t *Trigger) Start(ctx context.Context, q queue) error {
	t.mu.Lock()
	if !ended(ctx) { // A source may start late, when the next term has begun.
		t.queue = q
	}
	t.mu.Unlock()
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.queue == q {
			t.queue = nil
		}
	})
	for _, r := range t.all() {
		q.Add(r)
	}
	return nil
}

// Wake enqueues every request at the end of the window. It lists them before it takes the lock: the list may take
// a lock under which others enqueue.
func (t *Trigger) Wake() { t.Enqueue(t.all()...) }

// Enqueue enqueues these requests at the end of the window.
func (t *Trigger) Enqueue(requests ...reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		return
	}
	now := time.Now()
	if !t.due.After(now) {
		t.due = now.Add(max(t.period/2, t.period-now.Sub(t.due)))
	}
	for _, r := range requests {
		t.queue.AddAfter(r, t.due.Sub(now))
	}
}

// EnqueueAfter enqueues these requests after this time, whatever the window.
func (t *Trigger) EnqueueAfter(after time.Duration, requests ...reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		return
	}
	for _, r := range requests {
		t.queue.AddAfter(r, after)
	}
}

// Informer is a source that watches objects with an informer of its own while a term runs. It enqueues each
// object that exists, has changed or is gone. A replica that does not lead neither watches nor keeps them.
type Informer struct {
	Client dynamic.Interface
	Kind   kube.Kind
	Log    logr.Logger

	running sync.WaitGroup
	store   atomic.Pointer[toolscache.Store]
	synced  <-chan struct{}
}

// Start implements source.Source.
func (i *Informer) Start(ctx context.Context, q queue) error {
	if ended(ctx) { // A source may start late, when the next term has begun.
		return nil
	}
	enqueue := func(u *unstructured.Unstructured) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}})
	}
	informer := i.Kind.Informer(i.Client)
	registration, err := informer.AddEventHandler(kube.OnEvents(enqueue, enqueue))
	if err != nil {
		return err
	}
	i.store.Store(new(informer.GetStore()))
	i.synced = registration.HasSyncedChecker().Done()
	i.running.Go(func() { informer.RunWithContext(logr.NewContext(ctx, i.Log)) })
	return nil
}

// WaitForSync implements source.SyncingSource: nothing is reconciled before every object has been seen.
func (i *Informer) WaitForSync(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-i.synced:
	}
	return nil
}

// Get returns an object as it was last seen in this term, nil if there is none.
func (i *Informer) Get(name types.NamespacedName) *unstructured.Unstructured {
	// It never fails.
	object, _, _ := (*i.store.Load()).GetByKey(toolscache.NewObjectName(name.Namespace, name.Name).String())
	u, _ := object.(*unstructured.Unstructured)
	return u
}
