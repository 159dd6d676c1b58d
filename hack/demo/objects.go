package main

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/nodestest"
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
	amounts := []string{"cpu", "8", "memory", "32Gi", "pods", "110", "ephemeral-storage", "100Gi"}
	for _, node := range []*corev1.Node{
		nodestest.Node("worker-1", nodestest.List(amounts...), nodestest.NodeLabel("pool", "gold")),
		nodestest.Node("worker-2", nodestest.List(amounts...), nodestest.NodeLabel("dedicated", "liqo")),
		nodestest.Node("gpu-1", nodestest.List(append(amounts, "nvidia.com/gpu", "4")...),
			nodestest.NodeLabel("nvidia.com/gpu.present", "true")),
	} {
		if err := createNode(ctx, c.client, node); err != nil {
			return err
		}
	}
	for _, p := range []struct{ name, node, consumer, cpu, memory string }{
		{"database", "worker-1", "", "2", "4Gi"},
		{"rome-web", "worker-1", "rome", "3", "6Gi"},
		{"rome-train", "gpu-1", "rome", "1", "2Gi"},
		{"oslo-web", "worker-2", "oslo", "1", "1Gi"},
	} {
		pod := nodestest.Pod(p.name, p.node, nodestest.List("cpu", p.cpu, "memory", p.memory))
		pod.Spec.Containers[0].Image = "example.com/" + p.name
		if p.consumer != "" {
			pod.Labels["virtualkubelet.liqo.io/origin"] = p.consumer
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

// createNode creates a node with its status.
func createNode(ctx context.Context, c client.Client, node *corev1.Node) error {
	node.Labels[corev1.LabelOSStable] = "linux"
	status := node.Status
	if err := c.Create(ctx, node); err != nil {
		return err
	}
	// Admission taints a new node as not ready. The controller that removes the taint does not run
	// here.
	node.Spec.Taints = nil
	if err := c.Update(ctx, node); err != nil {
		return err
	}
	node.Status = status
	return c.Status().Update(ctx, node)
}
