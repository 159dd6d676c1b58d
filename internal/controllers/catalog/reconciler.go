// Package catalog publishes the catalog to consumers that use Liqo v1: an Offer for each class that
// is shown to a consumer, in the consumer's tenant namespace on this cluster, and a RoleBinding that
// allows the consumer to read the Offers there. It also writes the RoleBinding that allows a consumer to
// write its ProviderChoice.
//
// One controller compares what exists with what should exist, see plan.go. It enqueues each object that
// differs for the controller of its kind, which writes it: see times.go for how often. A queue hands out
// the object first that has waited longest. An object is built when its turn comes, from the latest
// comparison, so that writes never lag behind it.
//
// The rights are in config/components/catalog/role.yaml and, for ProviderChoices, in
// config/components/orchestrator/role.yaml.
package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// comparisonName is the name of the controller that compares.
const comparisonName = "catalog"

// Config holds the dependencies of a Writer.
type Config struct {
	// Client watches and writes objects.
	Client dynamic.Interface
	// Table has the snapshots that the catalog is computed from, with Shapes.
	Table  *table.Table
	Shapes catalog.Shapes
	// Providers has what consumers may see of the providers of this cluster; nil shows none.
	Providers Providers
	// Publish has Offers written. Without it, only RoleBindings are.
	Publish bool
	// Bindings lists the RoleBindings, and Subjects the subjects that each consumer is bound to.
	Bindings []Binding
	Subjects []Subject
	// QPS bounds the writes in a second.
	QPS int
	// Holding reports whether this process still leads.
	Holding  func() bool
	Recorder events.EventRecorder
	// Restores counts what the Writer restores.
	Restores restore.Restores
	Log      logr.Logger
}

// Providers has what consumers may see of the providers of this cluster: see federation.Source.
type Providers interface {
	Complete(now time.Time) bool
	Behind(now time.Time) map[string][]v1alpha1.OfferProvider
}

// Writer publishes the catalog. It is work for the leader, and a prometheus.Collector.
type Writer struct {
	Config
	writes  kube.WriteCounter
	limiter *rate.Limiter
	// pacers pace the writes of each kind.
	pacers map[kind]*restore.Pacer
	// comparisons has the request of the controller that compares.
	comparisons *leading.Trigger

	mu sync.Mutex
	// plan is the plan while this process leads, nil otherwise.
	plan *plan
}

// NewWriter returns a Writer that has not started.
func NewWriter(config Config) *Writer {
	return &Writer{
		Config: config, writes: newWriteCounter(), limiter: rate.NewLimiter(rate.Limit(config.QPS), 1),
		pacers:      pacers(config.Restores, config.Log),
		comparisons: leading.NewTrigger(planPeriod, leading.Single(types.NamespacedName{Name: comparisonName})),
	}
}

func pacers(restores restore.Restores, log logr.Logger) map[kind]*restore.Pacer {
	return map[kind]*restore.Pacer{
		offers: restores.Pacer(string(offers), log), bindings: restores.Pacer(string(bindings), log),
	}
}

// Wake schedules a comparison of the catalog with what is written. It never blocks.
func (w *Writer) Wake() { w.comparisons.Wake() }

// Start publishes until the context ends, and can be started again. It begins with what an earlier
// leader left.
func (w *Writer) Start(ctx context.Context) error {
	p := newPlan(w.pacers, newEvents(w.Recorder), w.Subjects, w.Bindings...)
	watched := newWatches(w.Client, p, w.Publish, w.Wake, w.Log)
	w.setPlan(p)
	defer w.setPlan(nil)
	lists := leading.Lists{
		Informers: watched.all, Log: w.Log,
		Waiting: "The catalog and the RoleBindings of consumers are not written yet: the operator cannot list all that " +
			"it needs; apply config/components/catalog, which has the CRD and the rights for --publish-offers, " +
			"or config/components/orchestrator, which has those for --orchestrate",
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watched.all.Start(ctx) })
	for _, c := range []leading.Controller{
		{
			Name: comparisonName, Reconciler: &comparison{Writer: w, plan: p, watches: watched},
			Sources: []source.Source{w.comparisons, lists},
		},
		w.writing("catalog-offer", offers, p),
		w.writing("catalog-rolebinding", bindings, p),
	} {
		c.Log = w.Log
		group.Go(func() error { return c.Start(ctx) })
	}
	return group.Wait()
}

// writing returns the controller that writes the objects of a kind.
func (w *Writer) writing(name string, k kind, p *plan) leading.Controller {
	return leading.Controller{
		Name: name, Sources: []source.Source{p.requests[k]}, Workers: min(maxWorkers, 1+w.QPS/writesPerWorker),
		Reconciler: &writing{plan: p, kind: k, api: objectClient{w.Client}, limiter: w.limiter, holding: w.Holding,
			writes: w.writes},
	}
}

func (w *Writer) setPlan(p *plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = p
}

