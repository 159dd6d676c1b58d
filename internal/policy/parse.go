package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/selection"
)

const (
	// liqoClass is answered by Liqo itself.
	liqoClass = "default"

	defaultThresholdPercent = 5
	defaultPercent          = 100
	maxPercent              = 1000
	maxShare                = 100
)

// Parse checks every value of a ResourcePolicy. Most rules are in the CRD too. They are applied
// again because an object that was stored under older rules is not checked when it is read. The
// errors name each wrong field and say what to write instead.
//
// Names of resources that Kubernetes does not have are errors too, except in a spec that is already
// in force: those are returned as misspelt.
func Parse(p *v1alpha1.ResourcePolicy) (out *offer.Policy, misspelt, errs field.ErrorList) {
	s, path := &p.Spec, field.NewPath("spec")
	parse := parser{}
	out = &offer.Policy{
		Name:      p.Name,
		Version:   fmt.Sprintf("%s/%d", p.UID, p.Generation),
		Created:   p.CreationTimestamp.Unix(),
		Class:     parse.class(s.Class, path.Child("class")),
		Priority:  s.Priority,
		DryRun:    modes.parse(&parse, s.Mode, path.Child("mode")),
		Paused:    s.Mode == v1alpha1.ModePaused,
		Stopped:   s.Mode == v1alpha1.ModeStopped,
		Max:       parse.amounts(s.Offer.Max, path.Child("offer", "max")),
		MaxShares: parse.shares(s.Offer.MaxPercent, s.Offer.MaxPercentages, path.Child("offer")),
		Resources: parse.resources(s.Offer.Resources, path.Child("offer", "resources")),
		ThresholdPercent: number(&parse, s.UpdateThresholdPercent, 0, 100, defaultThresholdPercent,
			path.Child("updateThresholdPercent")),
		Reclaim: reclaims.parse(&parse, s.Reclaim, path.Child("reclaim")),
		Slices:  parse.slices(s, path.Child("slices")),
		Catalog: parse.catalog(s, path.Child("catalog")),
	}
	out.PausedUntil = endOf(s.PausedUntil)
	if s.PausedUntil != nil {
		if !out.Paused {
			parse.invalid(path.Child("pausedUntil"), s.PausedUntil.UTC().Format(time.RFC3339),
				"set mode to Paused, or leave pausedUntil out")
		}
	}
	out.PausedConsumers = parse.pausedConsumers(s.PausedConsumers, path.Child("pausedConsumers"))
	if s.Consumers != nil {
		out.Consumers = parse.scope(*s.Consumers, path.Child("consumers"))
	}
	parse.source(out, s.Offer, path.Child("offer"))
	if out.Nodes != nil {
		out.Nodes.Selection.Single = out.Slices.FitNode
	}
	for i, o := range s.Overrides {
		out.Overrides = append(out.Overrides, parse.override(o, out.Nodes != nil, path.Child("overrides").Index(i)))
	}
	if !acceptedBefore(p) {
		parse.errs = append(parse.errs, parse.misspelt...)
		parse.misspelt = nil
	}
	if len(parse.errs) > 0 {
		return nil, nil, parse.errs
	}
	return out, parse.misspelt, nil
}

// parser collects all errors, so that an admin sees them together.
type parser struct {
	errs field.ErrorList
	// misspelt are the names of resources that Kubernetes does not have.
	misspelt field.ErrorList
}

func (p *parser) invalid(path *field.Path, value any, write string) {
	p.errs = append(p.errs, field.Invalid(path, value, write))
}

func (p *parser) class(class string, path *field.Path) string {
	switch {
	case class == "":
	case class == liqoClass:
		p.invalid(path, class, "Liqo itself answers this class; write another name, or leave class out for the unnamed pool")
	case len(validation.IsDNS1123Label(class)) > 0:
		p.invalid(path, class, "write lower-case letters, digits and '-', at most 63, such as gold")
	}
	return class
}

// words are the words of an enumeration. The default has the zero value.
type words[W ~string, V any] struct {
	values map[W]V
	write  string
}

