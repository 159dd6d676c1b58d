package check

import (
	"errors"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

const checkProxy Check = "proxy"

// findProxy reports whether the operator answers through the API server, given what it answered to the
// question for its version.
func findProxy(version string, err error) Finding {
	switch {
	case err == nil:
		return checkProxy.ok("The control plane reaches the operator's pod on TCP port 8443. Its version is %s.", version)
	case errors.Is(err, operatorclient.ErrNoAnswer):
		return checkProxy.wrong(
			"The control plane does not reach the operator's pod on TCP port 8443, so kubectl proffer gets no answer.").
			do("Allow this port from the control plane to the nodes: see docs/how-to/run-with-a-private-control-plane.md.")
	case errors.Is(err, operatorclient.ErrTryAgain), errors.Is(err, operatorclient.ErrNoRight):
		return checkProxy.skipped("The operator was not asked for its version: %v.", err)
	default:
		return checkProxy.warning("The operator does not answer the plugin: %v.", err).
			do("See docs/how-to/find-out-what-hangs.md.")
	}
}
