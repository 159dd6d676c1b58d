package check

import (
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
)

const checkGuards Check = "guards"

// guard is an admission policy of the manifests.
type guard struct {
	name string
	// dir is the directory of config that has it.
	dir string
}

// installed reports whether the cluster has the policy.
func (g guard) installed(policies []admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return slices.ContainsFunc(policies, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return p.Name == g.name
	})
}

// guardsFor returns the guards that matter with these APIs: without Liqo v1 only those of policies.
func guardsFor(apis known[liqoAPIs], own []guard) []guard {
	return slices.DeleteFunc(slices.Clone(own), func(g guard) bool {
		return g.dir != "admission" && apis.err == nil && !apis.value.v1()
	})
}

// ownGuards returns the admission policies of this version, for an operator with these flags.
func ownGuards(f flags) ([]guard, error) {
	var all []guard
	for _, files := range slices.Concat([]string{"guards/*.yaml", "admission/*.yaml"}, f.inComponents("*.yaml")) {
		objects, err := manifests.Read(files)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o.GetKind() == "ValidatingAdmissionPolicy" {
				all = append(all, guard{o.GetName(), path.Dir(files)})
			}
		}
	}
	return all, nil
}

// findGuards reports the admission policies that are not installed, or not bound.
func findGuards(
	own []guard,
	policies known[[]admissionregistrationv1.ValidatingAdmissionPolicy],
	bindings known[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding],
) Finding {
	const group = ".admissionregistration.k8s.io"
	switch {
	case policies.missing() || bindings.missing():
		return checkGuards.warning("This API server has no ValidatingAdmissionPolicies: " +
			"kubectl apply does not check amounts, and nothing guards slices of Liqo v1.").
			do("Upgrade to Kubernetes 1.30 or newer. docs/explanation/trust.md says what is guaranteed without guards.")
	case policies.err != nil:
		return policies.skip(checkGuards, "list validatingadmissionpolicies"+group)
	case bindings.err != nil:
		return bindings.skip(checkGuards, "list validatingadmissionpolicybindings"+group)
	}
	var absent, unbound, dirs []string
	for _, g := range own {
		switch {
		case !g.installed(policies.value):
			absent, dirs = append(absent, g.name), append(dirs, "config/"+g.dir)
		case !slices.ContainsFunc(bindings.value, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == g.name && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
		}):
			unbound, dirs = append(unbound, g.name), append(dirs, "config/"+g.dir)
		}
	}
	var problems []string
	if len(absent) > 0 {
		problems = append(problems, "Not installed: "+strings.Join(absent, ", ")+".")
	}
	if len(unbound) > 0 {
		problems = append(problems, "Without a binding that denies: "+strings.Join(unbound, ", ")+".")
	}
	if len(problems) > 0 {
		return checkGuards.warning("%s", strings.Join(problems, " ")).
			do("Apply " + strings.Join(slices.Compact(dirs), " and ") + ": see docs/how-to/hold-consumers-to-their-part.md.")
	}
	return checkGuards.ok("All admission policies (%d) are installed and bound.", len(own))
}
