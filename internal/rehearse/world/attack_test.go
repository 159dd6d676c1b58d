package world

import (
	"fmt"
	"strings"
	"testing"
)

// TestASnapshotWithAmountsThatTakeHoursToParseIsRefused, or is read without them, where they do not matter.
func TestASnapshotWithAmountsThatTakeHoursToParseIsRefused(t *testing.T) {
	for _, tc := range []struct{ members, problem string }{
		{`"pods":[{"uid":"p","node":"n","requests":{"cpu":"%s"}}]`, "is not an amount"},
		{`"nodes":[{"name":"n","state":"Ready","allocatable":{"cpu":"%s"}}]`, "is not an amount"},
		{`"levels":{"p":{"cpu":"%s"}}`, "is not an amount"},
		{`"policies":[{"metadata":{"name":"p"},"spec":{"offer":{"fixed":{"cpu":"1"}}},"status":{"capacity":{"cpu":"%s"}}}]`, ""},
	} {
		for _, amount := range []string{"1e9999999", "1e-9999999"} {
			_, _, err := Decode(strings.NewReader(fmt.Sprintf(`{"version":1,`+tc.members+`}`, amount)))
			if (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s with %s: %v", tc.members, amount, err)
			}
		}
	}
}
