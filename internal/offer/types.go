package offer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/internal/capacity"
)

// Count says what a pool of nodes is measured by.
type Count int

const (
	// Free counts what is left when the requests of this cluster's own pods are taken off.
	Free Count = iota
	// Allocatable counts all that the nodes can allocate.
	Allocatable
)

// Reclaim says what happens when an offer falls.
type Reclaim int

const (
	// Unused takes back only what the consumer's own pods do not request.
	Unused Reclaim = iota
	// Evict takes back at once, even to 0.
	Evict
	// Retain never lowers what was granted, nor what the consumer's pods request.
	Retain
)

// Policy is a ResourcePolicy whose every value has been checked. What is nil or empty was not said.
type Policy struct {
	Name string
	// Version tells two edits of the policy apart: its UID and generation.
	Version string
	// Created is the creation time in Unix seconds: among policies of one priority the oldest decides.
	Created  int64
	Class    string
	Priority int32
	DryRun   bool
	// Consumers are who the policy is for.
	Consumers Scope
	// Fixed are the amounts of a policy of fixed amounts; exactly one of Fixed and Nodes is set.
	Fixed capacity.Amounts
	Nodes *Nodes
	// Max is the ceiling for one consumer.
	Max capacity.Amounts
	// Resources are the only names offered; nil offers all there are.
	Resources []string
	// Overrides replace parts of the offer for some consumers; the first that matches wins.
	Overrides []Override
	// ThresholdPercent is how far, 0 to 100, a resource must move for a change of capacity to be published.
	ThresholdPercent int64
	Reclaim          Reclaim
	// Slices say how ResourceSlices of the class are answered.
	Slices Slices
	// Known are names that the policy has offered at some time: one that is no longer offered is offered as an explicit 0.
	Known []string
}

// Slices say how ResourceSlices are answered. Amounts apart, nothing here is looked at by the arithmetic.
type Slices struct {
	// DenyExcess grants all that is asked for or nothing, instead of what there is.
	DenyExcess bool
	// Defaults stand in for what a request leaves out.
	Defaults capacity.Amounts
	// NodeLabels and NodeSelector are for the consumer's virtual node.
	NodeLabels, NodeSelector map[string]string
	// StorageClasses, IngressClasses and LoadBalancerClasses are those that the consumer may use, its default one first. Nil was not said;
	// empty is none.
	StorageClasses, IngressClasses, LoadBalancerClasses []string
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

// Override replaces, resource by resource, what a policy offers to some consumers.
type Override struct {
	Consumers Scope
	Fixed     capacity.Amounts
	Max       capacity.Amounts
}

// Scope says which consumers something is for: those named, or those whose labels match. The zero Scope is every consumer.
type Scope struct {
	IDs      map[string]struct{}
	Selector labels.Selector
}

// Everyone reports whether the scope names nobody in particular.
func (s Scope) Everyone() bool { return s.IDs == nil && s.Selector == nil }

// Includes reports whether the consumer is in the scope.
func (s Scope) Includes(c Consumer) bool {
	if s.IDs != nil {
		_, ok := s.IDs[c.ID]
		return ok
	}
	return s.Selector == nil || s.Selector.Matches(labels.Set(c.Labels))
}

// Consumer is a peer cluster.
type Consumer struct {
	ID     string
	Labels map[string]string
}

// Amount is how much of one resource is offered: cpu in milli, all else in whole units.
type Amount struct {
	Resource string
	Value    int64
}

// Offer is what one consumer may use in one class: what it has, and what is left. It never changes once made; consumers with
// equal offers may share one.
type Offer struct {
	// Class is empty for the one unnamed pool.
	Class string
	// Policy is the name of the policy that decided, empty for an offer that was withdrawn.
	Policy string
	// Amounts are sorted by resource name. What was offered once and is not any more stands as an explicit 0.
	Amounts []Amount
	// Steps are how each of Amounts came about when it was published first, in the same order. See Result.Explain for how it does now.
	Steps []Step
	// Override is the index of the override that matched, -1 if none did.
	Override int

	// from is the policy that decided last.
	from    string
	version string
	reclaim Reclaim
}

// Withdrawn reports whether no policy decides on the offer any more: its amounts are 0, or held.
func (o *Offer) Withdrawn() bool { return o.Policy == "" }

// Amount returns how much of a resource is offered, and whether the offer names it.
func (o *Offer) Amount(resource string) (value int64, named bool) {
	i, named := o.find(resource)
	if !named {
		return 0, false
	}
	return o.Amounts[i].Value, true
}

// find returns where a resource stands in Amounts and Steps.
func (o *Offer) find(resource string) (i int, named bool) {
	return slices.BinarySearchFunc(o.Amounts, resource, func(a Amount, name string) int {
		return strings.Compare(a.Resource, name)
	})
}

// Source says where an amount came from.
type Source int

const (
	// FromFixed is an amount that the policy names.
	FromFixed Source = iota
	// FromOverride is an amount that an override names.
	FromOverride
	// FromNodes is a share of nodes.
	FromNodes
	// FromRevocation is the explicit 0 of a resource that was offered once.
	FromRevocation
)

// Step is how one amount of an offer came about, in the words and the order of the arithmetic: a pool of nodes, less
// the reserve, times percent, less what is committed, plus what the consumer has itself, at most max.
type Step struct {
	Resource string
	Source   Source
	// Fixed is the amount named, for FromFixed and FromOverride.
	Fixed int64
	// Counted is the sum over the nodes by the policy's count, before Reserve and Percent; the following are for FromNodes.
	Counted, Reserve, Percent int64
	// Pool is the policy's share of the nodes, or the level at which that is given out, see Stabilizer; Committed is what all consumers hold of it; Own is this consumer's part of
	// Committed; Remaining is what is left.
	Pool, Committed, Own, Remaining int64
	// Max is the ceiling, -1 if there is none.
	Max int64
	// Held is what reclaim keeps the amount at, -1 if it does not.
	Held int64
	// Offer is the result.
	Offer int64
}
