package offer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// Count selects how a pool of nodes is measured.
type Count int

const (
	// Free counts the allocatable amounts less the requests of this cluster's own pods.
	Free Count = iota
	// Allocatable counts the allocatable amounts.
	Allocatable
)

// Reclaim selects what happens when an offer falls.
type Reclaim int

const (
	// Unused takes back only what the consumer's own pods do not request.
	Unused Reclaim = iota
	// Evict takes back at once, even to 0.
	Evict
	// Retain never lowers a grant, and never takes back what the consumer's pods request.
	Retain
)

// Policy is a valid ResourcePolicy. An unset field of the ResourcePolicy is nil or empty here.
type Policy struct {
	Name string
	// Version identifies the edit of the policy: its UID and generation.
	Version string
	// Created is the creation time in Unix seconds: among policies of one priority the oldest decides.
	Created  int64
	Class    string
	Priority int32
	DryRun   bool
	// Paused keeps what consumers have as it is, until PausedUntil in Unix seconds, 0 for no end.
	Paused      bool
	PausedUntil int64
	// PausedConsumers are paused as Paused pauses every consumer, each until a time in Unix seconds, 0 for no end.
	PausedConsumers map[string]int64
	// Stopped offers nothing, and what consumers have is taken back by Reclaim. Other policies do not take over.
	Stopped bool
	// Consumers selects the consumers that the policy is for.
	Consumers Scope
	// Fixed holds the amounts of a policy of fixed amounts. Exactly one of Fixed, Nodes and External is
	// set.
	Fixed    capacity.Amounts
	Nodes    *Nodes
	External *External
	// Max is the ceiling for one consumer.
	Max capacity.Amounts
	// MaxShares are the most of the pool that one consumer is offered. They limit what Nodes offer.
	MaxShares Shares
	// Resources limits the offer to these names; nil does not limit it.
	Resources []string
	// Overrides replace parts of the offer for some consumers; the first that matches wins.
	Overrides []Override
	// ThresholdPercent, 0 to 100: a change of capacity is published once a resource moves by more. See
	// Threshold.
	ThresholdPercent int64
	Reclaim          Reclaim
	// Slices configures the answers to ResourceSlices of the class.
	Slices Slices
	// Catalog describes the class to consumers.
	Catalog Catalog
	// Known holds names that the policy once offered. A name that is no longer offered is offered as
	// an explicit 0.
	Known []string
}

// Threshold returns the percentage by which an amount of a resource may move without being published:
// 0 for devices, since one that is gone can make a pod wait for ever.
func (p *Policy) Threshold(resource string) int64 {
	if capacity.InDevices(resource) {
		return 0
	}
	return p.ThresholdPercent
}

// pause says for whom a policy is paused at a time.
type pause struct {
	// everybody is set if the policy is paused, consumers are those that are paused by themselves.
	everybody bool
	consumers map[string]struct{}
	// left is how long none of it ends, 0 for ever.
	left time.Duration
}

// of reports whether the policy is paused for a consumer, empty for one that is not known.
func (p pause) of(consumer string) bool {
	_, paused := p.consumers[consumer]
	return p.everybody || paused
}

// pauseAt returns the pause at a time.
func (p *Policy) pauseAt(now time.Time) pause {
	var at pause
	lasts := func(until int64) bool {
		left := time.Unix(until, 0).Sub(now)
		if until != 0 && left > 0 && (at.left == 0 || left < at.left) {
			at.left = left
		}
		return until == 0 || left > 0
	}
	at.everybody = p.Paused && lasts(p.PausedUntil)
	for id, until := range p.PausedConsumers {
		if lasts(until) {
			if at.consumers == nil {
				at.consumers = map[string]struct{}{}
			}
			at.consumers[id] = struct{}{}
		}
	}
	return at
}

// Admits reports whether the policy may offer a resource. What nodes list and no consumer asks for, it offers only
// if it names it.
func (p *Policy) Admits(resource string) bool {
	if p.Resources != nil {
		return slices.Contains(p.Resources, resource)
	}
	return p.Nodes == nil || capacity.Shareable(resource) || p.names(resource)
}

// names reports whether an amount or a limit of the offer or of an override, or a default of slices, names a resource.
func (p *Policy) names(resource string) bool {
	in := func(named map[string]int64) bool {
		_, has := named[resource]
		return has
	}
	return in(p.Nodes.Percentages) || in(p.Max) || in(p.MaxShares.Percentages) || in(p.Slices.Defaults) ||
		slices.ContainsFunc(p.Overrides, func(o Override) bool {
			return in(o.Fixed) || in(o.Max) || in(o.MaxShares.Percentages)
		})
}

// Shares are parts of a pool in percent.
type Shares struct {
	// Percent is for every resource that Percentages does not have, 1 to 100, or 0 for none.
	Percent     int64
	Percentages map[string]int64
}

