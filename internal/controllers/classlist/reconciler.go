// Package classlist maintains the list of the classes that policies offer. An admission policy
// checks ResourceSlices against it. It is an AdmissionParams with one entry per class, whose value
// names the program that serves the class.
package classlist

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// debouncePeriod is short: consumers that ask for a new class wait for it.
const debouncePeriod = 50 * time.Millisecond

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// Reconciler keeps the list. It is work for the leader: a manager.Runnable that can be started again.
// Until the list exists, the admission policy refuses all writes of ResourceSlices, even Liqo's own.
type Reconciler struct {
	manager.Runnable
	list   kept.Object
	table  *table.Table
	others []string
}

// NewReconciler returns a Reconciler of the AdmissionParams of this name. It also lists the classes of
// others.
func NewReconciler(
	client dynamic.Interface, list types.NamespacedName, from *table.Table, others []string, pacer *restore.Pacer,
	log logr.Logger,
) *Reconciler {
	r := &Reconciler{
		list: kept.Object{
			Client: client, Resource: paramsResource, Kind: "AdmissionParams", Name: list, Pacer: pacer, Log: log,
			Content: "the list of served classes",
		},
		table: from, others: others,
	}
	r.Runnable = r.list.Controller("classlist", debouncePeriod, r)
	return r
}

// Wake schedules a check of the list. It never blocks.
func (r *Reconciler) Wake() { r.list.Wake() }

// Reconcile brings the list up to date.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	latest := r.table.Current()
	if latest == nil {
		return reconcile.Result{}, nil // Before every policy has been seen, the class of one could be removed by mistake.
	}
	present, err := r.list.Present(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	listed, err := kept.Data(present)
	if err != nil {
		return reconcile.Result{}, err
	}
	served := servedClasses(latest.Policies, latest.Input.Awaited, r.others)
	changes := amendments(listed, served)
	if present != nil && len(changes) == 0 {
		return reconcile.Result{}, nil
	}
	_, result, err := r.list.Amend(ctx, present, changes, strings.Join(served, ","))
	return result, err
}
