package controllers

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
)

const (
	// statusBatch is the period in which statuses are looked at once at most: nobody waits for them.
	statusBatch = 200 * time.Millisecond
	// statusInterval is the least time between a write to a policy and a later one that is not urgent.
	statusInterval = 10 * time.Second
	// statusConflict is how long a write that met a newer version waits for the cache to catch up; statusRetry is how long one waits
	// that failed in any other way.
	statusConflict = 500 * time.Millisecond
	statusRetry    = 5 * time.Second
	// statusLook is the least time in which one status is worked out again that nobody waits for, and rehearsalLook that of a dry run, which takes
	// as long as an evaluation. All rehearsals together take at most one part in rehearsalPause of the time.
	statusLook     = time.Second
	rehearsalLook  = 10 * time.Second
	rehearsalPause = 10
	// statusTimeout bounds one write.
	statusTimeout = 10 * time.Second
)

// statusWriter brings what came of the policies to their statuses. It is work for the leader: two writers would undo each other's.
type statusWriter struct {
	client  client.Client
	outcome *atomic.Pointer[outcome]
	// version is the resource version that a policy was last seen at, empty where it is not known.
	version   func(name string) string
	debouncer *debounce.Debouncer
	events    *announcer
	log       logr.Logger
	// interval is statusInterval.
	interval time.Duration
	written  map[types.UID]written
	// unusable are the nodes that a selection leaves out.
	unusable offer.Unusable
	// rehearsed is when the last rehearsal ended, and pause how long after it the next one may begin.
	rehearsed time.Time
	pause     time.Duration
}

// written is what was last written to a policy, or tried to be.
type written struct {
	generation int64
	offered    []v1alpha1.ResourceName
	// found is the outcome that the status was last worked out from, and version that of the object which then said it.
	found   *outcome
	version string
	// again is when the status may be worked out next if that is not urgent; retry is when any write may be.
	again, retry time.Time
}

// urgent reports whether the next write cannot wait: whoever edited the policy looks at it, and a resource that is offered for the first
// time has to be on record before a crash, or else it would not be taken back by an explicit 0. All else waits, other reasons too: a
// node that comes and goes would have a status written each time.
func (l written) urgent(p policy, report *offer.Report) bool {
	recorded := v1alpha1.ResourcePolicyStatus{OfferedResources: l.offered}
	return l.generation != p.generation || len(offeredResources(p, report, recorded)) > len(l.offered)
}

// Start writes until the context ends, and can be started again. What an earlier leader left undone is done first.
func (w *statusWriter) Start(ctx context.Context) error {
	later := time.AfterFunc(0, w.debouncer.Wake)
	defer later.Stop()
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context is over, which is how this ends.
		}
		if wait := w.pass(ctx); wait > 0 {
			later.Reset(wait)
		}
	}
}

// pass writes each status that differs and may be written, and returns after how long to come back for the others, 0 if there are none.
func (w *statusWriter) pass(ctx context.Context) time.Duration {
	latest := w.outcome.Load()
	if latest == nil {
		return 0
	}
	var wait time.Duration
	present := make(map[types.UID]struct{}, len(latest.policies))
	for _, p := range latest.policies {
		present[p.uid] = struct{}{}
	}
	for _, p := range inOrder(latest.policies, w.written) {
		report := latest.reports[p.name]
		if p.parsed != nil && report == nil {
			continue
		}
		left := w.write(ctx, p, latest)
		if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}
	for uid := range w.written {
		if _, ok := present[uid]; !ok {
			delete(w.written, uid)
			w.events.forget(uid)
		}
	}
	return wait
}

// write brings one status up to date, or returns how long that has to wait.
func (w *statusWriter) write(ctx context.Context, p policy, latest *outcome) time.Duration {
	now, last, report := time.Now(), w.written[p.uid], latest.reports[p.name]
	if last.found == latest && last.version == w.version(p.name) {
		return 0
	}
	if left := last.retry.Sub(now); left > 0 {
		return left
	}
	if left := last.again.Sub(now); left > 0 && !last.urgent(p, report) {
		return left
	}
	if left := w.rehearsed.Add(w.pause).Sub(now); left > 0 && p.dryRun() {
		return left
	}
	var object v1alpha1.ResourcePolicy
	if err := w.client.Get(ctx, client.ObjectKey{Name: p.name}, &object); err != nil {
		return 0 // Gone, which the register is about to learn.
	}
	if object.UID != p.uid || object.Generation != p.generation {
		return 0 // Another evaluation is on its way.
	}
	before := object.Status
	object.Status = statusOf(p, latest.find(p, w.unusable), before)
	if p.dryRun() {
		w.rehearsed = time.Now()
		w.pause = rehearsalPause * w.rehearsed.Sub(now)
	}
	if !equality.Semantic.DeepEqual(before, object.Status) {
		err := w.update(ctx, &object)
		if kube.RefusedContent(err) {
			object.Status = leastOf(object.Status, err)
			err = nil
			if !equality.Semantic.DeepEqual(before, object.Status) {
				err = w.update(ctx, &object)
			}
		}
		if err != nil {
			wait := statusRetry
			if apierrors.IsConflict(err) {
				wait = statusConflict
			}
			last.retry = time.Now().Add(wait)
			w.written[p.uid] = last
			return wait
		}
		last = written{again: now.Add(w.interval)}
	} else {
		last = written{again: now.Add(w.look(p))}
	}
	last.found, last.version = latest, object.ResourceVersion
	last.generation, last.offered = p.generation, object.Status.OfferedResources
	w.written[p.uid] = last
	w.events.announce(&object, report, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady))
	return 0
}

// look is how long a status that was found to be as it should is taken to be so.
func (w *statusWriter) look(p policy) time.Duration {
	if p.dryRun() {
		return rehearsalLook
	}
	return statusLook
}

// inOrder returns the policies in the order in which their statuses are worked out: dry runs come last, those first that have waited longest.
func inOrder(policies []policy, by map[types.UID]written) []policy {
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, func(a, b policy) int {
		switch {
		case a.dryRun() && b.dryRun():
			return by[a.uid].again.Compare(by[b.uid].again)
		case a.dryRun():
			return 1
		case b.dryRun():
			return -1
		}
		return 0
	})
	return ordered
}

func (w *statusWriter) update(ctx context.Context, object *v1alpha1.ResourcePolicy) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err := w.client.Status().Update(ctx, object)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		w.log.Error(err, "Cannot write the status of a policy; it is tried again", "policy", object.Name)
	}
	return err
}
