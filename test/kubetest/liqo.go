package kubetest

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// OfLiqo converts one of Liqo's own types to an unstructured object, without its status.
func OfLiqo(t testing.TB, apiVersion, kind string, object client.Object) *unstructured.Unstructured {
	t.Helper()
	u := Unstructured(t, object)
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	unstructured.RemoveNestedField(u.Object, "status")
	return u
}

// ForeignCluster returns the object that describes a consumer in Liqo v1.
func ForeignCluster(t testing.TB, name, id string, labels map[string]string) *unstructured.Unstructured {
	return OfLiqo(t, "core.liqo.io/v1beta1", "ForeignCluster", &corev1beta1.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(id)},
	})
}

// CreateTenantNamespace creates a namespace for the Tenant and the slices of a consumer, as Liqo does.
func CreateTenantNamespace(t testing.TB, id string) *corev1.Namespace {
	t.Helper()
	return Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "liqo-tenant-" + id + "-",
		Labels:       map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": id},
	}})
}

// Tenant returns the Tenant of a consumer in Liqo v1.
func Tenant(t testing.TB, namespace, name, id string, labels map[string]string) *unstructured.Unstructured {
	return OfLiqo(t, "authentication.liqo.io/v1beta1", "Tenant", &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: authv1beta1.TenantSpec{
			ClusterID: corev1beta1.ClusterID(id), TenantCondition: authv1beta1.TenantConditionActive,
		},
	})
}

// Slice returns the provider's copy of an authenticated ResourceSlice of rome that requests cpu, in
// Liqo's own type.
func Slice(name string, with ...func(*authv1beta1.ResourceSlice)) *authv1beta1.ResourceSlice {
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-of-" + name), ResourceVersion: "7",
			CreationTimestamp: metav1.Unix(1_700_000_000, 0),
			Labels: map[string]string{
				"liqo.io/replicated": "true", "liqo.io/originID": "rome", "liqo.io/remote-cluster-id": "rome",
			},
			Annotations:   map[string]string{"note": "of the consumer"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "crd-replicator"}},
		},
		Spec: authv1beta1.ResourceSliceSpec{
			ConsumerClusterID: new(corev1beta1.ClusterID("rome")), ProviderClusterID: new(corev1beta1.ClusterID("milan")),
			Class: "gold", Resources: nodestest.List("cpu", "4"), CSR: []byte("request"),
		},
		Status: authv1beta1.ResourceSliceStatus{
			Conditions: []authv1beta1.ResourceSliceCondition{Condition("Authentication", "Accepted")},
			AuthParams: &authv1beta1.AuthParams{
				CA: []byte("authority"), SignedCRT: []byte("certificate"), APIServer: "https://milan",
			},
		},
	}
	s.SetGroupVersionKind(authv1beta1.GroupVersion.WithKind(authv1beta1.ResourceSliceKind))
	for _, f := range with {
		f(s)
	}
	return s
}

// Of makes a slice one of another consumer than rome, in its tenant namespace, that requests this.
func Of(namespace, id string, request corev1.ResourceList) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) {
		s.Namespace, s.Spec.Resources = namespace, request
		s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(id))
		s.Labels["liqo.io/originID"], s.Labels["liqo.io/remote-cluster-id"] = id, id
	}
}

// Condition returns a condition of a slice as Liqo writes it.
func Condition(conditionType, status string) authv1beta1.ResourceSliceCondition {
	return authv1beta1.ResourceSliceCondition{
		Type:               authv1beta1.ResourceSliceConditionType(conditionType),
		Status:             authv1beta1.ResourceSliceConditionStatus(status),
		LastTransitionTime: metav1.Unix(1_700_000_001, 0), Reason: "Because", Message: "as Liqo says",
	}
}

// Unstructured converts an object to the form that a dynamic client returns.
func Unstructured(t testing.TB, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	test.Must(t, err)
	return &unstructured.Unstructured{Object: content}
}

// CreateSlice creates a slice with its status.
func CreateSlice(t testing.TB, s *authv1beta1.ResourceSlice) *unstructured.Unstructured {
	t.Helper()
	s.UID, s.ResourceVersion, s.CreationTimestamp, s.ManagedFields = "", "", metav1.Time{}, nil
	u := Unstructured(t, s)
	status := u.DeepCopy().Object["status"]
	Create(t, u)
	Edit(t, u, func(o client.Object) { o.(*unstructured.Unstructured).Object["status"] = status }, WriteStatus)
	return u
}

// SetField sets a field of an unstructured object.
func SetField(o client.Object, value any, path ...string) {
	if err := unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, value, path...); err != nil {
		panic(err)
	}
}
