package main

import (
	"context"
	"fmt"
	"io"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	crdKind = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	}
	foreignClusterKind = schema.GroupVersionKind{Group: "core.liqo.io", Version: "v1beta1", Kind: "ForeignCluster"}
)

// populate creates a small provider: three nodes, one with GPUs; pods of its own and of two
// consumers; three consumers.
func (c *cluster) populate(ctx context.Context, progress io.Writer) error {
	fmt.Fprintln(progress, "making 3 nodes, 4 pods, 3 consumers")
	for _, n := range []struct {
		name   string
		labels map[string]string
		gpus   string
	}{
		{"worker-1", map[string]string{"pool": "gold"}, ""},
		{"worker-2", map[string]string{"dedicated": "liqo"}, ""},
		{"gpu-1", map[string]string{"nvidia.com/gpu.present": "true"}, "4"},
	} {
		if err := makeNode(ctx, c.client, n.name, n.labels, n.gpus); err != nil {
			return err
		}
	}
	for _, p := range []struct{ name, node, consumer, cpu, memory string }{
		{"database", "worker-1", "", "2", "4Gi"},
		{"rome-web", "worker-1", "rome", "3", "6Gi"},
		{"rome-train", "gpu-1", "rome", "1", "2Gi"},
		{"oslo-web", "worker-2", "oslo", "1", "1Gi"},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: metav1.NamespaceDefault},
			Spec: corev1.PodSpec{NodeName: p.node, Containers: []corev1.Container{{
				Name: "main", Image: "example.com/" + p.name,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(p.cpu), corev1.ResourceMemory: resource.MustParse(p.memory),
				}},
			}}},
		}
		if p.consumer != "" {
			pod.Labels = map[string]string{"virtualkubelet.liqo.io/origin": p.consumer}
		}
		if err := c.client.Create(ctx, pod); err != nil {
			return err
		}
	}
	for id, tier := range map[string]string{"rome": "gold", "oslo": "silver", "paris": "silver"} {
		peer := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterID": id}}}
		peer.SetGroupVersionKind(foreignClusterKind)
		peer.SetName(id)
		peer.SetLabels(map[string]string{"tier": tier})
		if err := c.client.Create(ctx, peer); err != nil {
			return err
		}
	}
	return nil
}

func makeNode(ctx context.Context, c client.Client, name string, labels map[string]string, gpus string) error {
	labels[corev1.LabelOSStable] = "linux"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := c.Create(ctx, node); err != nil {
		return err
	}
	// Admission taints a new node as not ready. The controller that removes the taint does not run
	// here.
	node.Spec.Taints = nil
	if err := c.Update(ctx, node); err != nil {
		return err
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	if gpus != "" {
		node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(gpus)
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
	}
	return c.Status().Update(ctx, node)
}

// requestToken returns a token of the account that is valid for a day.
func requestToken(ctx context.Context, config *rest.Config, account client.Object) (string, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	seconds := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := clientset.CoreV1().ServiceAccounts(account.GetNamespace()).CreateToken(ctx, account.GetName(),
		request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}
