package consumers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

// The watches name Liqo's kinds and fields as strings. This test compares them with Liqo's types.
func TestConsumersAreReadFromLiqosOwnTypes(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "peer", Namespace: "liqo-tenant-rome", Labels: map[string]string{"tier": "gold"}}
	for _, tc := range []struct {
		resource schema.GroupVersionResource
		object   any
	}{
		{
			corev1beta1.ForeignClusterGroupVersionResource,
			&corev1beta1.ForeignCluster{ObjectMeta: meta, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"}},
		},
		{
			authv1beta1.TenantGroupVersionResource,
			&authv1beta1.Tenant{ObjectMeta: meta, Spec: authv1beta1.TenantSpec{ClusterID: "rome"}},
		},
	} {
		t.Run(tc.resource.String(), func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.object)
			test.Must(t, err)
			for _, kind := range kinds {
				if kind.GroupVersionResource != tc.resource {
					continue
				}
				got, err := kind.parse(&unstructured.Unstructured{Object: content})
				test.Must(t, err)
				if diff := cmp.Diff(offer.Consumer{ID: "rome", Labels: meta.Labels}, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			t.Errorf("%s is not watched", tc.resource)
		})
	}
}
