package orchestration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
)

// controllerName is the name of the controller. Its one request stands for all Orchestrations: the choices
// of one depend on the others.
const controllerName = "orchestration"

const (
	// passPeriod is the minimum time between two passes, and observePeriod the most. It is well below
	// broker.MaxGap.
	passPeriod    = time.Second
	observePeriod = 30 * time.Second
	// podsPeriod is the minimum time between two reads of the pods on virtual nodes.
	podsPeriod = 10 * time.Second
	// retryAfter is the wait for a write that has to wait, and readyRetry that for a CRD.
	retryAfter = time.Second
	readyRetry = 5 * time.Second
	// qps bounds the writes of NamespaceOffloadings in a second.
	qps = 20
)

// Config holds the dependencies of a Writer.
type Config struct {
	// ClusterID is the ID of this cluster.
	ClusterID string
	// Client watches and writes objects. Pods reads pods by the field spec.nodeName.
	Client dynamic.Interface
	Pods   client.Reader
	// Consumers returns the known consumers.
	Consumers func() []offer.Consumer
	// Federation has the Offers of providers; nil without them.
	Federation Federation
	// Known are the informers behind Consumers. Nothing is chosen before their first lists.
	Known kube.CRDInformers
	// Holding reports whether this process still leads.
	Holding  func() bool
	Recorder events.EventRecorder
	// Restores counts what the Writer restores.
	Restores restore.Restores
	Log      logr.Logger
	// Now is the clock; nil stands for the system's.
	Now func() time.Time
}

// Federation has what providers offer to this cluster: see federation.Source.
type Federation interface {
	Complete(now time.Time) bool
	Ours(now time.Time) map[string][]rest.FederationOffer
}

// Writer puts Orchestrations into force. It is work for the leader.
type Writer struct {
	Config
	passes  *leading.Trigger
	limiter *rate.Limiter
	writes  kube.WriteCounter
	// statuses, choices and offloadings pace the writes of each kind.
	statuses, choices, offloadings *restore.Pacer
	// namespaces are the numbers of namespaces in the latest plan while this process leads.
	namespaces *prometheus.GaugeVec
}

// NewWriter returns a Writer that has not started.
func NewWriter(config Config) *Writer {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Writer{
		Config: config, limiter: rate.NewLimiter(qps, qps), writes: newWriteCounter(),
		namespaces:  newNamespaces(),
		passes:      leading.NewTrigger(passPeriod, leading.Single(types.NamespacedName{Name: controllerName})),
		statuses:    config.Restores.Pacer(kindStatus, config.Log),
		choices:     config.Restores.Pacer(kindChoice, config.Log),
		offloadings: config.Restores.Pacer(kindOffloading, config.Log),
	}
}

// Wake schedules a pass. It never blocks.
func (w *Writer) Wake() { w.passes.Wake() }

// Start writes until the context ends, and can be started again. It begins with what an earlier
// leader left.
func (w *Writer) Start(ctx context.Context) error {
	r := &reconciler{Writer: w, events: newEvents(w.Recorder)}
	r.caches, r.watches = watch(w.Client, w.Wake, w.Log)
	defer w.namespaces.Reset()
	lists := leading.Lists{
		Informers: slices.Concat(w.Known, r.watches.all), Log: w.Log,
		Waiting: "Orchestrations are not in force yet: the operator cannot list all that it needs; " +
			"apply config/components/orchestrator, which has the CRD and the rights for --orchestrate",
	}
	c := leading.Controller{
		Name: controllerName, Reconciler: r, Sources: []source.Source{w.passes, lists}, Log: w.Log,
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.watches.all.Start(ctx) })
	group.Go(func() error { return c.Start(ctx) })
	return group.Wait()
}

// reconciler holds the state while this process leads.
type reconciler struct {
	*Writer
	caches  *caches
	watches watches
	events  *eventWriter
	// missing is set while the CRD of Orchestrations does not exist.
	missing bool
	// pods holds the pods as of podsRead, nil if they could not be read.
	pods     *bound
	podsRead time.Time
}

