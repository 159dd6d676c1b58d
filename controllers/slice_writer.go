package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"

	"proffer.dev/proffer/internal/grant"
)

const (
	// sliceWriters is how many answers are written at a time.
	sliceWriters = 8
	// sliceTimeout bounds one write. It is no longer than the time in which a leader that is cut off is not replaced yet.
	sliceTimeout = 5 * time.Second
	// sliceConflict is how long to wait after a write that met a newer version; sliceRetry, doubled each time up to sliceRetryMost, after one
	// that failed in any other way.
	sliceConflict  = 50 * time.Millisecond
	sliceRetry     = time.Second
	sliceRetryMost = 30 * time.Second
)

// sliceWriter answers the ResourceSlices. It is work for the leader: what was granted is in one book.
type sliceWriter struct {
	client  dynamic.Interface
	sources *sliceSources
	// wake has everything evaluated anew.
	wake     func()
	alarm    *alarm
	composer *composer
	events   *sliceAnnouncer
	// writes are counted by result, restores by nothing.
	writes   *prometheus.CounterVec
	restores prometheus.Counter
	log      logr.Logger
	// queue has the keys of slices with an answer to be written, in the term that goes on.
	queue atomic.Pointer[workqueue.Typed[string]]
}

func newSliceWriter(client dynamic.Interface, sources *sliceSources, batch *Batch, events *sliceAnnouncer, log logr.Logger) *sliceWriter {
	return &sliceWriter{
		client: client, sources: sources, wake: batch.WakeNow, alarm: newAlarm(batch.WakeNow), composer: newComposer(), events: events, log: log,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_slice_writes_total", Help: "Answers written to ResourceSlices, by result: written, conflict or failed.",
		}, []string{"result"}),
		restores: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "proffer_slice_restores_total", Help: "Answers in ResourceSlices that others had changed, and that were restored.",
		}),
	}
}

// Start answers until the context ends, and can be started again. Before the first answer of a term it learns from the API server itself,
// and not from a cache, what has been granted.
func (w *sliceWriter) Start(ctx context.Context) error {
	listed, err := w.list(ctx)
	if err != nil {
		return nil // The context is over, which is how this ends.
	}
	queue := workqueue.NewTyped[string]()
	w.queue.Store(queue)
	owners := w.sources.gates.owners.all()
	w.sources.book.begin(listed, func(s *slice) bool { return w.sources.gates.ours(owners, s) })
	defer w.sources.book.end()
	w.log.Info("Answering slices", "listed", len(listed))
	w.wake()

	context.AfterFunc(ctx, queue.ShutDown)
	var group errgroup.Group
	for range sliceWriters {
		group.Go(func() error {
			for {
				key, over := queue.Get()
				if over {
					return nil
				}
				w.write(ctx, key)
				queue.Done(key)
			}
		})
	}
	return group.Wait()
}

// list returns all slices as they stand in the API server, as soon as it answers. Where the kind is not defined there are none.
func (w *sliceWriter) list(ctx context.Context) ([]slice, error) {
	var listed []slice
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return w.client.Resource(sliceResource).List(ctx, o)
	})
	backoff := wait.Backoff{Duration: sliceRetry, Factor: 2, Jitter: 0.1, Steps: 1 << 30, Cap: sliceRetryMost}
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		listed = nil
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("a list of slices holds a %T", object)
			}
			if _, err := stripSlice(u); err != nil {
				return err
			}
			listed = append(listed, parseSlice(u))
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			w.log.Error(err, "Cannot list the slices, and answers none until then; it is tried again")
		}
		return err == nil || apierrors.IsNotFound(err), nil
	})
	return listed, err
}

