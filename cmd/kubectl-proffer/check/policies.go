package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/policy"
)

const (
	checkPolicies Check = "policies"
	checkClasses  Check = "classes"
	// maxProblem bounds the characters of the operator's messages that a finding shows.
	maxProblem = 300
)

// findPolicies reports each policy that is not as its author wants it.
func findPolicies(policies known[[]v1alpha1.ResourcePolicy]) []Finding {
	switch {
	case policies.missing():
		return []Finding{checkPolicies.skipped("Without their CRD there are no ResourcePolicies.")}
	case policies.err != nil:
		return []Finding{policies.skip(checkPolicies, "list resourcepolicies.proffer.dev")}
	case len(policies.value) == 0:
		return []Finding{checkPolicies.warning("There is no ResourcePolicy, so nothing is offered.").
			do("Write one: see docs/how-to/install.md.")}
	}
	var findings []Finding
	for i := range policies.value {
		if f := findPolicy(&policies.value[i]); f.Status != OK {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		return []Finding{checkPolicies.ok("All ResourcePolicies (%d) are Ready.", len(policies.value))}
	}
	return findings
}

func findPolicy(p *v1alpha1.ResourcePolicy) Finding {
	if _, _, problems := policy.Parse(p); len(problems) > 0 {
		why := kube.Shorten(problems.ToAggregate().Error(), maxProblem)
		return checkPolicies.wrong("%s is invalid and decides nothing: %s", p.Name, why).
			do("kubectl edit resourcepolicy " + p.Name)
	}
	return findReady(checkPolicies, &p.ObjectMeta, p.Status.Conditions,
		"See docs/reference/conditions.md.")
}

// findReady reports whether an object is Ready as it is now, and which docs explain the reason if it is not.
func findReady(check Check, o *metav1.ObjectMeta, conditions []metav1.Condition, docs string) Finding {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration < o.Generation:
		return check.warning("%s was not evaluated since it was edited.", o.Name).
			do("Look at the checks replicas and leader.")
	case ready.Status != metav1.ConditionTrue:
		problem := kube.Shorten(ready.Message, maxProblem)
		return check.warning("%s is not Ready, %s: %s", o.Name, ready.Reason, problem).do(docs)
	}
	return check.ok("")
}

// classesOf returns the classes that valid policies in force offer, the empty one included,
// sorted.
func classesOf(policies []v1alpha1.ResourcePolicy) []string {
	var all []string
	for i := range policies {
		parsed, _, problems := policy.Parse(&policies[i])
		if len(problems) > 0 || parsed.DryRun {
			continue
		}
		all = append(all, parsed.Class)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// findClasses reports whether there is a class for the slices of Liqo v1.
func findClasses(apis known[liqoAPIs], policies known[[]v1alpha1.ResourcePolicy]) []Finding {
	if apis.err != nil || !apis.value.v1() || policies.err != nil || len(policies.value) == 0 {
		return nil // findLiqo or findPolicies reports it.
	}
	named := slices.DeleteFunc(classesOf(policies.value), func(class string) bool { return class == "" })
	if len(named) > 0 {
		return []Finding{checkClasses.ok("ResourceSlices are answered in %s.", strings.Join(named, ", "))}
	}
	if apis.value.v0() {
		return nil
	}
	return []Finding{checkClasses.warning("No policy in force has a class, so no ResourceSlice is answered.").
		do("Set spec.class of a policy, and request this class: see docs/how-to/serve-classes.md.")}
}

// findPlacement reports policies that enforce placement without the component that does it. The flags
// are the operator's.
func findPlacement(f flags, policies known[[]v1alpha1.ResourcePolicy]) []Finding {
	if f.placements != "" {
		return nil // The check of the guards reports the rest.
	}
	var names []string
	for i := range policies.value {
		if s := policies.value[i].Spec.Slices; s != nil && s.EnforcePlacement {
			names = append(names, policies.value[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{checkPolicies.warning(
		"slices.enforcePlacement has no effect without the component slice-pod-guard: %s.", kube.First(names)).
		do("Add the component: see docs/how-to/keep-pods-in-their-place.md.")}
}
