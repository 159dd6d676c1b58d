package slices

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
)

// TestLiqoAnswersItsOwnClass tests the lab: in class default Liqo grants every request and adds its
// defaults.
func TestLiqoAnswersItsOwnClass(t *testing.T) {
	all := amounts{"cpu": "2", "memory": "3Gi", "pods": "110", "ephemeral-storage": "20Gi"}
	accepted := answer{
		Status:  authv1beta1.ResourceSliceConditionAccepted,
		Reason:  "ResourceSliceResourcesAccepted",
		Message: "ResourceSlice resources accepted",
		Granted: all,
	}
	s := newSlice(t, rome, "of-liqo", "default", amounts{"cpu": "2", "memory": "3Gi"})
	s.awaitGrant(t, accepted)

	s.ask(t, amounts{"cpu": "5", "memory": "3Gi"})
	all["cpu"] = "5"
	s.awaitGrant(t, accepted)
}