var (
	modes = words[v1alpha1.Mode, bool]{
		map[v1alpha1.Mode]bool{
			v1alpha1.ModeActive: false, v1alpha1.ModePaused: false, v1alpha1.ModeStopped: false, v1alpha1.ModeDryRun: true,
		},
		"write Active, Paused, Stopped or DryRun",
	}
	reclaims = words[v1alpha1.Reclaim, offer.Reclaim]{Reclaims, "write Unused, Evict or Retain"}
	counts   = words[v1alpha1.NodeCount, offer.Count]{map[v1alpha1.NodeCount]offer.Count{
		v1alpha1.NodeCountFree: offer.Free, v1alpha1.NodeCountAllocatable: offer.Allocatable,
	}, "write Free or Allocatable"}
	excesses = words[v1alpha1.OnExcess, bool]{
		map[v1alpha1.OnExcess]bool{v1alpha1.OnExcessCap: false, v1alpha1.OnExcessDeny: true}, "write Cap or Deny",
	}
	fits = words[v1alpha1.SliceFit, bool]{
		map[v1alpha1.SliceFit]bool{v1alpha1.FitPool: false, v1alpha1.FitNode: true}, "write Pool or Node",
	}
	forms = words[v1alpha1.ExternalForm, bool]{
		map[v1alpha1.ExternalForm]bool{v1alpha1.ExternalFormPools: false, v1alpha1.ExternalFormFlat: true},
		"write Pools or Flat",
	}
	failures = words[v1alpha1.OnFailure, bool]{
		map[v1alpha1.OnFailure]bool{v1alpha1.OnFailureKeep: false, v1alpha1.OnFailureZero: true}, "write Keep or Zero",
	}
)

// Reclaims maps the words of the API. The zero value, which unknown words have, is Unused.
var Reclaims = map[v1alpha1.Reclaim]offer.Reclaim{
	v1alpha1.ReclaimUnused: offer.Unused, v1alpha1.ReclaimEvict: offer.Evict, v1alpha1.ReclaimRetain: offer.Retain,
}

func (of words[W, V]) parse(p *parser, word W, path *field.Path) V {
	value, known := of.values[word]
	if word != "" && !known {
		p.invalid(path, word, of.write)
	}
	return value
}

// number parses a number that may be left out.
func number[V ~int32](p *parser, v *V, least, most, otherwise int32, path *field.Path) int64 {
	if v == nil {
		return int64(otherwise)
	}
	if int32(*v) < least || int32(*v) > most {
		p.invalid(path, int32(*v), fmt.Sprintf("write %d to %d", least, most))
	}
	return int64(*v)
}

func (p *parser) scope(c v1alpha1.Consumers, path *field.Path) offer.Scope {
	var scope offer.Scope
	for _, id := range p.clusterIDs(c.ClusterIDs, c.Selector, "consumer", path) {
		if scope.IDs == nil {
			scope.IDs = make(map[string]struct{}, len(c.ClusterIDs))
		}
		scope.IDs[id] = struct{}{}
	}
	scope.Selector = p.selector(c.Selector, path.Child("selector"))
	scope.Filters = filters(p, c.Filter, filter.Consumers, path.Child("filter"))
	return scope
}

// clusterIDs parses the IDs of what is selected, beside a selector.
func (p *parser) clusterIDs(
	ids []v1alpha1.ClusterID, s *metav1.LabelSelector, of string, path *field.Path,
) (out []string) {
	if len(ids) > 0 && s != nil {
		p.errs = append(p.errs, field.Forbidden(path.Child("selector"), "write clusterIDs or selector, not both"))
	}
	for i, id := range ids {
		if id == "" {
			p.errs = append(p.errs, field.Required(path.Child("clusterIDs").Index(i),
				"write the ID that Liqo knows the "+of+" by"))
		}
		out = append(out, string(id))
	}
	return out
}

