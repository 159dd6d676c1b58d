package slices

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestWhatIsGrantedBesidesFullNodesIsPlaced by kube-scheduler, and no pod more. Most of the capacity is on a node whose
// pod slots are used up, and on one that an autoscaler is about to delete.
func TestWhatIsGrantedBesidesFullNodesIsPlaced(t *testing.T) {
	pool := map[string]string{"pool": "slots"}
	newNode(t, "slots-open", amounts{"cpu": "3", "memory": "16Gi", "pods": "20"}, pool)
	newNode(t, "slots-full", amounts{"cpu": "32", "memory": "64Gi", "pods": "2"}, pool)
	newNode(t, "slots-going", amounts{"cpu": "32", "memory": "64Gi", "pods": "20"}, pool)
	going := &corev1.Node{}
	lab.Must(t, provider.Client.Get(t.Context(), client.ObjectKey{Name: "slots-going"}, going))
	going.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	lab.Must(t, provider.Client.Update(t.Context(), going))
	for i := range 2 {
		newPod(t, oslo, fmt.Sprint("fills-", i), "slots-full", amounts{"cpu": "1", "memory": "1Gi"})
	}
	newPolicy(t, "slots",
		"{class: gold, offer: {nodes: {selector: {matchLabels: {pool: slots}}, tolerations: [{operator: Exists}]}}}")

	s := newSlice(t, rome, "packed", "gold", amounts{"cpu": "20", "memory": "3Gi", "pods": "10"})
	s.awaitGrant(t, capped("granted 3 of 20 cpu: policy slots leaves 3 for this cluster",
		amounts{"cpu": "3", "memory": "3Gi", "pods": "10"}))

	provider.RunScheduler(t)
	names := []string{"packed-1", "packed-2", "packed-3"}
	for _, name := range names {
		newWaitingPod(t, rome, name, pool)
	}
	lab.Eventually(t, "what is granted is placed", func(ctx context.Context) error {
		for _, name := range names {
			pod, err := podNamed(ctx, name)
			if err == nil {
				err = differ("the node of "+name, "slots-open", pod.Spec.NodeName)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	newWaitingPod(t, rome, "packed-4", pool)
	lab.Eventually(t, "one pod more is not placed", func(ctx context.Context) error {
		pod, err := podNamed(ctx, "packed-4")
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "1 Insufficient cpu") &&
				strings.Contains(c.Message, "1 Too many pods") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", pod.Status.Conditions)
	})
}

// newWaitingPod creates a pod of 1 cpu that a consumer has offloaded, for the scheduler to place on a node with these
// labels.
func newWaitingPod(t *testing.T, consumer *lab.Cluster, name string, on map[string]string) {
	t.Helper()
	requests := amounts{"cpu": "1", "memory": "1Gi"}
	create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"offloading.liqo.io/origin": consumer.ID},
		},
		Spec: corev1.PodSpec{NodeSelector: on, Containers: []corev1.Container{{
			Name: "main", Image: "registry.k8s.io/pause", Resources: corev1.ResourceRequirements{Requests: requests.list()},
		}}},
	})
}

func podNamed(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
	return pod, provider.Client.Get(ctx, key, pod)
}
