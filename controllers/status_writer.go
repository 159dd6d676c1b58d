package controllers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
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
	// statusTimeout bounds one write.
	statusTimeout = 10 * time.Second
)

// statusWriter brings what came of the policies to their statuses. It is work for the leader: two writers would undo each other's.
type statusWriter struct {
	client  client.Client
	outcome *atomic.Pointer[outcome]
	// version is the resource version that a policy was last seen at, empty where it is not known.
	version func(name string) string
	batch   *Batch
	events  *announcer
	log     logr.Logger
	// interval is statusInterval.
	interval time.Duration
	written  map[types.UID]written
}

// written is what was last written to a policy, or tried to be.
type written struct {
	generation int64
	offered    []v1alpha1.ResourceName
	// says is the report that the status was found to say, as it was at that version; nil where it says more than what was reported.
	says    *offer.Report
	version string
	// again is when the next write may be that is not urgent; retry is when any may be.
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
	later := time.AfterFunc(0, w.batch.Wake)
	defer later.Stop()
	for {
		if _, err := w.batch.next(ctx); err != nil {
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
		report := latest.reports[p.name]
		if p.parsed != nil && report == nil {
			continue
		}
		left := w.write(ctx, p, report, latest.slices)
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
func (w *statusWriter) write(ctx context.Context, p policy, report *offer.Report, allotted *allotment) time.Duration {
	now, last := time.Now(), w.written[p.uid]
	if left := last.retry.Sub(now); left > 0 {
		return left
	}
	if left := last.again.Sub(now); left > 0 && !last.urgent(p, report) {
		return left
	}
	granted := allotted.under(p.name)
	if last.says != nil && last.says == report && last.version == w.version(p.name) && granted.slices == 0 {
		return 0 // To find so again takes as long as the evaluation, which reports the same for as long as nothing has moved.
	}
	var object v1alpha1.ResourcePolicy
	if err := w.client.Get(ctx, client.ObjectKey{Name: p.name}, &object); err != nil {
		return 0 // Gone, which the register is about to learn.
	}
	if object.UID != p.uid || object.Generation != p.generation {
		return 0 // Another evaluation is on its way.
	}
	before := object.Status
	object.Status = statusOf(p, report, granted, before)
	last.says = nil
	if !equality.Semantic.DeepEqual(before, object.Status) {
		err := w.update(ctx, &object)
		if refusedStatus(err) {
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
	} else if granted.slices == 0 {
		last.says, last.version = report, object.ResourceVersion
	}
	last.generation, last.offered = p.generation, object.Status.OfferedResources
	w.written[p.uid] = last
	w.events.announce(&object, report, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady))
	return 0
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