func (s Shares) of(resource string) int64 {
	if percent, ok := s.Percentages[resource]; ok {
		return percent
	}
	return s.Percent
}

// Slices configures the answers to ResourceSlices. Except for the amounts and the filters, the
// arithmetic does not use it.
type Slices struct {
	// DenyExcess grants a request in full or not at all, instead of capping it.
	DenyExcess bool
	// Filters are asked about each request. A request that any of them refuses is not granted.
	// FilterMessage is then reported to the consumer, empty for a sentence that names the policy.
	Filters       []SliceFilter
	FilterMessage string
	// Defaults replace what a request leaves out, up to what the policy offers.
	Defaults capacity.Amounts
	// LiqoDefaults is set if Defaults come from Liqo, because the policy names none.
	LiqoDefaults bool
	// NodeLabels and NodeSelector are for the consumer's virtual node.
	NodeLabels, NodeSelector map[string]string
	// EnforcePlacement requires NodeSelector, which is then not empty, of the consumer's pods.
	EnforcePlacement bool
	// FitNode grants each slice from one node, its seat. NodeKey is the label by which answers name the node, and
	// RequestKeys are the labels by which a request may narrow the nodes. Both are empty without FitNode.
	FitNode     bool
	NodeKey     string
	RequestKeys []string
	// StorageClasses, IngressClasses and LoadBalancerClasses list the classes that the consumer may
	// use, its default first. Nil means unset; empty means none.
	StorageClasses, IngressClasses, LoadBalancerClasses []string
}

// LiqoDefaults returns what Liqo grants of a resource that a request in its own class omits. The amounts
// are offloading.defaultNodeResources in deployments/liqo/values.yaml of Liqo v1.2.0, which its class
// controller merges into the request, key by key, in
// pkg/liqo-controller-manager/authentication/remoteresourceslice-controller.
func LiqoDefaults() capacity.Amounts {
	return capacity.Amounts{
		capacity.CPU: 4000, capacity.Memory: 8 << 30, capacity.Pods: 110, "ephemeral-storage": 20 << 30,
	}
}

// Catalog describes a class to the consumers that may ask for it. The arithmetic does not use it.
type Catalog struct {
	// Hidden leaves the class out of the catalog.
	Hidden bool
	// ShowProviders lists the providers that stand behind the class. Only with a selection of peers.
	ShowProviders bool
	// Title and URL are for people, Labels for programs.
	Title, URL string
	Labels     map[string]string
	// Prices are decimal numbers by resource, for one core, GiB or unit and for a Period: Hour or
	// Month. Currency and Period are empty without Prices.
	Prices           map[string]string
	Currency, Period string
}

// Nodes is the source of a policy that offers a share of some nodes.
type Nodes struct {
	Selection capacity.Selection
	Count     Count
	// Reserve is kept for the provider.
	Reserve capacity.Amounts
	// Percent is the share of the pool, 1 to 1000.
	Percent int64
	// Percentages replace Percent, by resource name.
	Percentages map[string]int64
}

// External is the source of a policy that offers what another program answers: an external resource
// monitor of Liqo v0.x.
type External struct {
	capacity.Monitor
	// Zero offers 0 of what the monitor answered last while it is unavailable, instead of the amounts.
	Zero bool
}

// amountsIn returns the amounts that a policy makes of an answer.
func (e *External) amountsIn(a capacity.Answer) capacity.Amounts {
	if !e.Zero || !a.Stale {
		return a.Amounts
	}
	zeros := make(capacity.Amounts, len(a.Amounts))
	for name := range a.Amounts {
		zeros[name] = 0
	}
	return zeros
}

// Override replaces, resource by resource, what a policy offers to some consumers.
type Override struct {
	Consumers Scope
	Fixed     capacity.Amounts
	Max       capacity.Amounts
	MaxShares Shares
}

// overrideFor returns the index of the first override that includes the consumer, -1 for none.
func (p *Policy) overrideFor(c Consumer) int {
	return slices.IndexFunc(p.Overrides, func(o Override) bool { return o.Consumers.Includes(c) })
}

// Scope selects consumers: by ID or by label, and then by filters. The zero Scope selects every
// consumer.
type Scope struct {
	IDs      map[string]struct{}
	Selector capacity.Selector
	// Filters are asked about consumers that are selected. The first that leaves a consumer out says
	// why.
	Filters []ConsumerFilter
}

// ConsumerFilter is a rule of the provider. Package filter has the rules in CEL, and plugins/filters
// the rules in Go.
type ConsumerFilter interface {
	// Admits reports whether the scope may include the consumer, and if not, why. It must depend on
	// nothing but the consumer. Every evaluation asks again, also of other goroutines.
	Admits(c Consumer) (ok bool, why string)
	// String returns the filter as text. Filters of equal texts admit the same.
	String() string
}

