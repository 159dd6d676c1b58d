// Package nodestest builds nodes and pods for tests, and creates them.
package nodestest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

// List builds a resource list from pairs of names and quantities.
func List(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// Node returns a Ready node.
func Node(name string, allocatable corev1.ResourceList, with ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Status: corev1.NodeStatus{
			Allocatable: allocatable,
			Capacity:    allocatable,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range with {
		f(n)
	}
	return n
}

// NodeLabel sets a label of a node.
func NodeLabel(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// Pod returns a pod of one container that is bound to a node.
func Pod(name, node string, requests corev1.ResourceList, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-of-" + name), Labels: map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		},
	}
	for _, f := range with {
		f(p)
	}
	return p
}

// PodLabel sets a label of a pod.
func PodLabel(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// Phase sets the phase of a pod.
func Phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// Worker returns a node of the pool gold with 8 cpu.
func Worker(name string) *corev1.Node {
	return Node(name, List("cpu", "8", "memory", "32Gi", "pods", "110"), NodeLabel("pool", "gold"))
}

// Example returns two workers, a pod of this cluster, and pods of two consumers.
func Example() []client.Object {
	of := func(consumer string) func(*corev1.Pod) { return PodLabel("offloading.liqo.io/origin", consumer) }
	return []client.Object{
		Worker("worker-1"), Worker("worker-2"),
		Pod("web", "worker-1", List("cpu", "2", "memory", "8Gi")),
		Pod("batch-1", "worker-1", List("cpu", "1", "memory", "4Gi"), of("rome")),
		Pod("batch-2", "worker-2", List("cpu", "2", "memory", "4Gi"), of("rome")),
		Pod("report", "worker-2", List("cpu", "1", "memory", "2Gi"), of("oslo")),
	}
}

// Create creates an object. For nodes and pods it does what Complete does.
func Create(t testing.TB, api client.Client, object client.Object) {
	t.Helper()
	want := object.DeepCopyObject()
	test.Must(t, api.Create(t.Context(), object))
	Complete(t, api, object, want)
}

// DeleteAfter deletes an object at the end of the test, without a grace period, unless it is gone by then.
func DeleteAfter(t testing.TB, api client.Client, object client.Object) {
	t.Helper()
	t.Cleanup(func() {
		err := api.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))
		test.Check(t, client.IgnoreNotFound(err))
	})
}

// Complete writes the wanted status of a node or a pod that was created. It also removes the taint that
// the API server gives each new node, as a controller of a real cluster does.
func Complete(t testing.TB, api client.Client, created client.Object, want any) {
	t.Helper()
	before := client.MergeFrom(created.DeepCopyObject().(client.Object))
	switch want := want.(type) {
	case *corev1.Node:
		node := created.(*corev1.Node)
		node.Spec.Taints = want.Spec.Taints
		test.Must(t, api.Patch(t.Context(), node, before))
		before = client.MergeFrom(node.DeepCopy())
		node.Status = want.Status
		test.Must(t, api.Status().Patch(t.Context(), node, before))
	case *corev1.Pod:
		if want.Status.Phase != "" {
			created.(*corev1.Pod).Status = want.Status
			test.Must(t, api.Status().Patch(t.Context(), created, before))
		}
	}
}
