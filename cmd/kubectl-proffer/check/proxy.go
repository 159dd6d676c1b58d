package check

import (
	"errors"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

const checkProxy = "proxy"

// findProxy reports whether the operator answers through the API server, given what it answered to the
// question for its version.
func findProxy(version string, err error) Finding {
	switch {
	case err == nil:
		return Finding{
			checkProxy, OK, "The control plane reaches the operator's pod on TCP port 8443. Its version is " + version + ".", "",
		}
	case errors.Is(err, operatorclient.ErrNoAnswer):
		return Finding{
			checkProxy, Wrong,
			"The control plane does not reach the operator's pod on TCP port 8443, so kubectl proffer gets no answer.",
			"Allow this port from the control plane to the nodes: see The way from the control plane in docs/install.md.",
		}
	case errors.Is(err, operatorclient.ErrTryAgain), errors.Is(err, operatorclient.ErrNoRight):
		return Finding{checkProxy, Skipped, "The operator was not asked for its version: " + err.Error() + ".", ""}
	default:
		return Finding{
			checkProxy, Warning, "The operator does not answer the plugin: " + err.Error() + ".",
			"See The plugin gets no answer in docs/troubleshooting.md.",
		}
	}
}
