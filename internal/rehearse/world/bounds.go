package world

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/policy"
)

// checkBounds refuses a change that could take much longer to rehearse than others, or of which the
// answer could be much longer.
func checkBounds(c *rest.Change) error {
	if err := atMost(len(c.Apply), rest.MaxApplied, "policies"); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if err := atMost(len(c.AddNodes), rest.MaxAddedKinds, "kinds of nodes"); err != nil {
		return fmt.Errorf("addNodes: %w", err)
	}
	s := sizes{resources: map[string]struct{}{}, filters: map[string]struct{}{}}
	for i := range c.Apply {
		policy.Visit(&c.Apply[i].Spec, s.add)
	}
	for i := range c.AddNodes {
		if err := s.addNodes(&c.AddNodes[i]); err != nil {
			return fmt.Errorf("addNodes[%d]: %w", i, err)
		}
	}
	return cmp.Or(
		atMost(s.overrides, rest.MaxOverrides, "overrides in all policies"),
		atMost(s.clusterIDs, rest.MaxNamedConsumers, "cluster IDs in all policies"),
		atMost(s.terms, rest.MaxSelectorTerms,
			"labels, expressions, values and tolerations in the selectors of all policies"),
		atMost(len(s.filters), rest.MaxFilters, "different filters"),
		atMost(len(s.resources), rest.MaxChangeResources, "different resources"),
		atMost(s.nodes, rest.MaxAddedNodes, "added nodes"))
}

func atMost(n, most int, of string) error {
	if n > most {
		return fmt.Errorf("there are %d %s: write at most %d", n, of, most)
	}
	return nil
}

// sizes are sums over all of a change.
type sizes struct {
	overrides, clusterIDs, terms, nodes int
	resources, filters                  map[string]struct{}
}

// add counts a value of a policy's spec.
func (s *sizes) add(at any, text string) (into bool) {
	switch at := at.(type) {
	case *v1alpha1.Override:
		s.overrides++
		return s.overrides <= rest.MaxOverrides // It is refused for their number.
	case *v1alpha1.ClusterID:
		s.clusterIDs++
	case *metav1.LabelSelector:
		s.terms += len(at.MatchLabels) + len(at.MatchExpressions)
	case *metav1.LabelSelectorRequirement:
		s.terms += len(at.Values)
	case *corev1.Toleration:
		s.terms++
		return false
	case *v1alpha1.ResourceName:
		s.resources[string(*at)] = struct{}{}
	case *corev1.ResourceName:
		s.resources[string(*at)] = struct{}{}
	case *v1alpha1.Catalog:
		return false // It decides nothing.
	case *string:
		if filter := policy.FilterOf(at, text); filter != "" {
			s.filters[filter] = struct{}{}
		}
	}
	return true
}

func (s *sizes) addNodes(n *rest.AddedNodes) error {
	if n.Count < 1 || n.Count > rest.MaxAddedNodes {
		return fmt.Errorf("count is %d: write 1 to %d", n.Count, rest.MaxAddedNodes)
	}
	s.nodes += n.Count
	for name := range n.Allocatable {
		s.resources[string(name)] = struct{}{}
	}
	return nil
}