// pausedConsumers returns until when each consumer is paused, in Unix seconds, 0 for no end.
func (p *parser) pausedConsumers(all []v1alpha1.PausedConsumer, path *field.Path) map[string]int64 {
	var out map[string]int64
	for i, c := range all {
		switch _, twice := out[string(c.ClusterID)]; {
		case c.ClusterID == "":
			p.errs = append(p.errs, field.Required(path.Index(i).Child("clusterID"),
				"write the ID that Liqo knows the consumer by"))
			continue
		case twice:
			p.errs = append(p.errs, field.Duplicate(path.Index(i).Child("clusterID"), c.ClusterID))
		case out == nil:
			out = make(map[string]int64, len(all))
		}
		out[string(c.ClusterID)] = endOf(c.Until)
	}
	return out
}

// endOf returns the end of a pause in Unix seconds, 0 for none.
func endOf(until *metav1.Time) int64 {
	if until == nil {
		return 0
	}
	return max(1, until.Unix()) // That of 1970 is over, too.
}

// filters parses an expression that may be left out.
func filters[F any](p *parser, expression string, compile func(string) (F, error), path *field.Path) []F {
	if expression == "" {
		return nil
	}
	f, err := compile(expression)
	if err != nil {
		p.invalid(path, kube.Shorten(expression, kube.MaxShown), err.Error())
		return nil
	}
	return []F{f}
}

// oneSource is the remedy for an offer with no source, or with several.
const oneSource = "write exactly one of fixed, nodes, peers and external"

// source parses where the amounts come from, into the policy.
func (p *parser) source(out *offer.Policy, o v1alpha1.PolicyOffer, path *field.Path) {
	sources := 0
	for _, set := range []bool{len(o.Fixed) > 0, o.Nodes != nil, o.Peers != nil, o.External != nil} {
		if set {
			sources++
		}
	}
	switch {
	case sources > 1:
		p.errs = append(p.errs, field.Forbidden(path, oneSource))
		return
	case sources == 0:
		p.errs = append(p.errs, field.Required(path, oneSource))
		return
	case o.Nodes != nil:
		out.Nodes = p.share(o, path)
		p.nodes(out.Nodes, o.Nodes, path.Child("nodes"))
		return
	case o.Peers != nil:
		out.Nodes = p.share(o, path)
		p.peers(out.Nodes, o.Peers, path.Child("peers"))
		return
	}
	p.withoutPool(path, map[string]bool{
		"reserve": len(o.Reserve) > 0, "percent": o.Percent != nil, "percentages": len(o.Percentages) > 0,
		"maxPercent": o.MaxPercent != nil, "maxPercentages": len(o.MaxPercentages) > 0,
	})
	if o.External != nil {
		out.External = p.external(o.External, out.Class, path.Child("external"))
	} else {
		out.Fixed = p.amounts(o.Fixed, path.Child("fixed"))
	}
}

// withoutPool refuses fields of an offer that are set and need a pool.
func (p *parser) withoutPool(path *field.Path, set map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] {
			p.errs = append(p.errs, field.Forbidden(path.Child(name), "write it with nodes or peers only, or leave it out"))
		}
	}
}

// share parses which share of the nodes of a pool is offered.
func (p *parser) share(o v1alpha1.PolicyOffer, path *field.Path) *offer.Nodes {
	return &offer.Nodes{
		Reserve:     p.amounts(o.Reserve, path.Child("reserve")),
		Percent:     number(p, o.Percent, 1, maxPercent, defaultPercent, path.Child("percent")),
		Percentages: percentages(p, o.Percentages, maxPercent, path.Child("percentages")),
	}
}

// shares parses the most of a pool that one consumer is offered.
func (p *parser) shares(each *v1alpha1.Share, byName v1alpha1.Shares, path *field.Path) offer.Shares {
	return offer.Shares{
		Percentages: percentages(p, byName, maxShare, path.Child("maxPercentages")),
		Percent:     number(p, each, 1, maxShare, 0, path.Child("maxPercent")),
	}
}

// nodes parses which nodes of this cluster's own are in a pool.
func (p *parser) nodes(out *offer.Nodes, n *v1alpha1.Nodes, path *field.Path) {
	out.Count = counts.parse(p, n.Count, path.Child("count"))
	out.Selection = capacity.Selection{
		Selector: p.selector(n.Selector, path.Child("selector")), Tolerations: selection.Tolerations(n.Tolerations),
	}
	out.Selection.Filters = filters(p, n.Filter, filter.Nodes, path.Child("filter"))
	for i, t := range n.Tolerations {
		p.toleration(t, path.Child("tolerations").Index(i))
	}
}

