package orchestration

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/selection"
)

// Defaults for objects that were stored without them.
const (
	defaultStay, defaultGain    = 10, 20
	defaultWindow, defaultDrain = 24, 30
)

// kpis are the KPIs by name.
var kpis = map[v1alpha1.KPI]broker.KPI{
	v1alpha1.KPIUptime: broker.Uptime, v1alpha1.KPILatency: broker.Latency, v1alpha1.KPIPrice: broker.Price,
	v1alpha1.KPIRemaining: broker.Remaining, v1alpha1.KPIMeasured: broker.MeasuredLower,
}

// parser collects all errors, so that an admin sees them together.
type parser struct{ errs field.ErrorList }

// parse turns an Orchestration into a value of the core, or into an error that says what to write. The
// API server refuses most errors. It does not refuse a selector that cannot be parsed.
func parse(o *v1alpha1.Orchestration) (*broker.Orchestration, error) {
	p, spec, path := &parser{}, &o.Spec, field.NewPath("spec")
	out := &broker.Orchestration{
		Name: o.Name, Created: o.CreationTimestamp.Time, DryRun: spec.Mode == v1alpha1.ModeDryRun,
		Consumers: p.scope(spec.Consumers, path.Child("consumers")),
		Providers: p.scope(spec.Providers, path.Child("providers")),
		Count:     int(ptr.Deref(spec.Count, 0)),
		Stay: broker.Stay{
			For:         time.Duration(ptr.Deref(spec.Stay.Minutes, defaultStay)) * time.Minute,
			GainPercent: int64(ptr.Deref(spec.Stay.GainPercent, defaultGain)),
		},
		Window:   time.Duration(ptr.Deref(spec.WindowHours, defaultWindow)) * time.Hour,
		Drain:    time.Duration(ptr.Deref(spec.DrainMinutes, defaultDrain)) * time.Minute,
		Require:  p.requirements(spec.Require, path),
		Prefer:   preferences(spec.Prefer),
		Disabled: map[broker.Pair]struct{}{}, Enabled: map[broker.Pair]struct{}{},
		DisabledByDefault: spec.DefaultDisabled, ConsumersChoose: spec.ConsumersMay == v1alpha1.ConsumersMayChoose,
	}
	for _, d := range spec.Disabled {
		out.Disabled[broker.Pair{Provider: string(d.Provider), Consumer: string(d.Consumer)}] = struct{}{}
	}
	for _, e := range spec.Enabled {
		out.Enabled[broker.Pair{Provider: string(e.Provider), Consumer: string(e.Consumer)}] = struct{}{}
	}
	if err := p.errs.ToAggregate(); err != nil {
		return nil, err
	}
	return out, nil
}

// parseWish turns the spec of a ProviderChoice into a value of the core, or into an error.
func parseWish(spec *v1alpha1.ProviderChoiceSpec) (broker.Wish, error) {
	p := &parser{}
	out := broker.Wish{
		Require: p.requirements(spec.Require, field.NewPath("spec")), Prefer: preferences(spec.Prefer),
		Count: int(ptr.Deref(spec.Count, 0)),
	}
	if len(spec.Providers) > 0 {
		out.Providers = make(map[string]struct{}, len(spec.Providers))
	}
	for _, id := range spec.Providers {
		out.Providers[string(id)] = struct{}{}
	}
	return out, p.errs.ToAggregate()
}

func (p *parser) requirements(all []v1alpha1.Requirement, spec *field.Path) (out []broker.Requirement) {
	for i, r := range all {
		out = append(out, p.requirement(r, spec.Child("require").Index(i)))
	}
	return out
}

func preferences(all []v1alpha1.Preference) (out []broker.Preference) {
	for _, f := range all {
		m := measure(f.KPI, f.Resource, f.Name)
		if f.Better == v1alpha1.BetterHigher {
			m.KPI = broker.MeasuredHigher
		}
		out = append(out, broker.Preference{Measure: m, Weight: int64(max(1, f.Weight))})
	}
	return out
}

// measure returns a Measure, of which less is better if its KPI is Measured.
func measure(kpi v1alpha1.KPI, resource v1alpha1.ResourceName, name v1alpha1.MeasureName) broker.Measure {
	return broker.Measure{KPI: kpis[kpi], Of: cmp.Or(string(resource), string(name))}
}

func (p *parser) scope(c *v1alpha1.Clusters, path *field.Path) (scope broker.Scope) {
	if c == nil {
		return scope
	}
	if len(c.ClusterIDs) > 0 {
		scope.IDs = make(map[string]struct{}, len(c.ClusterIDs))
		for _, id := range c.ClusterIDs {
			scope.IDs[string(id)] = struct{}{}
		}
	}
	if c.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(c.Selector)
		if err != nil {
			p.errs = append(p.errs, field.Invalid(path.Child("selector"), field.OmitValueType{}, err.Error()))
			return scope
		}
		scope.Selector = selection.Of(selector)
	}
	return scope
}

func (p *parser) requirement(r v1alpha1.Requirement, path *field.Path) broker.Requirement {
	out := broker.Requirement{Measure: measure(r.KPI, r.Resource, r.Name)}
	if r.KPI == v1alpha1.KPIMeasured && r.Min != "" {
		out.KPI = broker.MeasuredHigher
	}
	text := string(r.Max)
	if out.KPI.MoreIsBetter() {
		text = string(r.Min)
	}
	_, ok := kpis[r.KPI]
	switch {
	case out.KPI == broker.Remaining:
		q, err := resource.ParseQuantity(text)
		out.Bound, ok = quantity.AmountOf(string(r.Resource), q, quantity.Up), err == nil
	case ok:
		out.Bound, ok = out.Parse(text)
	}
	if !ok {
		p.errs = append(p.errs, field.Invalid(path, text,
			fmt.Sprintf("write a bound that %s has, such as those in docs/explanation/broker.md", r.KPI)))
	}
	return out
}
