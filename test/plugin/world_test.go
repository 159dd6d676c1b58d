package plugin

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// populate creates two nodes of 8 cpu, a pod of this cluster, pods of two consumers, and two
// policies, and waits until the operator offers by them.
func populate(t *testing.T, kubeconfig string) {
	t.Helper()
	for _, name := range []string{"worker-1", "worker-2"} {
		node(t, name)
	}
	pod(t, "web", "worker-1", "", "2", "8Gi")
	pod(t, "batch-1", "worker-1", "rome", "1", "4Gi")
	pod(t, "batch-2", "worker-2", "rome", "2", "4Gi")
	pod(t, "report", "worker-2", "oslo", "1", "2Gi")
	must(t, "apply", "-f", "testdata/policies.yaml")
	cleanup(t, "delete", "--ignore-not-found", "-f", "testdata/policies.yaml")
	eventually(t, func() error {
		r := kubectl(t.Context(), kubeconfig, "proffer", "explain", "rome/gold/cpu")
		if !strings.Contains(r.stdout, "50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3") {
			return fmt.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
		}
		return nil
	})
}

func node(t *testing.T, name string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "gold"}}}
	create(t, n)
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := cluster.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	// The API server taints a new node, and a controller of a real cluster removes the taint.
	n.Spec.Taints = nil
	if err := cluster.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// pod creates a pod that is bound to a node, of a consumer unless that is empty.
func pod(t *testing.T, name, node, consumer, cpu, memory string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "c", Image: "c",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}},
			}},
		},
	}
	if consumer != "" {
		p.Labels = map[string]string{"offloading.liqo.io/origin": consumer}
	}
	create(t, p)
}