// Reconcile makes a pass: it writes the statuses and the NamespaceOffloadings that differ from what should
// be. An object that cannot be written does not keep the others from being written.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.watches.orchestrations.Served() {
		if !r.missing {
			r.Log.Info("No Orchestration is in force: the CRD orchestrations.proffer.dev does not exist; " +
				"apply config/components/orchestrator")
		}
		r.missing = true
		return reconcile.Result{RequeueAfter: readyRetry}, nil
	}
	r.missing = false
	now := r.Now().UTC().Truncate(time.Second)
	if r.awaitsPrices(now) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	p, err := r.plan(ctx, now)
	if p == nil {
		return finished(ctx, podsPeriod, err)
	}
	r.count(p)
	r.events.refuse(p.refusals)
	var writes outcome
	recorded := r.record(ctx, p, &writes)
	r.recordChoices(ctx, p, &writes)
	r.apply(ctx, p, recorded, &writes)
	if writes.left {
		return finished(ctx, retryAfter, writes.err())
	}
	return finished(ctx, p.wait(now), writes.err())
}

// awaitsPrices reports whether an Orchestration compares prices in Offers of which some are not read yet: they would
// move consumers.
func (r *reconciler) awaitsPrices(now time.Time) bool {
	if r.Federation == nil {
		return false
	}
	for _, o := range r.caches.orchestrations.All() {
		if o.object.Spec.Currency != "" {
			return !r.Federation.Complete(now)
		}
	}
	return false
}

// finished returns the result of a pass: the next one follows after this time, or after the back-off of an
// error.
func finished(ctx context.Context, next time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return leading.Written(ctx, err)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// plan works out what should be. It returns nil without the pods: a choice without them would move
// everybody.
func (r *reconciler) plan(ctx context.Context, now time.Time) (*plan, error) {
	fresh, err := r.readPods(ctx, now, podsPeriod)
	if r.pods == nil {
		return nil, err
	}
	p := r.gather(now).work(now)
	if p.drops && !fresh { // A pod may have been bound since the last read.
		if _, err := r.readPods(ctx, now, 0); r.pods == nil {
			return nil, err
		}
		p = r.gather(now).work(now)
	}
	return p, nil
}

// readPods reads the pods on virtual nodes if the latest read is as old as this, and reports whether
// it has.
func (r *reconciler) readPods(ctx context.Context, now time.Time, age time.Duration) (fresh bool, err error) {
	if passed := now.Sub(r.podsRead); passed >= 0 && passed < age {
		return false, nil
	}
	r.podsRead = now
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	r.pods, err = podsOn(ctx, r.Pods, slices.Sorted(maps.Keys(r.caches.nodes.All())))
	if err != nil {
		return true, fmt.Errorf("nothing is chosen or written without the pods on virtual nodes: %w", err)
	}
	return true, nil
}

// gather collects all that the plan depends on.
func (r *reconciler) gather(now time.Time) *world {
	out := &world{
		self: r.ClusterID, offloadable: r.watches.offloadings.Served(), namespaces: r.caches.namespaces.All(),
		offloadings: map[string]offloading{}, labels: map[string]map[string]string{},
		choices: map[string]providerChoice{}, providers: r.caches.providers(r.pods, now),
	}
	out.orchestrations = slices.SortedFunc(maps.Values(r.caches.orchestrations.All()), func(a, b orchestration) int {
		return cmp.Compare(a.object.Name, b.object.Name)
	})
	for key, o := range r.caches.offloadings.All() {
		out.offloadings[path.Dir(key)] = o
	}
	for key, c := range r.caches.choices.All() {
		out.choices[path.Dir(key)] = c
	}
	for _, c := range r.Consumers() {
		out.labels[c.ID] = c.Labels
	}
	if r.Federation != nil {
		offers := r.Federation.Ours(now)
		for i := range out.providers {
			out.providers[i].offers = offers[out.providers[i].ID]
		}
	}
	out.running = running(out.providers, r.pods)
	return out
}
