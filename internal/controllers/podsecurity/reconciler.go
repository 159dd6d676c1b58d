package podsecurity

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
)

// selector leaves out tenant namespaces already on the API server.
const selector = liqo.RemoteClusterIDLabel + ",!" + liqo.TenantNamespaceLabel

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// reconciler raises the namespaces of consumers to a level.
type reconciler struct {
	client     dynamic.Interface
	level      Level
	namespaces leading.Informer
	pacer      *restore.Pacer
	log        logr.Logger
}

// NewController returns a controller that raises the namespaces of consumers to the level. It is work for
// the leader.
func NewController(
	client dynamic.Interface, level Level, restores restore.Restores, log logr.Logger,
) *leading.Controller {
	r := &reconciler{client: client, level: level, pacer: restores.Pacer("Namespace", log), log: log}
	r.namespaces = leading.Informer{Client: client, Log: log, Kind: kube.Kind{
		GroupVersionResource: namespaceResource, Selector: selector,
		Strip: kube.KeepFields([]string{"metadata", "annotations"}, []string{"metadata", "managedFields"}),
	}}
	return &leading.Controller{
		Name: "podsecurity", Reconciler: r, Sources: []source.Source{&r.namespaces}, Log: log,
	}
}

// Reconcile raises a namespace that lacks the level.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := r.namespaces.Get(req.NamespacedName)
	if u == nil || !r.level.lacks(u) {
		return reconcile.Result{}, nil
	}
	// A namespace that is created again is another one.
	content := string(r.level) + " " + string(u.GetUID())
	if left := r.pacer.Wait(req.Name, content, time.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := r.set(ctx, u); err != nil {
		return leading.Written(ctx, fmt.Errorf("cannot set the pod-security level of a namespace: %w", err))
	}
	if restored := r.pacer.Wrote(req.Name, content, restore.LastManager(u), time.Now()); !restored {
		r.log.Info("Raised the pod-security level of a namespace", "namespace", req.Name, "level", r.level)
	}
	return reconcile.Result{}, nil
}

// set sets the level of a namespace at the version that was read: a level that an admin has just set
// stays.
func (r *reconciler) set(ctx context.Context, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": u.GetResourceVersion(), "labels": map[string]string{enforceLabel: string(r.level)},
	}}
	_, err := kube.MergePatch(ctx, r.client.Resource(namespaceResource), u.GetName(), patch)
	return err
}