// comparison reconciles the plan of a term with the latest snapshot.
type comparison struct {
	*Writer
	plan    *plan
	watches watches
	// missing is set while the CRD of Offers does not exist.
	missing bool
	// latest is the state of the latest comparison, made from snapshot, and rested the earliest time of the
	// next one.
	latest   state
	snapshot *table.Snapshot
	rested   time.Time
	// providers are shown, as of sampled.
	providers catalog.Providers
	sampled   time.Time
}

// shows reports whether a policy shows the providers that stand behind it.
func (c *comparison) shows(snapshot *table.Snapshot) bool {
	return c.Publish && c.Providers != nil && slices.ContainsFunc(snapshot.Policies, func(p table.Policy) bool {
		return p.Parsed != nil && p.Parsed.Catalog.ShowProviders
	})
}

// sample looks at the providers once a samplePeriod, however often they change, and reports whether what is shown of
// them has changed.
func (c *comparison) sample(now time.Time) (changed bool) {
	if now.Sub(c.sampled) < samplePeriod {
		return false
	}
	before := c.providers
	c.providers, c.sampled = c.Providers.Behind(now), now
	return !equality.Semantic.DeepEqual(before, c.providers)
}

// Reconcile compares what exists with what should exist, and enqueues what differs.
func (c *comparison) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	if c.Publish && !c.watches.offers.Served() {
		if !c.missing {
			c.Log.Info("The catalog is not published: the CRD offers.proffer.dev does not exist; " +
				"apply config/components/catalog")
		}
		c.missing = true
		c.plan.pause()
		return reconcile.Result{RequeueAfter: readyRetry}, nil
	}
	c.missing = false
	snapshot, start := c.Table.Current(), time.Now()
	if snapshot == nil {
		return reconcile.Result{}, nil // The first snapshot wakes.
	}
	if left := c.rested.Sub(start); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	changed, next := false, time.Duration(0)
	if c.shows(snapshot) {
		if !c.Providers.Complete(start) {
			return reconcile.Result{RequeueAfter: retryAfter}, nil // Otherwise a restart would leave them out at first.
		}
		changed = c.sample(start)
		next = c.sampled.Add(samplePeriod).Sub(start)
	}
	switch {
	case c.snapshot == snapshot && !changed:
	case c.Publish:
		c.latest = published{catalog.New(snapshot, c.Shapes, c.providers)}
	default:
		c.latest = peerings{snapshot}
	}
	c.snapshot = snapshot
	c.plan.compare(c.latest, c.watches.roles.All(), start)
	c.rested = start.Add(planPause * time.Since(start))
	return reconcile.Result{RequeueAfter: next}, nil
}

// writing reconciles the objects of one kind with the plan.
type writing struct {
	plan    *plan
	kind    kind
	api     objectAPI
	limiter *rate.Limiter
	holding func() bool
	writes  kube.WriteCounter
}

// Reconcile writes an object if it is not as it should be, and if it is due.
func (w *writing) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	i := id{w.kind, request.Namespace, request.Name}
	if j, left := w.plan.next(i, time.Now()); j == nil {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if w.limiter.Wait(ctx) != nil {
		return reconcile.Result{}, nil // The term has ended.
	}
	// What to write is decided only now, because it may have changed meanwhile.
	j, left := w.plan.next(i, time.Now())
	switch {
	case j == nil:
		return reconcile.Result{RequeueAfter: left}, nil
	case !w.holding():
		return reconcile.Result{RequeueAfter: w.plan.failed(i, time.Now(), retryAtMost)}, nil
	}
	api, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	after, err := w.api.write(api, *j, time.Now())
	w.writes.Count(ctx, string(w.kind), err)
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: w.plan.wrote(j, after, time.Now())}, nil
	case ctx.Err() != nil:
		return reconcile.Result{}, nil
	}
	if kube.Stale(err) {
		w.reread(ctx, i)
		return reconcile.Result{RequeueAfter: w.plan.failed(i, time.Now(), restore.MaxDelay)}, nil
	}
	w.plan.failed(i, time.Now(), retryAtMost)
	return reconcile.Result{}, fmt.Errorf("writing the %s: %w", i.kind, err)
}

// reread brings an object to the cache as it is now: the watch may be behind.
func (w *writing) reread(ctx context.Context, i id) {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	have, known := w.plan.cache.get(i)
	now, err := w.api.read(ctx, i)
	switch {
	case err != nil: // The watch will tell.
	case now != nil:
		w.plan.cache.set(i, *now)
	case known:
		w.plan.cache.remove(i, have)
	}
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) {
	w.writes.Describe(ch)
	ch <- objectsDesc
	ch <- oldestDesc
}

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) {
	w.writes.Collect(ch)
	w.mu.Lock()
	p := w.plan
	w.mu.Unlock()
	if p != nil {
		p.collect(ch, time.Now())
	}
}
