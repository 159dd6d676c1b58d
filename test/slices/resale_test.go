package slices

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// What the provider has from another cluster and resells is marked on the consumer's virtual node, so
// that it is not resold in a circle.
func TestWhatIsResoldIsMarkedOnTheVirtualNode(t *testing.T) {
	newNode(t, "from-milan", amounts{"cpu": "4", "memory": "8Gi", "pods": "10"},
		map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"})
	newPolicy(t, "pooled", `
class: pooled
offer: {peers: {}}
updateThresholdPercent: 0
`)
	s := newSlice(t, rome, "resold", "pooled", amounts{"cpu": "9", "memory": "1Gi", "pods": "5"})
	lab.Eventually(t, "the virtual node has what is resold", func(ctx context.Context) error {
		node := s.emptyVirtualNode()
		if err := rome.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if node.Spec.OffloadingPatch == nil || node.Spec.KubeconfigSecretRef == nil {
			return fmt.Errorf("the virtual node is %+v", node.Spec)
		}
		// What the operator goes by to tell which virtual nodes are of one ResourceSlice.
		if got, want := node.Spec.KubeconfigSecretRef.Name, "kubeconfig-resourceslice-"+s.name; got != want {
			return fmt.Errorf("the identity is in Secret %s, want %s", got, want)
		}
		want := []string{"4", "1", "virtual-node"}
		cpu := node.Spec.ResourceQuota.Hard[corev1.ResourceCPU]
		got := []string{cpu.String(), node.Spec.Labels["proffer.dev/depth"], node.Spec.OffloadingPatch.NodeSelector["liqo.io/type"]}
		return differ("cpu, depth and node selector", want, got)
	})
}
