package check

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/unknown"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/quantity"
)

// compared are the resources of which every cluster has some. Of others, the first node may come later.
var compared = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// writtenAmount is an amount in a policy that does not follow the nodes.
type writtenAmount struct {
	at     string
	name   corev1.ResourceName
	amount resource.Quantity
}

// writtenAmounts returns the fixed amounts and the reserves of valid policies. The reserve of a policy of peers is not
// of this cluster's nodes.
func writtenAmounts(policies []v1alpha1.ResourcePolicy) (all []writtenAmount) {
	add := func(p *v1alpha1.ResourcePolicy, at string, amounts v1alpha1.Quantities) {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			all = append(all, writtenAmount{fmt.Sprintf("%s of %s", at, p.Name), name, amounts[name].Quantity})
		}
	}
	for i := range policies {
		p := &policies[i]
		if _, _, problems := policy.Parse(p); len(problems) > 0 {
			continue
		}
		add(p, "spec.offer.fixed", p.Spec.Offer.Fixed)
		if p.Spec.Offer.Peers == nil {
			add(p, "spec.offer.reserve", p.Spec.Offer.Reserve)
		}
		for k := range p.Spec.Overrides {
			add(p, fmt.Sprintf("spec.overrides[%d].offer.fixed", k), p.Spec.Overrides[k].Offer.Fixed)
		}
	}
	return all
}

// findSizes reports amounts that are more than all nodes together have, and those of resources that no node has but
// under a similar name: probably slips. It reports nothing without the right to list nodes.
func findSizes(amounts []writtenAmount, nodes known[corev1.ResourceList]) (all []Finding) {
	switch {
	case apierrors.IsForbidden(nodes.err):
		return nil
	case nodes.err != nil:
		return []Finding{nodes.skip(checkPolicies, "list nodes")}
	}
	var large, misspelt []string
	for _, a := range amounts {
		total, listed := nodes.value[a.name]
		switch {
		case slices.Contains(compared, a.name) && a.amount.Cmp(total) > 0:
			text := quantity.Human(string(a.name), &a.amount, &total)
			large = append(large, fmt.Sprintf("%s has %s %s, and all nodes %s", a.at, text[0], a.name, text[1]))
		case !listed:
			if near := slipsOf(string(a.name), nodes.value); len(near) > 0 {
				misspelt = append(misspelt, fmt.Sprintf("%s has %s, and nodes have %s", a.at, a.name, strings.Join(near, " and ")))
			}
		}
	}
	if len(large) > 0 {
		all = append(all, checkPolicies.warning("These amounts are more than the cluster has: %s.", kube.First(large)).
			do("Correct the amounts, unless nodes are added when pods need them."))
	}
	if len(misspelt) > 0 {
		all = append(all, checkPolicies.warning("No node has resources of these names: %s.", kube.First(misspelt)).
			do("Correct the names, unless nodes with these resources are added when pods need them."))
	}
	return all
}

// slipsOf returns the resources in a list of which a name is probably a misspelling. Names that go on, or differ only
// in numbers, are of other resources: nvidia.com/gpu and nvidia.com/gpu.shared, sizes of MIG and of huge pages.
func slipsOf(name string, list corev1.ResourceList) []string {
	var others []string
	for other := range list {
		if rest, longer := strings.CutPrefix(string(other), name); longer && further.MatchString(rest) {
			continue
		}
		if withoutSizes(string(other)) != withoutSizes(name) {
			others = append(others, string(other))
		}
	}
	return unknown.Similar(name, others)
}

// withoutSizes returns a name without its numbers, and that of huge pages without its unit.
func withoutSizes(name string) string {
	if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
		return corev1.ResourceHugePagesPrefix
	}
	return digits.ReplaceAllString(name, "")
}

var (
	digits = regexp.MustCompile(`[0-9]+`)
	// further matches how the name of another resource goes on after a name.
	further = regexp.MustCompile(`^[.0-9-]`)
)

// allocatable adds up what the nodes can allocate, without those that stand for other clusters.
func (c *cluster) allocatable(ctx context.Context) known[corev1.ResourceList] {
	nodes := list[corev1.Node](ctx, c, &corev1.NodeList{})
	total := corev1.ResourceList{}
	for i := range nodes.value {
		if nodes.value[i].Labels[liqo.NodeTypeLabel] == liqo.VirtualNodeType {
			continue
		}
		for name, amount := range nodes.value[i].Status.Allocatable {
			q := total[name]
			q.Add(amount)
			total[name] = q
		}
	}
	return knownOf(total, nodes.err)
}
