package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// simulated is the label of the nodes that KWOK plays.
const simulated = "lab.proffer.dev/simulated"

// RunPods lets pods run on the cluster until ctx ends: with the controllers of Kubernetes that make and
// evict pods, kube-scheduler, KWOK, which plays the kubelets of so many nodes, and the virtual kubelets
// of Liqo's Deployments.
func (c *Cluster) RunPods(ctx context.Context, nodes int) error {
	kubeconfig := c.path("kubeconfig")
	// The one of startKubeControllers runs others.
	if err := c.startKubeControllers("kube-controller-manager-pods", "deployment-controller", "replicaset-controller",
		"job-controller", "pod-garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
	); err != nil {
		return err
	}
	scheduler := command(filepath.Join(c.programs.Liqo, "kube-scheduler"), "--kubeconfig", kubeconfig, "--secure-port=0", "--leader-elect=false")
	if _, err := c.run("kube-scheduler", scheduler); err != nil {
		return err
	}
	kwok := command(filepath.Join(c.programs.Liqo, "kwok"), "--kubeconfig", kubeconfig,
		"--config", filepath.Join(c.programs.Liqo, "kwok.yaml"), "--manage-nodes-with-label-selector="+simulated+"=true",
		"--node-ip=127.0.0.1", "--node-lease-duration-seconds=40")
	if _, err := c.run("kwok", kwok); err != nil {
		return err
	}
	for i := range nodes {
		if err := c.newNode(ctx, fmt.Sprintf("%s-%d", c.ID, i+1)); err != nil {
			return err
		}
	}
	c.kubelets = &virtualKubelets{cluster: c, running: map[string]*process{}, done: make(chan struct{})}
	go c.kubelets.run(ctx)
	return nil
}

// newNode creates a node for KWOK, with 16 CPUs.
func (c *Cluster) newNode(ctx context.Context, name string) error {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{simulated: "true", corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
	if err := c.Client.Create(ctx, node); err != nil {
		return err
	}
	return Await(ctx, "node "+name+" is ready", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if !IsReady(node) {
			return fmt.Errorf("it is not: %v", node.Status.Conditions)
		}
		return nil
	})
}

// waitFor waits for a time, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
