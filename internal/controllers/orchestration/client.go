package orchestration

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
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
		return kube.MergePatch(ctx, api, offloadingName, w.patch())
	default:
		at := metav1.Preconditions{UID: &w.have.uid, ResourceVersion: &w.have.version}
		return nil, client.IgnoreNotFound(api.Delete(ctx, offloadingName, metav1.DeleteOptions{Preconditions: &at}))
	}
}

// writeStatus writes the status of an object, of the version that was read.
func (c objectClient) writeStatus(ctx context.Context, s statusWrite) (*unstructured.Unstructured, error) {
	u, err := kube.Encode(v1alpha1.GroupVersion.WithKind(s.kind), s.object)
	if err != nil {
		return nil, err
	}
	api := c.Resource(s.resource).Namespace(s.object.GetNamespace())
	return api.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: proffer})
}
