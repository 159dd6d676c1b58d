package check

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"proffer.dev/proffer/internal/kube"
)

const (
	checkKubelets Check = "virtual-kubelets"

	// apiServerFlag is the flag by which virtual kubelets add the variables of an API server to pods.
	apiServerFlag = "--enable-apiserver-support"
)

// findKubelets reports the virtual kubelets of a broker that Liqo v1.2.0 lets no pod of a consumer pass:
// the consumer's own one has added the variables of an API server, and a ShadowPod cannot have them
// twice.
func findKubelets(f flags, all known[[]appsv1.Deployment]) []Finding {
	switch {
	case !f.orchestrate || all.err == nil && len(all.value) == 0:
		return nil
	case all.err != nil:
		return []Finding{all.skip(checkKubelets, "list deployments.apps in all namespaces")}
	}
	var adding []string
	for i := range all.value {
		if d := &all.value[i]; addsVariables(d) {
			adding = append(adding, d.Namespace+"/"+d.Name)
		}
	}
	if len(adding) == 0 {
		return []Finding{checkKubelets.ok("They send on the pods of consumers.")}
	}
	return []Finding{checkKubelets.warning("Pods of consumers stay Pending: "+
		"the variables of an API server are added a second time by %s.", kube.First(adding)).
		do("Set virtualKubelet.extra.args of Liqo to " + apiServerFlag + "=false, " +
			"and create the ResourceSlices of these again: see docs/how-to/run-a-broker.md.")}
}

// addsVariables reports whether the last of the flags says so, like pflag.
func addsVariables(d *appsv1.Deployment) (adds bool) {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			if name, value, hasValue := strings.Cut(arg, "="); name == apiServerFlag {
				adds = !hasValue || value == "true"
			}
		}
	}
	return adds
}
