package slices

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test/slices/lab"
)

// strict makes the API server reject unknown fields.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// newPolicy creates a policy until the end of the test. The spec is YAML.
func newPolicy(t testing.TB, name, spec string) {
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

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var value map[string]any
	lab.Must(t, yaml.Unmarshal([]byte(text), &value))
	return value
}

// patch sets a value in an object of a cluster.
func patch(t *testing.T, c *lab.Cluster, object client.Object, path string, value any) {
	t.Helper()
	data, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
	lab.Must(t, err)
	ctx := context.WithoutCancel(t.Context())
	lab.Must(t, c.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, data), strict))
}

// create creates an object on the provider until the end of the test.
func create(t testing.TB, object client.Object) {
	t.Helper()
	lab.Must(t, provider.Client.Create(t.Context(), object, strict))
	t.Cleanup(func() {
		// There is no kubelet that would end pods.
		err := provider.Client.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))
		lab.Check(t, client.IgnoreNotFound(err))
	})
}

// newNode creates a ready node on the provider, with the label pool=NAME, or with other labels.
func newNode(t *testing.T, name string, allocatable amounts, labels ...map[string]string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name}}}
	for _, l := range labels {
		node.Labels = l
	}
	create(t, node)
	node.Status = corev1.NodeStatus{
		Allocatable: allocatable.list(), Capacity: allocatable.list(),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	lab.Must(t, provider.Client.Status().Update(t.Context(), node))
	// The API server taints new nodes as not ready, and no controller runs that would remove the
	// taint.
	node.Spec.Taints = nil
	lab.Must(t, provider.Client.Update(t.Context(), node))
}

func (a amounts) list() corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, text := range a {
		l[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return l
}

// newPod creates a pod that a consumer has offloaded and that is bound to a node of the provider.
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

// recordedGrants lists the Grants of the operator.
func recordedGrants(ctx context.Context, api client.Client) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "proffer.dev", Version: "v1alpha1", Kind: "GrantList"})
	err := api.List(ctx, list, client.InNamespace(lab.OperatorNamespace))
	return list.Items, err
}

// awaitNoGrants waits until nothing counts that slices of earlier tests held. It counts for ten
// seconds after they are deleted, in every pool if their policy is deleted too.
func awaitNoGrants(t *testing.T) {
	t.Helper()
	lab.Eventually(t, "nothing counts as granted", func(ctx context.Context) error {
		left, err := recordedGrants(ctx, provider.Client)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %d Grants, the first is %s", len(left), left[0].GetName())
		}
		return err
	})
}

// setCondition sets the condition of a consumer's Tenant. After the test the Tenant is active
// again.
func setCondition(t *testing.T, consumer *lab.Cluster, condition authv1beta1.TenantCondition) {
	t.Helper()
	namespace := lab.TenantNamespace(consumer.ID)
	tenant := forge.Tenant(liqov1beta1.ClusterID(consumer.ID), &namespace)
	patch(t, provider, tenant, "/spec/tenantCondition", condition)
	if condition != authv1beta1.TenantConditionActive {
		t.Cleanup(func() { setCondition(t, consumer, authv1beta1.TenantConditionActive) })
	}
}
