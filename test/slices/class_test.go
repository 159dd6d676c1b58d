package slices

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
)

func TestASliceMovesBetweenClasses(t *testing.T) {
	newPolicy(t, "golden", `{class: gold, offer: {fixed: {cpu: "4", memory: 8Gi, pods: "20"}}}`)
	newPolicy(t, "silvern", `{class: silver, offer: {fixed: {cpu: "2", memory: 4Gi, pods: "20"}}}`)
	ask := amounts{"cpu": "8", "memory": "3Gi", "pods": "10"}
	s := newSlice(t, rome, "moving", "gold", ask)
	s.awaitGrant(t, capped("granted 4 of 8 cpu: policy golden gives this cluster at most 4",
		amounts{"cpu": "4", "memory": "3Gi", "pods": "10"}))

	s.move(t, "silver")
	s.awaitGrant(t, capped("granted 2 of 8 cpu: policy silvern gives this cluster at most 2",
		amounts{"cpu": "2", "memory": "3Gi", "pods": "10"}))

	// In its own class Liqo grants every request, and adds resources that it has a default for.
	s.move(t, "default")
	s.awaitGrant(t, answer{
		Status: authv1beta1.ResourceSliceConditionAccepted, Reason: "ResourceSliceResourcesAccepted",
		Message: "ResourceSlice resources accepted",
		Granted: amounts{"cpu": "8", "memory": "3Gi", "pods": "10", "ephemeral-storage": "20Gi"},
	})

	s.move(t, "gold")
	s.awaitGrant(t, capped("granted 4 of 8 cpu: policy golden gives this cluster at most 4",
		amounts{"cpu": "4", "memory": "3Gi", "pods": "10", "ephemeral-storage": "0"}))
}
