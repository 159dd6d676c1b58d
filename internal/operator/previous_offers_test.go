package operator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// manyIDs returns more consumers than a status lists.
func manyIDs() []v1alpha1.ClusterID {
	ids := make([]v1alpha1.ClusterID, offer.MaxReported+50)
	for i := range ids {
		ids[i] = v1alpha1.ClusterID(fmt.Sprintf("consumer-%03d", i))
	}
	return ids
}

// awaitConsumers waits until the status of a policy counts this many consumers.
func awaitConsumers(t *testing.T, policy string, consumers int) {
	t.Helper()
	test.Eventually(t, func() string {
		if now := statusOfPolicy(t, policy).Consumers; now == nil || int(*now) != consumers {
			return fmt.Sprintf("the status counts %v consumers, want %d", now, consumers)
		}
		return ""
	})
}

// requireOffers compares what each of the consumers, and an unknown one, is offered now.
func (o *operator) requireOffers(ids []v1alpha1.ClusterID, want, wantUnknown map[string]capacity.Amounts) {
	o.t.Helper()
	for _, id := range ids {
		if diff := cmp.Diff(want, o.offered(string(id))); diff != "" {
			o.t.Fatalf("%s (-want +got):\n%s", id, diff)
		}
	}
	if diff := cmp.Diff(wantUnknown, o.offered("nobody-knows-it")); diff != "" {
		o.t.Fatalf("unknown (-want +got):\n%s", diff)
	}
}

func TestARestartRemembersConsumersBeyondTheLimitOfAStatus(t *testing.T) {
	ids := manyIDs()
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "2", "memory", "1Gi", "pods", "5"),
		kubetest.ForIDs(ids...), func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }))
	o := startOperator(t)
	offered := map[string]capacity.Amounts{"gold": {"cpu": 2000, "memory": gib, "pods": 5}}
	test.Eventually(o.t, func() string { return cmp.Diff(offered, o.offered(string(ids[0]))) })
	awaitConsumers(t, "p", len(ids))
	o.stop()

	zeros := capacity.Amounts{"cpu": 0, "memory": 0, "pods": 0}
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Offer.Fixed = "silver", kubetest.Quantities("cpu", "1", "memory", "1Gi")
	})
	o = startOperator(t)
	o.requireOffers(ids,
		map[string]capacity.Amounts{"gold": zeros, "silver": {"cpu": 1000, "memory": gib, "pods": 0}},
		map[string]capacity.Amounts{"gold": zeros})
}