// commit books what an evaluation decided and has it written. It is called by whoever evaluates, between one evaluation and the next: so
// the next one knows of all that is on its way.
func (w *sliceWriter) commit(a *allotment) {
	if a.term == 0 {
		return
	}
	for i := range a.claims {
		if a.claims[i].ours != nil && a.left(i) {
			w.sources.book.forget(a.term, &a.claims[i])
		}
		w.events.shut(&a.claims[i], a.gates[i], a.serving[i])
	}
	now := time.Now()
	w.composer.begin(a.claims, w.sources.storageClasses())
	for j, i := range a.of {
		if a.open(i) {
			w.bring(a.term, &a.claims[i], &a.answers[j], now)
		}
	}
	w.events.tidy(a.claims)
}

// bring has one slice answered as was decided, unless it is already, or has to wait.
func (w *sliceWriter) bring(term int, c *claim, decided *grant.Answer, now time.Time) {
	if c.writing != nil {
		return
	}
	if decided.Verdict == grant.Wait {
		if c.ours != nil && c.ours.class == c.class {
			w.put(term, c, *c.ours, now) // It stays as it is, which somebody else may have changed.
		}
		return
	}
	said := w.composer.say(c, decided)
	if said.settled(c) {
		return
	}
	g := said.given
	g.at = now
	if w.put(term, c, g, now) {
		said.settles(c)
	}
}

// put has an answer written to a slice, now or later, and reports whether there is nothing to be done.
func (w *sliceWriter) put(term int, c *claim, g given, now time.Time) (settled bool) {
	if equal(g.answer, c.answer) {
		settled = c.ours != nil && c.ours.policy == g.policy && c.ours.class == g.class && equal(c.ours.answer, g.answer)
		if !settled {
			w.sources.book.keep(term, c, g)
		}
		return settled
	}
	left := c.until.Sub(now)
	if c.ours != nil && onlyMessage(g.answer, c.answer) && equal(c.ours.answer, c.answer) {
		left = max(left, messageInterval-now.Sub(c.ours.at))
	}
	if left > 0 {
		w.alarm.in(left)
		return false
	}
	if w.sources.book.start(term, c, g) {
		w.queue.Load().Add(c.key)
	}
	return false
}

// write writes the answer that is booked for a slice.
func (w *sliceWriter) write(ctx context.Context, key string) {
	c, g := w.sources.book.pending(key)
	if c == nil {
		return
	}
	object := g.writeTo(c.object, time.Now())
	timed, cancel := context.WithTimeout(ctx, sliceTimeout)
	defer cancel()
	result, err := w.client.Resource(sliceResource).Namespace(c.namespace).UpdateStatus(timed, object, metav1.UpdateOptions{})
	if err != nil {
		w.failed(ctx, c, g, err)
		return
	}
	if stripped, err := stripSlice(result); err == nil {
		result, _ = stripped.(*unstructured.Unstructured)
	}
	w.sources.book.written(c, g, result)
	w.writes.WithLabelValues("written").Inc()
	if c.tampered() {
		w.restores.Inc()
	}
	w.events.answered(c, g)
	w.log.V(1).Info("Answered a slice", "slice", key, "reason", g.reason)
	w.wake() // Others may have waited for what this one gave up.
}

// tampered reports whether somebody else has changed what this process had answered.
func (c *claim) tampered() bool {
	return c.ours != nil && !equal(c.ours.answer, c.answer) && newer(c.version(), c.ours.version)
}

func (w *sliceWriter) failed(ctx context.Context, c *claim, g *given, err error) {
	result, pause := "failed", func(failed int) time.Duration {
		return min(sliceRetry<<min(failed-1, 10), sliceRetryMost)
	}
	if apierrors.IsConflict(err) {
		result, pause = "conflict", func(int) time.Duration { return sliceConflict }
	}
	w.writes.WithLabelValues(result).Inc()
	left := w.sources.book.unwritten(c, g, refused(err), pause)
	w.alarm.in(left)
	if ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.log.Error(err, "Cannot answer a slice; it is tried again", "slice", c.key, "in", left)
	}
}

// refused reports whether the API server has said that a write was not made. Any other error leaves that open.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTimeout(err)
}
