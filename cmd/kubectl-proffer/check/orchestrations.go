package check

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/orchestration"
	"proffer.dev/proffer/internal/kube"
)

const checkOrchestrations Check = "orchestrations"

// findOrchestrations reports each Orchestration that is not as its author wants it, and the
// NamespaceOffloadings that the operator has written for one that does not exist. The flags are the
// operator's. Without the component it reports only what was left behind.
func findOrchestrations(
	f flags, all known[[]v1alpha1.Orchestration], offloadings known[[]metav1.PartialObjectMetadata],
) []Finding {
	if !f.orchestrate && (all.err != nil || len(all.value) == 0) &&
		(offloadings.err != nil || len(offloadings.value) == 0) {
		return nil
	}
	switch {
	case all.missing() && f.orchestrate:
		return nil // findCRDs reports it.
	case all.err != nil && !all.missing():
		return []Finding{all.skip(checkOrchestrations, "list orchestrations.proffer.dev")}
	case offloadings.err != nil && !offloadings.missing():
		return []Finding{offloadings.skip(checkOrchestrations, "list namespaceoffloadings.offloading.liqo.io")}
	}
	var findings []Finding
	if !f.orchestrate && len(all.value) > 0 {
		findings = append(findings, checkOrchestrations.warning(
			"The operator runs without --orchestrate, so the Orchestrations (%d) have no effect.", len(all.value)).
			do("Add the component orchestrator, or delete them: see docs/how-to/run-a-broker.md."))
	}
	for i := range all.value {
		o := &all.value[i]
		finding := findReady(checkOrchestrations, &o.ObjectMeta, o.Status.Conditions, "See docs/reference/conditions.md.")
		if f.orchestrate && finding.Status != OK {
			findings = append(findings, finding)
		}
	}
	if stray := strays(all.value, offloadings.value); len(stray) > 0 {
		findings = append(findings, checkOrchestrations.warning(
			"NamespaceOffloadings of Orchestrations that do not exist send pods on, in %s.", kube.First(stray)).
			do("The operator deletes them after drainMinutes. If none runs, see docs/how-to/run-a-broker.md."))
	}
	switch {
	case len(findings) > 0:
		return findings
	case len(all.value) == 0:
		return []Finding{checkOrchestrations.warning("There is no Orchestration, so no pods are sent on.").
			do("Write one: see docs/how-to/run-a-broker.md.")}
	default:
		return []Finding{checkOrchestrations.ok("All Orchestrations (%d) are Ready.", len(all.value))}
	}
}

// strays returns the namespaces with a NamespaceOffloading that names none of these Orchestrations,
// sorted.
func strays(all []v1alpha1.Orchestration, offloadings []metav1.PartialObjectMetadata) (namespaces []string) {
	for i := range offloadings {
		name, ours := offloadings[i].Annotations[orchestration.Annotation]
		if ours && !slices.ContainsFunc(all, func(o v1alpha1.Orchestration) bool { return o.Name == name }) {
			namespaces = append(namespaces, offloadings[i].Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}
