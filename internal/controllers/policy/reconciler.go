package policy

import (
	"context"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies/status,verbs=update
// +kubebuilder:rbac:roleName=proffer-manager,groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles ResourcePolicies into the Cache, on every replica. It is a manager.Runnable, and a
// toolscache.DoneChecker that is done when every policy has been reconciled once.
type Reconciler struct {
	leading.Controller
	objects  client.Reader
	policies *Cache
	// wake is called when an offer may change, and check for each event of a policy: another client may
	// have written its status.
	wake  func()
	check func(reconcile.Request)
	done  chan struct{}
}

// NewReconciler returns a Reconciler that reads the objects from the informers. It calls wake when an offer
// may change, and check for each event of a policy. Neither may block.
func NewReconciler(
	informers cache.Cache, policies *Cache, wake func(), check func(reconcile.Request), log logr.Logger,
) (*Reconciler, error) {
	kind := &v1alpha1.ResourcePolicy{}
	if _, err := kube.InformerOf(informers, kind); err != nil {
		return nil, err
	}
	r := &Reconciler{objects: informers, policies: policies, wake: wake, check: check, done: make(chan struct{})}
	watch := source.Kind(informers, kind, &handler.TypedEnqueueRequestForObject[*v1alpha1.ResourcePolicy]{})
	r.Controller = leading.Controller{
		Name: "resourcepolicy", Reconciler: r, Sources: []source.Source{hydration{watch, r}}, Log: log,
	}
	return r, nil
}

// Name implements toolscache.DoneChecker.
func (r *Reconciler) Name() string { return "ResourcePolicies" }

// Done implements toolscache.DoneChecker: it is closed when every policy has been reconciled once.
func (r *Reconciler) Done() <-chan struct{} { return r.done }

// Reconcile parses a policy, or forgets it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var object v1alpha1.ResourcePolicy
	err := r.objects.Get(ctx, req.NamespacedName, &object)
	var changed bool
	switch {
	case err == nil:
		changed = r.policies.Set(&object)
	case apierrors.IsNotFound(err):
		changed = r.policies.Remove(req.Name)
	default:
		return reconcile.Result{}, err
	}
	r.check(req)
	if changed {
		r.wake()
	}
	return reconcile.Result{}, nil
}

// hydration is a source that reconciles every policy once before any worker starts.
type hydration struct {
	source.SyncingSource
	*Reconciler
}

// WaitForSync implements source.SyncingSource.
func (h hydration) WaitForSync(ctx context.Context) error {
	err := h.SyncingSource.WaitForSync(ctx)
	select {
	case <-ctx.Done():
		return nil // The process ends.
	default:
	}
	if err != nil {
		return err
	}
	var all v1alpha1.ResourcePolicyList
	if err := h.objects.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])}
		if _, err := h.Reconcile(ctx, req); err != nil {
			return err
		}
	}
	close(h.done)
	return nil
}
