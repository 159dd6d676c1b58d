package catalog

import (
	"fmt"
	"slices"
	"strings"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
)

// Entry holds what one consumer could have in one class. It is immutable.
type Entry struct {
	Class string
	// Policy is the one that decides.
	Policy *offer.Policy
	// Resources is sorted by name. Amount is for an active consumer: see Available.
	Resources []grant.Available
	// Held is the sum of the grants of the consumer's slices of the class, nil for nothing.
	Held capacity.Amounts
	// Nodes is what single nodes of the pool have free, for every consumer of the policy. It has
	// none for fixed amounts.
	Nodes capacity.Shapes
	// StorageClasses lists the StorageClasses that the consumer may use, the default first.
	StorageClasses []string
	// Providers stand behind the class, sorted by cluster ID. The consumer may be one of them.
	Providers []v1alpha1.OfferProvider

	peering peering
}

// peering says whether a consumer can ask. A larger one lets a consumer have more.
type peering int

const (
	notPeered peering = iota
	drained
	cordoned
	active
)

func peeringOf(s table.TenantState) peering {
	switch s {
	case table.TenantActive:
		return active
	case table.TenantDrained:
		return drained
	case table.TenantCordoned:
	}
	return cordoned
}

// Available returns the amount that a new slice could have of one of Resources. A consumer that has not
// peered could have it once it has.
func (e *Entry) Available(of *grant.Available) int64 {
	if e.peering == drained || e.peering == cordoned {
		return 0
	}
	return of.Amount
}

// Shapes returns what single nodes have free for the consumer's pods: at most what it holds and
// what is available together.
func (e *Entry) Shapes() capacity.Shapes {
	most := make(capacity.Amounts, len(e.Resources))
	for i := range e.Resources {
		r := &e.Resources[i]
		most[r.Resource] = capacity.Sum(e.Available(r), e.Held[r.Resource])
	}
	return e.Nodes.Within(most)
}

// Fit is empty for a class that grants from its pool.
func (e *Entry) Fit() v1alpha1.SliceFit {
	if e.Policy.Slices.FitNode {
		return v1alpha1.FitNode
	}
	return ""
}

// Reason summarizes the entry in one word.
func (e *Entry) Reason() v1alpha1.CatalogReason {
	switch e.peering {
	case notPeered:
		return v1alpha1.CatalogNotPeered
	case drained:
		return v1alpha1.CatalogDrained
	case cordoned:
		return v1alpha1.CatalogCordoned
	case active:
	}
	switch {
	case e.paused():
		return v1alpha1.CatalogPaused
	case e.stopped():
		return v1alpha1.CatalogStopped
	case e.exhausted():
		return v1alpha1.CatalogExhausted
	}
	return v1alpha1.CatalogAvailable
}

// paused reports whether the policy grants nothing new for a while.
func (e *Entry) paused() bool { return len(e.Resources) > 0 && e.Resources[0].Bound == grant.ByPause }

// stopped reports whether the policy takes back what it has granted.
func (e *Entry) stopped() bool { return len(e.Resources) > 0 && e.Resources[0].Bound == grant.ByStop }

// exhausted reports whether a new slice lacks a needed resource, or has nothing at all.
func (e *Entry) exhausted() bool {
	some := func(r grant.Available) bool { return r.Amount > 0 }
	lacks := func(r grant.Available) bool { return r.Amount <= 0 && slices.Contains(quantity.Needed, r.Resource) }
	return slices.ContainsFunc(e.Resources, lacks) || !slices.ContainsFunc(e.Resources, some)
}

// The bounds of a message: the number of resources that it explains, and the length of their names in
// bytes.
const (
	maxExplained = 16
	maxName      = 80
)

// Message explains what is available, and names what limits each resource.
func (e *Entry) Message() string {
	switch e.peering {
	case drained:
		return "the provider has drained this cluster: ResourceSlices are denied"
	case cordoned:
		return "the provider has cordoned this cluster: ResourceSlices keep what they have, and nothing more is granted"
	case notPeered, active:
	}
	if e.paused() {
		return "the provider has paused this class for this cluster: ResourceSlices keep what they have, " +
			"and nothing more is granted"
	}
	if e.stopped() {
		return "the provider has stopped this class: nothing more is granted, and what ResourceSlices have may be taken back"
	}
	var lines []string
	for i := range e.Resources {
		if i == maxExplained {
			lines = append(lines, fmt.Sprintf("and %d more resources", len(e.Resources)-i))
			break
		}
		lines = append(lines, explain(&e.Resources[i], e.Held[e.Resources[i].Resource]))
	}
	text := strings.Join(lines, "; ")
	if e.peering == notPeered {
		text = "this cluster cannot ask before it has peered, with one Tenant; it could have " + text
	}
	if e.Fit() == v1alpha1.FitNode {
		text = rest.FromOneNode + "; " + text
	}
	return text
}

func explain(r *grant.Available, held int64) string {
	name := r.Resource
	if len(name) > maxName {
		name = name[:maxName] + "..."
	}
	q := capacity.HumanFormat(r.Resource, r.Amount, r.Ceiling, held)
	line := name + " " + q(r.Amount) + ": "
	switch r.Bound {
	case grant.ByMax, grant.ByFixed, grant.ByOverride, grant.ByGiver:
		line += "a cluster has at most " + q(r.Ceiling) + " of this class"
		if held > 0 {
			line += ", and this one holds " + q(held)
		}
	case grant.BySeat:
		if r.Amount == 0 {
			return line + "nothing is left on one node"
		}
		line += "the most that one node has left"
	case grant.Awaited:
		line += "more is about to be free"
	default:
		if r.Amount > 0 {
			return line + "all that is left"
		}
		line += "nothing is left"
	}
	return line
}
