package slices

import (
	"context"
	"encoding/json"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test/slices/lab"
)

// strict has a field that does not exist refused, and not ignored.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// newPolicy has the provider offer something until the end of the test. The spec is YAML.
func newPolicy(t *testing.T, name, spec string) {
	t.Helper()
	p := emptyPolicy(name)
	p.Object["spec"] = parse(t, spec)
	create(t, p)
}

// editPolicy replaces the spec of a policy.
func editPolicy(t *testing.T, name, spec string) {
	t.Helper()
	patch(t, provider, emptyPolicy(name), "/spec", parse(t, spec))
}

func emptyPolicy(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proffer.dev/v1alpha1", "kind": "ResourcePolicy", "metadata": map[string]any{"name": name},
	}}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// patch puts a value into an object of a cluster.
func patch(t *testing.T, c *lab.Cluster, object client.Object, path string, value any) {
	t.Helper()
	data, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Patch(context.WithoutCancel(t.Context()), object, client.RawPatch(types.JSONPatchType, data), strict); err != nil {
		t.Fatal(err)
	}
}

// create makes an object at the provider, until the end of the test.
func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := provider.Client.Create(t.Context(), object, strict); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Nobody else ends pods here: there is no kubelet.
		err := provider.Client.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))
		if err := client.IgnoreNotFound(err); err != nil {
			t.Error(err)
		}
	})
}

// newNode gives the provider a node that is ready, labelled pool=NAME.
func newNode(t *testing.T, name string, allocatable amounts) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name}}}
	create(t, node)
	node.Status = corev1.NodeStatus{
		Allocatable: allocatable.list(), Capacity: allocatable.list(),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	if err := provider.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	// A new node is given the taint of one that is not ready, which a controller would take away.
	node.Spec.Taints = nil
	if err := provider.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

func (a amounts) list() corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, text := range a {
		l[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return l
}

// newPod makes a pod that a consumer has offloaded to the provider, where it is bound to a node.
func newPod(t *testing.T, consumer *lab.Cluster, name, node string, requests amounts) {
	t.Helper()
	create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"offloading.liqo.io/origin": consumer.ID},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "registry.k8s.io/pause", Resources: corev1.ResourceRequirements{Requests: requests.list()},
		}}},
	})
}

// setCondition cordons or drains a consumer, or makes it active again, which it is after the test.
func setCondition(t *testing.T, consumer *lab.Cluster, condition authv1beta1.TenantCondition) {
	t.Helper()
	namespace := lab.TenantNamespace(consumer.ID)
	tenant := forge.Tenant(liqov1beta1.ClusterID(consumer.ID), &namespace)
	patch(t, provider, tenant, "/spec/tenantCondition", condition)
	if condition != authv1beta1.TenantConditionActive {
		t.Cleanup(func() { setCondition(t, consumer, authv1beta1.TenantConditionActive) })
	}
}
