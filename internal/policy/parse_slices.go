package policy

import (
	"cmp"
	"maps"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/filter"
	"proffer.dev/proffer/internal/offer"
)

// slices returns how the ResourceSlices of a policy are answered, also for a policy without
// spec.slices.
func (p *parser) slices(spec *v1alpha1.ResourcePolicySpec, path *field.Path) offer.Slices {
	var out offer.Slices
	if nodes := spec.Offer.Nodes; nodes != nil && nodes.Selector != nil {
		out.NodeSelector = maps.Clone(nodes.Selector.MatchLabels)
	} else if peers := spec.Offer.Peers; peers != nil {
		out.NodeSelector = selectorOfPeers(peers)
	}
	s := spec.Slices
	if spec.Class != "" && (s == nil || s.Defaults == nil) {
		out.Defaults, out.LiqoDefaults = offer.LiqoDefaults(), true
	}
	if s == nil {
		return out
	}
	if spec.Class == "" {
		p.errs = append(p.errs, field.Forbidden(path,
			"slices answers the ResourceSlices of a class: set class, or leave slices out"))
	}
	out.DenyExcess = excesses.parse(p, s.OnExcess, path.Child("onExcess"))
	out.Filters = filters(p, s.Filter, filter.Slices, path.Child("filter"))
	out.FilterMessage = p.text(string(s.FilterMessage), titleRule, path.Child("filterMessage"), "write one line of text")
	if s.Defaults != nil {
		out.Defaults = p.amounts(s.Defaults, path.Child("defaults"))
	}
	out.NodeLabels = p.labels(s.NodeLabels, path.Child("nodeLabels"))
	if s.NodeSelector != nil {
		out.NodeSelector = p.labels(s.NodeSelector, path.Child("nodeSelector"))
	}
	out.EnforcePlacement = s.EnforcePlacement
	p.fit(spec, &out, path)
	if s.EnforcePlacement && !out.FitNode && len(out.NodeSelector) == 0 {
		p.errs = append(p.errs, field.Forbidden(path.Child("enforcePlacement"),
			"enforcePlacement needs labels of nodes: set slices.nodeSelector, or matchLabels in offer.nodes.selector"))
	}
	out.StorageClasses = p.classNames(s.StorageClasses, path.Child("storageClasses"))
	out.IngressClasses = p.classNames(s.IngressClasses, path.Child("ingressClasses"))
	out.LoadBalancerClasses = p.classNames(s.LoadBalancerClasses, path.Child("loadBalancerClasses"))
	return out
}

// fit parses what the ResourceSlices are granted from. A node selector with the label that names the seat could require
// another node.
func (p *parser) fit(spec *v1alpha1.ResourcePolicySpec, out *offer.Slices, path *field.Path) {
	s := spec.Slices
	forbid := func(of, message string) {
		p.errs = append(p.errs, field.Forbidden(path.Child(of), message))
	}
	if out.FitNode = fits.parse(p, s.Fit, path.Child("fit")); !out.FitNode {
		const misplaced = "nodeKey and requestKeys are for fit: Node: set fit: Node, or leave them out"
		if s.NodeKey != "" {
			forbid("nodeKey", misplaced)
		}
		if len(s.RequestKeys) > 0 {
			forbid("requestKeys", misplaced)
		}
		return
	}
	if nodes := spec.Offer.Nodes; nodes == nil || nodes.Count != "" && nodes.Count != v1alpha1.NodeCountFree {
		forbid("fit", "fit: Node grants from nodes of this cluster: set offer.nodes with count Free, or fit: Pool")
	}
	if !s.EnforcePlacement {
		forbid("fit", "fit: Node needs pods that stay on the node of the answer: set enforcePlacement: true, or fit: Pool")
	}
	out.NodeKey = p.labelKey(cmp.Or(s.NodeKey, v1alpha1.DefaultNodeKey), path.Child("nodeKey"))
	for i, key := range s.RequestKeys {
		out.RequestKeys = append(out.RequestKeys, p.labelKey(key, path.Child("requestKeys").Index(i)))
	}
	if _, required := s.NodeSelector[out.NodeKey]; required {
		forbid("nodeSelector", "with fit: Node, the answer names the node by nodeKey: remove that label from nodeSelector")
	}
}

func (p *parser) labelKey(key v1alpha1.LabelKey, path *field.Path) string {
	if len(validation.IsQualifiedName(string(key))) > 0 {
		p.errs = append(p.errs, field.Invalid(path, key,
			"write the key of a label, such as zone or topology.kubernetes.io/zone"))
	}
	return string(key)
}

func (p *parser) labels(labels v1alpha1.Labels, path *field.Path) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		out[key] = string(value)
	}
	p.errs = append(p.errs, metav1validation.ValidateLabels(out, path)...)
	return out
}

// classNames returns the names, each once. Nil, which leaves the choice to Liqo's way, stays
// distinct from an empty list.
func (p *parser) classNames(names []v1alpha1.ClassName, path *field.Path) []string {
	if names == nil {
		return nil
	}
	out := make([]string, 0, len(names))
	for i, name := range names {
		if name == "" {
			p.errs = append(p.errs, field.Required(path.Index(i), "write the name of a class"))
		}
		if !slices.Contains(out, string(name)) {
			out = append(out, string(name))
		}
	}
	return out
}