// SliceFilter is a rule of the provider on requests. Package filter has the rules in CEL, and
// plugins/filters the rules in Go.
type SliceFilter interface {
	// Rule reports whether the request may be granted. If not, why adds for admins of the provider what the
	// message to the consumer does not say, such as that the filter fails. It must depend on nothing but
	// the request. Every allocation asks again, also of other goroutines.
	Rule(r *Request) (ruling Ruling, why string)
	// String returns the filter as text. Filters of equal texts admit the same.
	String() string
}

// Ruling is a SliceFilter's answer to a request.
type Ruling int

const (
	// Admitted: it may be granted.
	Admitted Ruling = iota
	// Refused: it is not granted, and reclaim decides what stays of a grant.
	Refused
	// Undecided: nothing more is granted until the filter has answered.
	Undecided
)

// MaxRequestLabels bounds the labels of a ResourceSlice that a filter admits: its consumer writes them.
const MaxRequestLabels = 64

// Request is the request of a ResourceSlice.
type Request struct {
	// Key identifies the slice.
	Key      string
	Consumer Consumer
	// Resources holds the amounts that the slice asks for, and the defaults of the policy for what it
	// omits.
	Resources capacity.Amounts
	// Labels holds the labels of the slice.
	Labels map[string]string
	// Age is the time from the creation of the slice to the last full minute.
	Age time.Duration
}

// Digest identifies the state of the request. The first part is of what the consumer writes.
func (r *Request) Digest() [2]uint64 {
	return [2]uint64{
		capacity.Digest([...]uint64{capacity.DigestMap(r.Resources), capacity.DigestMap(r.Labels)}),
		capacity.Digest([...]uint64{r.Consumer.Digest(), uint64(r.Age)}),
	}
}

// Everyone reports whether the scope selects every consumer.
func (s Scope) Everyone() bool { return s.IDs == nil && s.Selector == nil && s.Filters == nil }

// Includes reports whether the scope selects the consumer.
func (s Scope) Includes(c Consumer) bool { return s.selects(c) && s.whyFiltered(c) == "" }

// selects reports whether the scope selects the consumer, but for its filters.
func (s Scope) selects(c Consumer) bool {
	if s.IDs != nil {
		_, ok := s.IDs[c.ID]
		return ok
	}
	return s.Selector == nil || s.Selector.Matches(c.Labels)
}

// whyFiltered returns why a filter leaves the consumer out, empty if none does.
func (s Scope) whyFiltered(c Consumer) string {
	for _, f := range s.Filters {
		if ok, why := f.Admits(c); !ok {
			return cmp.Or(why, "the filter leaves it out")
		}
	}
	return ""
}

// Consumer is a peer cluster.
type Consumer struct {
	ID     string
	Labels map[string]string
}

// Digest identifies the state of the consumer.
func (c *Consumer) Digest() uint64 {
	return capacity.Digest([...]uint64{capacity.Digest(c.ID), capacity.DigestMap(c.Labels)})
}

// ResourceNames returns the resources, sorted, that the policies offer whether or not a node lists
// them, or once offered. A View must include them: reclaim holds what consumers' pods request of
// them.
func ResourceNames(policies []Policy) []string {
	var names []string
	for i := range policies {
		names = slices.AppendSeq(append(names, policies[i].Known...), maps.Keys(policies[i].Fixed))
		for _, o := range policies[i].Overrides {
			names = slices.AppendSeq(names, maps.Keys(o.Fixed))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noPool is the pool index of a policy of fixed amounts.
const noPool = -1

// Selections returns the distinct node selections of lists of policies, in the order of their first use.
func Selections(policies ...[]Policy) []capacity.Selection {
	selections, _ := selectionsOf(policies...)
	return selections
}

// selectionsOf returns the selections and, for each policy, the index of its selection.
func selectionsOf(policies ...[]Policy) (selections []capacity.Selection, indexes map[*Policy]int) {
	byKey := map[string]int{}
	indexes = map[*Policy]int{}
	add := func(p *Policy) {
		if p.Nodes == nil {
			indexes[p] = noPool
			return
		}
		key := p.Nodes.Selection.Key()
		index, known := byKey[key]
		if !known {
			index = len(selections)
			byKey[key] = index
			selections = append(selections, p.Nodes.Selection)
		}
		selections[index].Single = selections[index].Single || p.Nodes.Selection.Single
		indexes[p] = index
	}
	for _, list := range policies {
		for i := range list {
			add(&list[i])
		}
	}
	return selections, indexes
}

// EvictsAtZero reports whether an offer of 0 of a resource evicts the consumer's pods: a virtual node whose cpu or
// memory is 0 turns NotReady (Liqo, areResourcesReady of the virtual kubelet's node provider).
func EvictsAtZero(resource string) bool {
	return resource == capacity.CPU || resource == capacity.Memory
}
