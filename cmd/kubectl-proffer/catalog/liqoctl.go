package catalog

import (
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/internal/source/federation"
)

// liqoctlFor returns a Liqoctl with those flags of the caller that liqoctl has too.
func liqoctlFor(f *operatorclient.Flags) federation.Liqoctl {
	var flags []string
	for _, flag := range []struct {
		name  string
		value *string
	}{
		{"kubeconfig", f.Config.KubeConfig},
		{"context", f.Config.Context},
		{"cluster", f.Config.ClusterName},
		{"user", f.Config.AuthInfoName},
	} {
		if flag.value != nil && *flag.value != "" {
			flags = append(flags, "--"+flag.name, *flag.value)
		}
	}
	return federation.Liqoctl{Flags: flags}
}
