package slice

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
)

// perform makes one write, and reports whether to continue with the slice.
func (w *Writer) perform(ctx context.Context, uid types.UID, t *task) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if t.step.Action == protocol.WriteAnswer {
		return w.writeAnswer(ctx, uid, t)
	}
	return w.writeRecord(ctx, uid, t)
}

// writeRecord creates, replaces or deletes the record. After a conflict it reads the record.
func (w *Writer) writeRecord(ctx context.Context, uid types.UID, t *task) bool {
	cache := w.decider.cache
	var (
		result grantRecord
		err    error
	)
	if t.step.Action == protocol.DeleteRecord {
		err = w.grants.remove(ctx, &t.record)
	} else {
		result, err = w.grants.write(ctx, &t.record)
	}
	switch {
	case err == nil && t.step.Action == protocol.DeleteRecord:
		cache.confirmDelete(uid)
	case err == nil:
		cache.confirmRecord(uid, result)
		w.paceRecord(uid, t)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && t.step.Version != "":
		w.metrics.records.WithLabelValues("conflict").Inc()
		now, err := w.grants.read(ctx, &t.record)
		if err != nil {
			w.retry(ctx, uid, t, err)
			return false
		}
		cache.observeRecord(uid, now)
		w.delayed.After(cache.fail(uid, waitAfterConflict))
		return false
	default:
		w.metrics.records.WithLabelValues("failed").Inc()
		if kube.NotWritten(err) && t.step.Action == protocol.WriteRecord {
			cache.forgetRecord(uid)
			w.events.Emit(t.on.object, corev1.EventTypeWarning, eventUnrecorded,
				"The slice is granted nothing more, because the API server refuses its Grant: "+err.Error())
		}
		w.retry(ctx, uid, t, err)
		return false
	}
	w.metrics.records.WithLabelValues("written").Inc()
	return true
}

// paceRecord delays the next write of a slice whose record this write restored. A slice whose answer
// follows is not delayed: the answer ends the delay. If another client has raised one amount and lowered another
// one, a record of both is written first, which restores nothing yet.
func (w *Writer) paceRecord(uid types.UID, t *task) {
	if !t.want.Met(&t.record.Record) {
		return
	}
	now := time.Now()
	object, content := w.grants.namespace+"/"+grantName(t.record.name, uid), contentOf(&t.record)
	if restored := w.records.Wrote(object, content, "", now); restored {
		left := w.records.Wait(object, content, now)
		w.delayed.After(w.decider.cache.fail(uid, func(int) time.Duration { return left }))
	}
}

// waitAfterConflict returns the wait after a number of failures in a row, the last of which was a conflict, and
// waitAfter that after any other one.
var waitAfterConflict, waitAfter = doubled(conflictAfter, conflictAtMost), doubled(retryAfter, retryAtMost)

// doubled returns the first wait, doubled after each further failure, at most this.
func doubled(first, most time.Duration) func(failed int) time.Duration {
	return func(failed int) time.Duration { return min(first<<min(failed-1, 10), most) }
}

// retry delays the next write of a slice after a failure, longer each time.
func (w *Writer) retry(ctx context.Context, uid types.UID, t *task, err error) {
	left := w.decider.cache.fail(uid, waitAfter)
	w.delayed.After(left)
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	w.failures.Do(func() {
		w.log.Error(err, "Cannot write the answer or the Grant of a slice; will retry", "slice", t.on.key, "in", left)
	})
}

// writeAnswer writes the answer.
func (w *Writer) writeAnswer(ctx context.Context, uid types.UID, t *task) bool {
	c, g := t.on, t.answer
	result, err := w.update(ctx, c, g.patch, t.want.Stands)
	if kube.RefusedContent(err) {
		smaller := g.minimal()
		if result, err = w.update(ctx, c, smaller.patchAlone, t.want.Stands || equal(smaller, c.answer)); err == nil {
			*g = smaller
		}
	}
	switch {
	case err == nil:
	case apierrors.IsConflict(err):
		// The watch is about to bring the newer version, perhaps the result of an earlier attempt.
		w.metrics.writes.WithLabelValues("conflict").Inc()
		w.delayed.After(w.decider.cache.fail(uid, waitAfterConflict))
		return false
	case apierrors.IsNotFound(err):
		return false
	default:
		w.metrics.writes.WithLabelValues("failed").Inc()
		if kube.RefusedContent(err) {
			w.metrics.unwritable.Inc()
			w.decider.cache.giveUp(uid, t, err.Error())
			w.events.Emit(c.object, corev1.EventTypeWarning, eventUnwritable,
				"The API server refuses every answer to the slice, so its grant cannot be taken back: "+err.Error())
		}
		w.retry(ctx, uid, t, err)
		return false
	}
	kept := w.decider.cache.confirmAnswer(uid, t, result)
	if result.version() == t.version || !equal(result.answer, *g) {
		w.metrics.writes.WithLabelValues("altered").Inc()
		w.events.Emit(c.object, corev1.EventTypeWarning, eventAltered, errAltered.Error())
		w.retry(ctx, uid, t, errAltered)
		return false
	}
	w.metrics.writes.WithLabelValues("written").Inc()
	if c.tampered() {
		w.metrics.restores.Inc()
		w.restored.Do(func() {
			w.log.Info("Another client changed the answer in a slice, and the operator restored it; "+
				"further restores are not logged for a while", "slice", c.key, "silentFor", restoredNotice)
		})
	}
	if !t.want.Stands {
		w.events.answered(c, g)
	}
	w.log.V(1).Info("Answered a slice", "slice", c.key, "reason", g.reason)
	return kept
}

// errAltered reports a write whose result differs from the answer.
var errAltered = errors.New("the API server stores a different status than the operator writes: " +
	"a webhook changes it, or the CRD of ResourceSlice drops a field")

// update writes a patch to the version of the slice that was decided on. With touch, the slice gets a
// new version although it already holds the answer.
func (w *Writer) update(
	ctx context.Context, c *sliceEntry, patchOf func(*unstructured.Unstructured, time.Time) ([]byte, error), touch bool,
) (slice, error) {
	object, now := c.object, time.Now()
	if touch {
		object, now = toTouch(object, now)
	}
	patch, err := patchOf(object, now)
	if err != nil {
		return slice{}, err
	}
	result, err := w.client.patchStatus(ctx, c.namespace, c.name, patch)
	if err != nil {
		return slice{}, err
	}
	return parseSlice(result), nil
}

// toTouch returns the slice without the time of our condition, and a time to write that differs
// from it by at least the second that the API server keeps: writing the same answer then changes
// the slice.
func toTouch(u *unstructured.Unstructured, now time.Time) (*unstructured.Unstructured, time.Time) {
	out := u.DeepCopy()
	for _, value := range conditionsOf(out) {
		condition, ok := value.(map[string]any)
		if !ok || !ofResources(value) {
			continue
		}
		if condition["lastTransitionTime"] == timeText(now) {
			now = now.Add(-time.Second)
		}
		delete(condition, "lastTransitionTime")
	}
	return out, now
}