// selector parses a selector, nil for every object.
func (p *parser) selector(s *metav1.LabelSelector, path *field.Path) capacity.Selector {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		p.invalid(path, metav1.FormatLabelSelector(s), err.Error())
	}
	return selection.Of(selector)
}

func (p *parser) toleration(t corev1.Toleration, path *field.Path) {
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		if t.Key == "" {
			p.invalid(path.Child("operator"), t.Operator, "write Exists, or name a key")
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			p.invalid(path.Child("value"), t.Value, "leave it out where operator is Exists")
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
			p.invalid(path.Child("value"), t.Value, "write a whole number where operator is Lt or Gt")
		}
	default:
		p.invalid(path.Child("operator"), t.Operator, "write Equal, Exists, Lt or Gt")
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
	default:
		p.invalid(path.Child("effect"), t.Effect, "write NoSchedule or NoExecute, or leave it out for both")
	}
}

// percentages returns nil for none.
func percentages[V ~int32](
	p *parser, written map[corev1.ResourceName]V, most int32, path *field.Path,
) map[string]int64 {
	if len(written) == 0 {
		return nil
	}
	out := make(map[string]int64, len(written))
	for _, name := range slices.Sorted(maps.Keys(written)) {
		percent, at := written[name], path.Key(string(name))
		p.resource(string(name), at)
		out[string(name)] = number(p, &percent, 1, most, 0, at)
	}
	return out
}

// override parses an override of a policy that has a pool, or none.
func (p *parser) override(o v1alpha1.Override, pool bool, path *field.Path) offer.Override {
	share := map[string]bool{"maxPercent": o.Offer.MaxPercent != nil, "maxPercentages": len(o.Offer.MaxPercentages) > 0}
	switch {
	case len(o.Offer.Fixed) == 0 && len(o.Offer.Max) == 0 && !share["maxPercent"] && !share["maxPercentages"]:
		p.errs = append(p.errs, field.Required(path.Child("offer"), "write fixed, max, maxPercent or maxPercentages"))
	case !pool:
		p.withoutPool(path.Child("offer"), share)
	}
	return offer.Override{
		MaxShares: p.shares(o.Offer.MaxPercent, o.Offer.MaxPercentages, path.Child("offer")),
		Consumers: p.scope(o.Consumers, path.Child("consumers")),
		Fixed:     p.amounts(o.Offer.Fixed, path.Child("offer", "fixed")),
		Max:       p.amounts(o.Offer.Max, path.Child("offer", "max")),
	}
}

func (p *parser) resources(names []v1alpha1.ResourceName, path *field.Path) []string {
	var out []string
	for i, name := range names {
		p.resource(string(name), path.Index(i))
		out = append(out, string(name))
	}
	return out
}

func (p *parser) resource(name string, path *field.Path) {
	if len(validation.IsQualifiedName(name)) > 0 {
		p.invalid(path, name, "write the name of a resource, such as cpu or nvidia.com/gpu")
	} else if problem := v1alpha1.NameProblem(corev1.ResourceName(name)); problem != "" {
		p.misspelt = append(p.misspelt, field.Invalid(path, name, problem))
	}
}

// amounts converts quantities to the units of the ledger, nil for none, by the API server's own
// rules: a fraction of a unit is rounded up.
func (p *parser) amounts(q v1alpha1.Quantities, path *field.Path) capacity.Amounts {
	if len(q) == 0 {
		return nil
	}
	out := make(capacity.Amounts, len(q))
	for _, key := range slices.Sorted(maps.Keys(q)) {
		amount, name, at := q[key], string(key), path.Key(string(key))
		p.resource(name, at)
		if problem := amount.Problem(key); problem != "" {
			p.invalid(at, kube.Shorten(amount.Text(), kube.MaxShown), problem)
			continue
		}
		out[name] = quantity.AmountOf(name, amount.Quantity, quantity.Up)
	}
	return out
}
