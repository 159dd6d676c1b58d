package world

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// maxClassNames bounds each list of class names in spec.slices, maxLabels each map of labels there, and
// maxMessage the filterMessage in bytes, as the CRD does.
const maxClassNames, maxLabels, maxMessage = 64, 64, 1024

// checkBounds refuses a change that could take much longer to rehearse than others, or of which the
// answer could be much longer. The API server has not checked the policies.
func checkBounds(c *rest.Change) error {
	if err := atMost(len(c.Apply), rest.MaxApplied, "policies"); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if err := atMost(len(c.AddNodes), rest.MaxAddedKinds, "kinds of nodes"); err != nil {
		return fmt.Errorf("addNodes: %w", err)
	}
	s := sizes{resources: map[string]struct{}{}, filters: map[string]struct{}{}}
	for i := range c.Apply {
		if err := s.addPolicy(&c.Apply[i].Spec); err != nil {
			return fmt.Errorf("apply[%d]: %w", i, err)
		}
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

func (s *sizes) addPolicy(spec *v1alpha1.ResourcePolicySpec) error {
	s.overrides += len(spec.Overrides)
	scopes := []*v1alpha1.Consumers{spec.Consumers}
	amounts := []v1alpha1.Quantities{spec.Offer.Fixed, spec.Offer.Reserve, spec.Offer.Max}
	for i := range spec.Overrides {
		o := &spec.Overrides[i]
		scopes, amounts = append(scopes, &o.Consumers), append(amounts, o.Offer.Fixed, o.Offer.Max)
	}
	if nodes := spec.Offer.Nodes; nodes != nil {
		s.addSelector(nodes.Selector)
		s.addFilter(nodes.Filter)
		s.terms += len(nodes.Tolerations)
	}
	if peers := spec.Offer.Peers; peers != nil {
		s.addSelector(peers.Selector)
		s.terms += len(peers.ClusterIDs)
	}
	if of := spec.Slices; of != nil {
		amounts = append(amounts, of.Defaults)
		s.addFilter(of.Filter)
		if err := cmp.Or(
			atMost(len(of.NodeLabels)+len(of.NodeSelector), 2*maxLabels, "labels in slices"),
			atMost(len(of.FilterMessage), maxMessage, "bytes in slices.filterMessage"),
		); err != nil {
			return err
		}
		for _, names := range [][]v1alpha1.ClassName{of.StorageClasses, of.IngressClasses, of.LoadBalancerClasses} {
			if err := atMost(len(names), maxClassNames, "names of classes in a list"); err != nil {
				return err
			}
		}
	}
	for _, scope := range scopes {
		if err := s.addScope(scope); err != nil {
			return err
		}
	}
	if err := atMost(len(spec.Offer.Resources), rest.MaxChangeResources, "names in offer.resources"); err != nil {
		return err
	}
	for _, name := range spec.Offer.Resources {
		s.resources[string(name)] = struct{}{}
	}
	for name := range spec.Offer.Percentages {
		s.resources[string(name)] = struct{}{}
	}
	for _, list := range amounts {
		for name := range list {
			s.resources[string(name)] = struct{}{}
		}
	}
	return nil
}

func (s *sizes) addScope(of *v1alpha1.Consumers) error {
	if of == nil {
		return nil
	}
	s.addSelector(of.Selector)
	s.addFilter(of.Filter)
	s.clusterIDs += len(of.ClusterIDs)
	for _, id := range of.ClusterIDs {
		if len(id) > validation.DNS1123LabelMaxLength {
			return fmt.Errorf("a cluster ID has %d characters: write at most %d", len(id), validation.DNS1123LabelMaxLength)
		}
	}
	return nil
}

func (s *sizes) addSelector(of *metav1.LabelSelector) {
	if of == nil {
		return
	}
	s.terms += len(of.MatchLabels) + len(of.MatchExpressions)
	for i := range of.MatchExpressions {
		s.terms += len(of.MatchExpressions[i].Values)
	}
}

func (s *sizes) addFilter(of string) {
	if of != "" {
		s.filters[of] = struct{}{}
	}
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
