package rest_test

import (
	"testing"

	"proffer.dev/proffer/api/rest"
)

func TestAReasonHasNeitherResourceNorAmount(t *testing.T) {
	lines := []string{"cpu 8: fixed at 8", "memory 4Gi: 100% of 4Gi: that is all"}
	for resource, want := range map[string]string{"cpu": "fixed at 8", "memory": "100% of 4Gi: that is all", "mem": "", "pods": ""} {
		if got := rest.Reason(lines, resource); got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}
