package broker

import (
	"cmp"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// Provider is a cluster with a virtual node here.
type Provider struct {
	ID string
	// Labels holds the labels of its virtual nodes.
	Labels map[string]string
	// Unusable is why no virtual node can be used now, empty if one can.
	Unusable string
	// Values holds the measured values. A measure that is missing is not measured.
	Values map[Measure]int64
	// Notes say where a value comes from or, without a value, why there is none.
	Notes map[Measure]string
}

// shown shows the value of a measure and the note about it.
func (p *Provider) shown(m Measure) string {
	v, measured := p.Values[m]
	switch note := p.Notes[m]; {
	case !measured && note == "":
		return "not measured"
	case !measured:
		return "not measured: " + note
	case note == "":
		return m.Text(v)
	default:
		return m.Text(v) + " " + note
	}
}

// Decimal returns the number of a measured value, empty if it is not measured.
func (p *Provider) Decimal(m Measure) string {
	if v, measured := p.Values[m]; measured {
		return m.Decimal(v)
	}
	return ""
}

// Scope selects clusters: those with one of the IDs, and those whose labels the selector matches. The
// zero value selects every cluster.
type Scope struct {
	IDs      map[string]struct{}
	Selector capacity.Selector
}

// Selects reports whether the scope selects a cluster.
func (s Scope) Selects(id string, labels map[string]string) bool {
	if len(s.IDs) == 0 && s.Selector == nil {
		return true
	}
	_, listed := s.IDs[id]
	return listed || s.Selector != nil && s.Selector.Matches(labels)
}

// Requirement is the least or the most that is good of a measure.
type Requirement struct {
	Measure
	Bound int64
}

// Preference is the weight of a measure. It is positive.
type Preference struct {
	Measure
	Weight int64
}

// Stay defines how long a choice is kept.
type Stay struct {
	For         time.Duration
	GainPercent int64
}

// Pair is a provider and a consumer; an empty consumer stands for all.
type Pair struct{ Provider, Consumer string }

// Wish is what a consumer asks of the choice for it. It narrows what the Orchestration allows, and never
// widens it. The zero value asks for nothing.
type Wish struct {
	// Providers holds the IDs of the providers to choose from, nil for all that the Orchestration selects.
	Providers map[string]struct{}
	// Require adds to what the Orchestration requires.
	Require []Requirement
	// Prefer replaces the preferences of the Orchestration, unless it is empty.
	Prefer []Preference
	// Count is the largest number of providers to choose; 0 is no limit.
	Count int
}

// Orchestration is a policy. The caller must not change it.
type Orchestration struct {
	Name    string
	Created time.Time
	// DryRun never decides.
	DryRun               bool
	Consumers, Providers Scope
	Require              []Requirement
	Prefer               []Preference
	// Count is the largest number of providers to choose; 0 is no limit.
	Count  int
	Stay   Stay
	Window time.Duration
	Drain  time.Duration
	// Disabled are never chosen. With DisabledByDefault, only those in Enabled are.
	Disabled, Enabled map[Pair]struct{}
	DisabledByDefault bool
	// ConsumersChoose is set if the wish of a consumer counts.
	ConsumersChoose bool
}

// disables reports whether an admin has disabled a provider, for the consumer or for all.
func (o *Orchestration) disables(provider, consumer string) bool {
	return has(o.Disabled, provider, consumer) || o.DisabledByDefault && !has(o.Enabled, provider, consumer)
}

// has reports whether a provider is in pairs, with the consumer or with all.
func has(pairs map[Pair]struct{}, provider, consumer string) bool {
	_, all := pairs[Pair{Provider: provider}]
	_, one := pairs[Pair{provider, consumer}]
	return all || one
}

// Consumer is a cluster whose pods are sent on.
type Consumer struct {
	ID     string
	Labels map[string]string
}

// Decider returns the Orchestration that decides for a consumer, nil if none does: the oldest that is
// in force and selects it, then the first by name. The age counts in seconds.
func Decider(all []*Orchestration, c Consumer) *Orchestration {
	var decides *Orchestration
	for _, o := range all {
		if !o.DryRun && o.Consumers.Selects(c.ID, c.Labels) && (decides == nil || o.before(decides)) {
			decides = o
		}
	}
	return decides
}

func (o *Orchestration) before(other *Orchestration) bool {
	return cmp.Or(cmp.Compare(o.Created.Unix(), other.Created.Unix()), cmp.Compare(o.Name, other.Name)) < 0
}

// Of returns the providers that the Orchestration selects, sorted by ID, at most this many, and the
// number of all.
func (o *Orchestration) Of(providers []Provider, most int) (selected []Provider, all int) {
	for _, p := range providers {
		if o.Providers.Selects(p.ID, p.Labels) {
			selected = append(selected, p)
		}
	}
	slices.SortFunc(selected, func(a, b Provider) int { return cmp.Compare(a.ID, b.ID) })
	return selected[:min(len(selected), most)], len(selected)
}
