package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/table"
)

const (
	// statusBatch is the debounce period of statuses. It is long, because no consumer waits for a
	// status.
	statusBatch = 200 * time.Millisecond
	// statusInterval is the minimum time between a write to a policy and a later one that is not
	// urgent.
	statusInterval = 10 * time.Second
	// statusConflict is the wait after a conflict, for the cache to catch up. statusRetry is the
	// wait after any other failure.
	statusConflict = 700 * time.Millisecond
	statusRetry    = 5 * time.Second
	// statusLook is the minimum time between two computations of a status that is not urgent.
	// dryRunLook is the same for a dry run, which takes as long as an evaluation. All dry runs together
	// take at most one part in dryRunPause of the time. dryRunGap keeps in order those that wait.
	statusLook  = time.Second
	dryRunLook  = 10 * time.Second
	dryRunPause = 10
	dryRunGap   = time.Millisecond
)

// StatusReconciler writes the statuses of policies. It is work for the leader: two writers would undo each
// other's writes.
type StatusReconciler struct {
	client  client.Client
	table   *table.Table
	version func(policy string) string
	trigger *leading.Trigger
	events  eventWriter
	pacer   *restore.Pacer
	// excesses holds the excesses in the snapshot excessesIn, by policy.
	excesses   map[string][]table.Excess
	excessesIn *table.Snapshot
	// Writes counts the writes by result.
	Writes kube.WriteCounter
	log    logr.Logger
	// written holds the last write to each policy, by name.
	written map[string]written
	// dryRunEnded is the end of the last dry run, and pause the time until the next one may start.
	dryRunEnded time.Time
	pause       time.Duration
}

// NewStatusReconciler returns a StatusReconciler that writes statuses from the table's snapshots. The version
// of a policy is the one at which it was last seen, empty if it is not known.
func NewStatusReconciler(
	api client.Client, from *table.Table, version func(policy string) string, recorder events.EventRecorder,
	restores restore.Restores, log logr.Logger,
) *StatusReconciler {
	r := &StatusReconciler{
		client: api, table: from, version: version, log: log, written: map[string]written{},
		pacer:  restores.Pacer("ResourcePolicy", log),
		events: eventWriter{kube.EventEmitter{Recorder: recorder, Action: actionOffer}},
		Writes: kube.NewWriteCounter("proffer_policy_writes_total",
			"Number of writes of the statuses of policies, by result: written, conflict or failed."),
	}
	r.trigger = leading.NewTrigger(statusBatch, r.all)
	return r
}

// Wake schedules a check of all statuses. It never blocks.
func (r *StatusReconciler) Wake() { r.trigger.Wake() }

// Check schedules a check of the status of one policy. It never blocks.
func (r *StatusReconciler) Check(policy reconcile.Request) { r.trigger.Enqueue(policy) }

// all returns a request for each policy, dry runs last.
func (r *StatusReconciler) all() []reconcile.Request {
	var all []reconcile.Request
	if latest := r.table.Current(); latest != nil {
		for _, p := range inOrder(latest.Policies, nil) {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: p.Name}})
		}
	}
	return all
}

// written is the last write, or attempted write, of a policy's status.
type written struct {
	uid        string
	generation int64
	offered    []v1alpha1.ResourceName
	reported   reported
	// found is the snapshot that the status was last computed from. version is the version of the
	// object that had this status.
	found   *table.Snapshot
	version string
	// again is the earliest time to compute the status if that is not urgent; retry is the earliest
	// time of any write.
	again, retry time.Time
}

// urgent reports whether the next write cannot wait. After an edit, the admin is looking at the
// policy. A resource that is offered for the first time must be on record before a crash, or it
// would not be withdrawn by an explicit 0. Everything else waits, including another reason:
// otherwise a flapping node would cause a write each time.
func (l written) urgent(p table.Policy, report *offer.Report) bool {
	recorded := v1alpha1.ResourcePolicyStatus{OfferedResources: l.offered}
	return l.generation != p.Generation || len(offeredResources(p, report, recorded)) > len(l.offered)
}

// Start writes until the context ends, and can be started again. It begins with what an earlier
// leader left undone.
func (r *StatusReconciler) Start(ctx context.Context) error {
	maps.DeleteFunc(r.written, func(name string, _ written) bool {
		return r.version(name) == "" // It was deleted between two terms.
	})
	term := leading.Controller{
		Name: "resourcepolicy-status", Reconciler: r, Sources: []source.Source{r.trigger}, Log: r.log,
	}
	return term.Start(ctx)
}

// Reconcile writes the status of a policy if it differs and is due.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	latest := r.table.Current()
	of := latest.Policy(req.Name)
	if of == nil || r.written[req.Name].uid != of.UID {
		delete(r.written, req.Name)
	}
	if of == nil || of.Parsed != nil && latest.Reports[of.Name] == nil {
		return reconcile.Result{}, nil
	}
	p := *of
	if last := r.written[p.Name]; last.found == latest && last.version == r.version(p.Name) {
		return reconcile.Result{}, nil
	}
	if left := r.wait(latest, p, time.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	var object v1alpha1.ResourcePolicy
	if err := r.client.Get(ctx, req.NamespacedName, &object); err != nil {
		delete(r.written, req.Name) // The policy is gone; the cache is about to learn so.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if string(object.UID) != p.UID || object.Generation != p.Generation {
		return reconcile.Result{}, nil // Another evaluation follows.
	}
	return r.update(ctx, latest, p, &object)
}

