package check

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/quantity"
)

// compared are the resources of which every cluster has some. Of others, the first node may come later.
var compared = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// fixedAmount is an amount that a policy offers whatever nodes there are.
type fixedAmount struct {
	at     string
	name   corev1.ResourceName
	amount resource.Quantity
}

// fixedAmounts returns the fixed amounts of valid policies, of the resources that are compared.
func fixedAmounts(policies []v1alpha1.ResourcePolicy) (all []fixedAmount) {
	add := func(p *v1alpha1.ResourcePolicy, at string, amounts v1alpha1.Quantities) {
		for _, name := range compared {
			if q, ok := amounts[name]; ok {
				all = append(all, fixedAmount{fmt.Sprintf("%s of %s", at, p.Name), name, q.Quantity})
			}
		}
	}
	for i := range policies {
		p := &policies[i]
		if _, _, problems := policy.Parse(p); len(problems) > 0 {
			continue
		}
		add(p, "spec.offer.fixed", p.Spec.Offer.Fixed)
		for k := range p.Spec.Overrides {
			add(p, fmt.Sprintf("spec.overrides[%d].offer.fixed", k), p.Spec.Overrides[k].Offer.Fixed)
		}
	}
	return all
}

// findSizes reports fixed amounts that are more than all nodes together have: probably a slip. It reports nothing
// without the right to list nodes.
func findSizes(amounts []fixedAmount, nodes known[corev1.ResourceList]) []Finding {
	switch {
	case apierrors.IsForbidden(nodes.err):
		return nil
	case nodes.err != nil:
		return []Finding{nodes.skip(checkPolicies, "list nodes")}
	}
	var large []string
	for _, a := range amounts {
		total := nodes.value[a.name]
		if a.amount.Cmp(total) > 0 {
			text := quantity.Human(string(a.name), &a.amount, &total)
			large = append(large, fmt.Sprintf("%s has %s %s, and all nodes %s", a.at, text[0], a.name, text[1]))
		}
	}
	if len(large) == 0 {
		return nil
	}
	return []Finding{checkPolicies.warning("More is offered than the cluster has: %s.", kube.First(large)).
		do("Correct the amounts, unless nodes are added when pods need them.")}
}

// allocatable adds up what the nodes can allocate, without those that stand for other clusters.
func (c *cluster) allocatable(ctx context.Context) known[corev1.ResourceList] {
	list := &corev1.NodeList{}
	err := c.api.List(ctx, list)
	total := corev1.ResourceList{}
	for i := range list.Items {
		if list.Items[i].Labels[liqo.NodeTypeLabel] == liqo.VirtualNodeType {
			continue
		}
		for _, name := range compared {
			q := total[name]
			q.Add(list.Items[i].Status.Allocatable[name])
			total[name] = q
		}
	}
	return knownOf(total, err)
}
