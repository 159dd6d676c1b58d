// Package classlist maintains the list of the classes that policies offer. An admission policy
// checks ResourceSlices against it. It is an AdmissionParams with one entry per class, whose value
// names the program that serves the class.
package classlist

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/table"
)

// debouncePeriod is short: consumers that ask for a new class wait for it.
const debouncePeriod = 50 * time.Millisecond

// Reconciler keeps the list. It is work for the leader: a manager.Runnable that can be started again.
// Until the list exists, the admission policy refuses all writes of ResourceSlices, even Liqo's own.
type Reconciler struct {
	*kept.Object
	table  *table.Table
	others []string
}

// NewReconciler returns a Reconciler of the list. It also lists the classes of others.
func NewReconciler(list *kept.Object, from *table.Table, others []string) *Reconciler {
	r := &Reconciler{list, from, others}
	list.Content = "the list of served classes"
	list.Control("classlist", debouncePeriod, r)
	return r
}

// Reconcile brings the list up to date.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	latest := r.table.Current()
	if latest == nil {
		return reconcile.Result{}, nil // Before every policy has been seen, the class of one could be removed by mistake.
	}
	present, listed, err := r.Present(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	served := servedClasses(latest.Policies, latest.Input.Awaited, r.others)
	changes := amendments(listed, served)
	if present != nil && len(changes) == 0 {
		return reconcile.Result{}, nil
	}
	_, result, err := r.Amend(ctx, present, changes, strings.Join(served, ","))
	return result, err
}
