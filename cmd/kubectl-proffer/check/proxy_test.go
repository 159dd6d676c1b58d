package check

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

func TestAControlPlaneThatDoesNotReachTheOperatorIsReported(t *testing.T) {
	cases := map[string]struct {
		err  error
		want is
	}{
		"reached":             {nil, is{OK, []string{"TCP port 8443", "version is v0.1.0"}}},
		"a firewall":          {fmt.Errorf("%w: why", operatorclient.ErrNoAnswer), is{Wrong, []string{"TCP port 8443", "docs/how-to/run-with-a-private-control-plane.md"}}},
		"no replica":          {fmt.Errorf("no replica: %w", operatorclient.ErrTryAgain), is{Skipped, []string{"no replica"}}},
		"no right":            {fmt.Errorf("%w get services/proxy", operatorclient.ErrNoRight), is{Skipped, []string{"you may not get services/proxy"}}},
		"an operator too old": {errBroken, is{Warning, []string{"connection refused", "docs/how-to/find-out-what-hangs.md"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findProxy("v0.1.0", c.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
