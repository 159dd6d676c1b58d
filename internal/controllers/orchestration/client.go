package orchestration

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube/liqo"
)

// objectClient writes NamespaceOffloadings and statuses.
type objectClient struct{ dynamic.Interface }

// write makes one write, of the version that it was planned for. It returns the object as it is then,
// nil for one that is deleted.
func (c objectClient) write(ctx context.Context, w write) (*unstructured.Unstructured, error) {
	api := c.Resource(liqo.NamespaceOffloadings).Namespace(w.namespace)
	switch w.action {
	case create:
		return api.Create(ctx, w.object(), metav1.CreateOptions{FieldManager: proffer})
	case update:
		patch, err := json.Marshal(w.patch())
		if err != nil {
			return nil, fmt.Errorf("encoding: %w", err)
		}
		return api.Patch(ctx, offloadingName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: proffer})
	default:
		at := metav1.Preconditions{UID: &w.have.uid, ResourceVersion: &w.have.version}
		err := api.Delete(ctx, offloadingName, metav1.DeleteOptions{Preconditions: &at})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
}

// writeStatus writes the status of an Orchestration, of the version that was read.
func (c objectClient) writeStatus(
	ctx context.Context, o *v1alpha1.Orchestration, status *v1alpha1.OrchestrationStatus,
) (*unstructured.Unstructured, error) {
	next := o.DeepCopy()
	next.Status = *status
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Orchestration"))
	return c.Resource(orchestrations).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: proffer})
}
