package plugin

import (
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
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
	test.Eventually(t, func() error {
		r := kubectl(t.Context(), kubeconfig, "proffer", "explain", "rome/gold/cpu")
		if !strings.Contains(r.stdout, "50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3") {
			return fmt.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
		}
		return nil
	})
}

func node(t *testing.T, name string) {
	t.Helper()
	create(t, nodestest.Node(name, nodestest.List("cpu", "8", "memory", "32Gi", "pods", "110"), nodestest.NodeLabel("pool", "gold")))
}

// pod creates a pod that is bound to a node, of a consumer unless that is empty.
func pod(t *testing.T, name, node, consumer, cpu, memory string) {
	t.Helper()
	p := nodestest.Pod(name, node, nodestest.List("cpu", cpu, "memory", memory))
	if consumer != "" {
		p.Labels["offloading.liqo.io/origin"] = consumer
	}
	create(t, p)
}
