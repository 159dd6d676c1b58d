package slice

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/grant/protocol"
)

// Start answers until the context ends, and can be started again. Before the first answer of a term
// it reads the grants from the API server itself, not from a cache.
func (w *Writer) Start(ctx context.Context) error {
	var (
		records []grantRecord
		listed  []slice
	)
	backoff := wait.Backoff{Duration: retryAfter, Factor: 2, Jitter: 0.1, Steps: 1 << 30, Cap: retryAtMost}
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (done bool, err error) {
		// Records first: a grant on record was made to a slice that is listed afterwards.
		if records, err = w.grants.list(ctx); err == nil {
			listed = nil
			err = w.client.each(ctx, func(s slice) { listed = append(listed, s) })
		}
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Cannot list the slices and Grants; no slice is answered until they are listed; will retry")
		}
		return err == nil, nil
	})
	if err != nil {
		return nil // The context is over: this is the way to end it.
	}
	owners := w.decider.gates.owners.All()
	w.decider.cache.beginTerm(string(uuid.NewUUID()), listed, records, func(s *slice) (string, bool) {
		owner := owners[s.namespace]
		return owner, owner != "" && owner == s.consumer && s.adoptable()
	})
	defer w.decider.cache.endTerm()
	w.log.Info("Answering slices", "listed", len(listed), "granted", len(records))
	w.wake()
	return w.controller.Start(ctx)
}

// Reconcile makes all writes that a slice needs, one after the other: see package protocol. After a write
// that failed, a new decision is due, not the same write again: so it wakes the engine, after a wait that grows,
// and reports no error.
func (w *Writer) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	uid, cache := types.UID(r.Name), w.decider.cache
	if !cache.startWrites(uid) {
		return reconcile.Result{}, nil
	}
	lowered, returned := false, false
	defer func() {
		if !returned { // It panicked, and may do so again.
			w.delayed.After(cache.fail(uid, waitAfter))
		}
		cache.endWrites(uid)
		if lowered {
			w.wake() // Other slices may wait for what this one gave up.
		} else {
			w.later()
		}
	}()
	for ctx.Err() == nil && w.holding() {
		t, ok := cache.next(uid)
		if !ok {
			break
		}
		if !w.perform(ctx, uid, &t) {
			break
		}
		lowered = lowered || t.step.Action != protocol.WriteRecord
	}
	returned = true
	return reconcile.Result{}, nil
}
