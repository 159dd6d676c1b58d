// Package devices runs the operator with the real kube-scheduler on a cluster whose nodes have devices of a driver.
package devices

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

const (
	startTimeout = 5 * time.Minute
	driver       = "gpu.example.com"
	gpu          = "example.com/gpu"
)

var cluster *lab.Cluster

func TestMain(m *testing.M) {
	lab.Test(m, startTimeout, func(ctx context.Context, l *lab.Lab) error {
		clusters, err := l.Start(ctx, 2, "milan")
		if err != nil {
			return err
		}
		cluster = clusters[0]
		return cluster.RunOperator(ctx)
	})
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	lab.Must(t, cluster.Client.Create(t.Context(), o))
	lab.Cleanup(t, func(ctx context.Context) error {
		return client.IgnoreNotFound(cluster.Client.Delete(ctx, o, client.GracePeriodSeconds(0)))
	})
}

// slice is a pool of devices of a node, one of which is tainted.
func slice(node string, devices int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Spec.Driver, s.Spec.NodeName = driver, &node
	s.Spec.Pool = resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}
	for i := range devices + 1 {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{
		Key: "example.com/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule,
	}}
	return s
}

// pod is a pod that requests GPUs by name, or by a claim if there is one.
func pod(name string, gpus int64, claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	if claim != "" {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		return p
	}
	amounts := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	return p
}

// bound reports whether the scheduler has placed a pod, and an error while it has not decided.
func bound(ctx context.Context, p *corev1.Pod) (bool, error) {
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return false, err
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionTrue, nil
		}
	}
	return false, fmt.Errorf("the scheduler has not decided about %s", p.Name)
}

// place creates a pod, and reports whether the scheduler has placed it.
func place(t *testing.T, p *corev1.Pod) (placed bool) {
	t.Helper()
	create(t, p)
	lab.Eventually(t, "the scheduler decides about "+p.Name, func(ctx context.Context) (err error) {
		placed, err = bound(ctx, p)
		return err
	})
	return placed
}

// awaitRemaining waits until this many GPUs are left in the pool of the policy.
func awaitRemaining(t *testing.T, want int64) {
	t.Helper()
	lab.Eventually(t, fmt.Sprintf("%d GPUs remain", want), func(ctx context.Context) error {
		p := &unstructured.Unstructured{}
		p.SetAPIVersion("proffer.dev/v1alpha1")
		p.SetKind("ResourcePolicy")
		if err := cluster.Client.Get(ctx, client.ObjectKey{Name: "all"}, p); err != nil {
			return err
		}
		remaining, _, _ := unstructured.NestedStringMap(p.Object, "status", "remaining")
		if got := remaining[gpu]; got != fmt.Sprint(want) {
			return fmt.Errorf("%q remain: %v", got, p.Object["status"])
		}
		return nil
	})
}

// TestTheSchedulerPlacesAsManyPodsAsAreOffered fills the nodes with pods that request a device by name, after one that
// has a claim.
func TestTheSchedulerPlacesAsManyPodsAsAreOffered(t *testing.T) {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.ExtendedResourceName = new(gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf("device.driver == %q", driver),
	}}}
	create(t, class)
	create(t, slice("milan-1", 3))
	create(t, slice("milan-2", 2))
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proffer.dev/v1alpha1", "kind": "ResourcePolicy", "metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"updateThresholdPercent": int64(0), "offer": map[string]any{"nodes": map[string]any{}}},
	}}
	create(t, policy)
	awaitRemaining(t, 5)

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "local"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"},
	}}
	create(t, claim)
	if !place(t, pod("with-a-claim", 0, "local")) {
		t.Fatal("the pod with a claim is not placed")
	}
	awaitRemaining(t, 4)
	for left := int64(3); left >= 0; left-- {
		if !place(t, pod(fmt.Sprint("by-name-", left), 1, "")) {
			t.Fatalf("a pod is not placed though %d GPUs remain", left+1)
		}
		awaitRemaining(t, left)
	}
	if place(t, pod("one-more", 1, "")) {
		t.Error("a pod is placed though no GPU remains")
	}
	awaitRemaining(t, 0)
}
