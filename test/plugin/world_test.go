package plugin

import (
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// populate creates nodes, pods and two policies, and waits until the operator offers by them.
func populate(t *testing.T, kubeconfig string) {
	t.Helper()
	for _, object := range nodestest.Example() {
		create(t, object)
	}
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
