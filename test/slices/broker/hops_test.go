package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/test/slices/lab"
)

// TestLiqosDefaultDoesNotSendAPodOnTwice shows why a broker needs an argument of its virtual kubelets.
func TestLiqosDefaultDoesNotSendAPodOnTwice(t *testing.T) {
	settle(t, "oslo", 0)
	lab.Must(t, apiServerSupport(t.Context(), clusters.Milan, true))
	kubectl(t, "cordon", "from-oslo")
	offer(t, clusters.Oslo, 12) // Milan requests 10 already.
	lab.Cleanup(t, func(ctx context.Context) error {
		for _, args := range [][]string{
			{"uncordon", "from-oslo"},
			{"-n", lab.TenantNamespace("oslo"), "delete", "resourceslices.authentication.liqo.io", "by-default"},
		} {
			lab.Check(t, clusters.Milan.Do(ctx, args...))
		}
		return errors.Join(allowTwoHops(ctx, clusters.Milan), Apply(ctx, clusters.Oslo, "provider"))
	})
	lab.Must(t, requestSlice(t.Context(), clusters.Milan, clusters.Oslo, "by-default", providerClass, "2"))
	lab.Must(t, AwaitNode(t.Context(), clusters.Milan, "by-default", true))
	awaitSelected(t, "oslo")
	newDeployment(t, "twice", 1)
	lab.Eventually(t, "an Event says why the pod stays Pending", func(ctx context.Context) error {
		text, err := clusters.Milan.Kubectl(ctx, "", "-n", "team-rome", "get", "events", "--field-selector=reason=FailedReflection", "-o=jsonpath={.items[*].message}")
		if err != nil || !strings.Contains(text, `Duplicate value: {"name":"KUBERNETES_SERVICE_HOST"}`) {
			return fmt.Errorf("the events are %q: %w", text, err)
		}
		return nil
	})
}
