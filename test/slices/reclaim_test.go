package slices

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// The consumer has a grant of 6 cpu and uses 2 of them. Its policy is lowered to 1.
func TestReclaimDecidesAboutAGrantAboveItsPolicy(t *testing.T) {
	newNode(t, "used", amounts{"cpu": "8", "memory": "16Gi", "pods": "20"})
	spec := func(reclaim, limit string) string {
		const offer = "{nodes: {selector: {matchLabels: {pool: used}}}, max: {%s}}"
		return fmt.Sprintf("{class: gold, offer: "+offer+", reclaim: %s}", limit, reclaim)
	}
	newPolicy(t, "lowered", spec("Unused", ""))
	newPod(t, rome, "running", "used", amounts{"cpu": "2", "memory": "1Gi"})
	t.Run("what a consumer uses is not granted to others", func(t *testing.T) {
		s := newSlice(t, oslo, "other", "gold", amounts{"cpu": "8", "memory": "1Gi", "pods": "5"})
		s.awaitGrant(t, capped("granted 6 of 8 cpu: policy lowered leaves 6 for this cluster",
			amounts{"cpu": "6", "memory": "1Gi", "pods": "5"}))
	})

	whole := granted("lowered", amounts{"cpu": "6", "memory": "2Gi", "pods": "5"})
	limited := func(cpu string) answer {
		return capped(fmt.Sprintf("granted %s of 6 cpu: policy lowered gives this cluster at most 1", cpu),
			amounts{"cpu": cpu, "memory": "2Gi", "pods": "5"})
	}
	for reclaim, lowered := range map[string]answer{
		"Unused": limited("2"),
		"Evict":  limited("1"),
		"Retain": whole,
	} {
		t.Run(reclaim, func(t *testing.T) {
			editPolicy(t, "lowered", spec(reclaim, ""))
			s := newSlice(t, rome, "lowered", "gold", amounts{"cpu": "6", "memory": "2Gi", "pods": "5"})
			s.awaitGrant(t, whole)
			editPolicy(t, "lowered", spec(reclaim, `cpu: "1"`))
			awaitObserved(t, "lowered")
			s.awaitGrant(t, lowered)
			editPolicy(t, "lowered", spec(reclaim, ""))
			s.awaitGrant(t, whole)
		})
	}
	t.Run("Evict to 0", func(t *testing.T) {
		editPolicy(t, "lowered", spec("Evict", ""))
		s := newSlice(t, rome, "evicted", "gold", amounts{"cpu": "6", "memory": "2Gi", "pods": "5"})
		s.awaitGrant(t, whole)
		editPolicy(t, "lowered", spec("Evict", `cpu: "0"`))
		s.awaitGrant(t, capped("granted 0 of 6 cpu: policy lowered gives this cluster at most 0; "+
			"0 of 2Gi memory: it would be of no use without the others; "+
			"0 of 5 pods: it would be of no use without the others", amounts{"cpu": "0", "memory": "0", "pods": "0"}))
	})
}

// awaitObserved waits until the policy's status is current.
func awaitObserved(t *testing.T, name string) {
	t.Helper()
	lab.Eventually(t, "the policy is observed", func(ctx context.Context) error {
		p := emptyPolicy(name)
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		observed, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration")
		if observed != p.GetGeneration() {
			return fmt.Errorf("observedGeneration is %d, want %d", observed, p.GetGeneration())
		}
		return nil
	})
}