// update computes the status of a policy, and writes it if it differs.
func (r *StatusReconciler) update(
	ctx context.Context, latest *table.Snapshot, p table.Policy, object *v1alpha1.ResourcePolicy,
) (reconcile.Result, error) {
	now, before, last := time.Now(), object.Status, r.written[p.Name]
	found := r.find(latest, p, now)
	object.Status = statusOf(p, found, before)
	last.uid = p.UID
	again := now.Add(statusLook) // To check a correct status.
	if p.DryRun() {
		again = now.Add(dryRunLook)
	}
	if !equality.Semantic.DeepEqual(before, object.Status) {
		if left := r.pacer.Wait(p.Name, contentOf(object), now); left > 0 {
			last.again = now.Add(left)
			r.written[p.Name] = last
			return reconcile.Result{RequeueAfter: left}, nil
		}
		if err := r.write(ctx, object, before); err != nil {
			return r.failed(ctx, p.Name, last, err)
		}
		again = now.Add(statusInterval)
	}
	last.found, last.version, last.again = latest, object.ResourceVersion, again
	last.generation, last.offered = p.Generation, object.Status.OfferedResources
	ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	last.reported = r.events.emit(object, found, ready, last.reported)
	r.written[p.Name] = last
	return reconcile.Result{}, nil
}

// wait returns how long the status of a policy has to wait, 0 to compute it now.
func (r *StatusReconciler) wait(latest *table.Snapshot, p table.Policy, now time.Time) time.Duration {
	last := r.written[p.Name]
	if left := last.retry.Sub(now); left > 0 {
		return left
	}
	if left := last.again.Sub(now); left > 0 && !last.urgent(p, latest.Reports[p.Name]) {
		return left
	}
	left := r.dryRunEnded.Add(r.pause).Sub(now)
	if left <= 0 || !p.DryRun() {
		return 0
	}
	for _, other := range inOrder(latest.Policies, r.written) {
		switch {
		case other.Name == p.Name:
			return left
		case other.DryRun():
			left += dryRunGap
		}
	}
	return left
}

// find collects everything in a snapshot about a policy. For a dry run it evaluates the effect of
// activating it, and determines how long the next dry run has to wait.
func (r *StatusReconciler) find(latest *table.Snapshot, p table.Policy, now time.Time) finding {
	if r.excessesIn != latest {
		r.excesses, r.excessesIn = map[string][]table.Excess{}, latest
		for _, e := range latest.Excesses() {
			r.excesses[e.Policy] = append(r.excesses[e.Policy], e)
		}
	}
	found := finding{report: latest.Reports[p.Name], granted: latest.Granted(p.Name), excesses: r.excesses[p.Name]}
	if found.report == nil {
		return found
	}
	found.explainer = latest.Explainer()
	if p.DryRun() {
		found.dryRun, found.present = policy.Activate(latest, p.Name), latest.Input.Grants[p.Parsed.Class]
		r.dryRunEnded = time.Now()
		r.pause = dryRunPause * r.dryRunEnded.Sub(now)
	}
	return found
}

// failed schedules the next attempt to write a status. A new snapshot does not bring it forward.
func (r *StatusReconciler) failed(ctx context.Context, name string, last written, err error) (reconcile.Result, error) {
	conflict := apierrors.IsConflict(err)
	wait := statusRetry
	if conflict {
		wait = statusConflict
	}
	last.retry = time.Now().Add(wait)
	r.written[name] = last
	if conflict {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return leading.Written(ctx, fmt.Errorf("cannot write the status of a policy: %w", err))
}

// contentOf renders the status of a policy without its times, for the pacer. A policy that is created
// again is another one.
func contentOf(object *v1alpha1.ResourcePolicy) string {
	s := object.Status
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	text, _ := json.Marshal(s) // A status can always be encoded.
	return string(object.UID) + string(text)
}

// inOrder returns the policies in the order in which their statuses are written. Dry runs come
// last, the one that has waited longest first.
func inOrder(policies []table.Policy, by map[string]written) []table.Policy {
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, func(a, b table.Policy) int {
		switch {
		case a.DryRun() && b.DryRun():
			return by[a.Name].again.Compare(by[b.Name].again)
		case a.DryRun():
			return 1
		case b.DryRun():
			return -1
		}
		return 0
	})
	return ordered
}

// write writes the status of a policy, or the least of it if the API server refuses the rest.
func (r *StatusReconciler) write(
	ctx context.Context, object *v1alpha1.ResourcePolicy, before v1alpha1.ResourcePolicyStatus,
) error {
	err := r.send(ctx, object)
	if !kube.RefusedContent(err) {
		return err
	}
	r.log.Error(err, "The status of a policy is refused; without its details it may be written", "policy", object.Name)
	object.Status = leastOf(object.Status, err)
	if equality.Semantic.DeepEqual(before, object.Status) {
		return nil
	}
	return r.send(ctx, object)
}

func (r *StatusReconciler) send(ctx context.Context, object *v1alpha1.ResourcePolicy) error {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	content := contentOf(object)
	err := r.client.Status().Update(ctx, object)
	if !apierrors.IsNotFound(err) { // A policy that is gone is no failure.
		r.Writes.Count(ctx, "", err)
	}
	if err == nil {
		r.pacer.Wrote(object.Name, content, "", time.Now())
	}
	return err
}
