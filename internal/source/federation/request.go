package federation

import (
	"fmt"
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
)

// Required are the resources without which nothing runs on a virtual node.
var Required = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// ParseAmounts parses amounts that have to fit, as in cpu=4,memory=8Gi. An empty text has no amounts.
func ParseAmounts(text string) (v1alpha1.Quantities, error) {
	if text == "" {
		return nil, nil
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: write RESOURCE=AMOUNT[,RESOURCE=AMOUNT...], such as cpu=4,memory=8Gi",
			fmt.Sprintf(format, args...))
	}
	amounts := v1alpha1.Quantities{}
	for item := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(item, "=")
		name := corev1.ResourceName(key)
		if !ok {
			return nil, wrong("%q is not an amount", item)
		}
		if len(validation.IsQualifiedName(key)) > 0 {
			return nil, wrong("%q is not the name of a resource", key)
		}
		if problem := v1alpha1.NameProblem(name); problem != "" {
			return nil, wrong("there is no resource %q: %s", key, problem)
		}
		if _, twice := amounts[name]; twice {
			return nil, wrong("%s is there twice", key)
		}
		amount := v1alpha1.ParseQuantity(value)
		if amount.Problem(name) != "" || amount.Sign() <= 0 {
			return nil, wrong("%q is not an amount of %s above 0", value, key)
		}
		amounts[name] = amount
	}
	return amounts, nil
}

// request returns the amounts of a ResourceSlice that asks an Offer for these amounts, or for all that
// is available if there are none. It is false if the slice would not be granted in full, or nothing
// could run on it.
//
// For what it does not ask for, a slice gets the available part of the class's defaults, and nothing of
// other resources. So the request names cpu, memory and pods where no default has them, or has more
// than is available, for one of this number of slices.
func request(o *rest.FederationOffer, amounts v1alpha1.Quantities, slices int) (v1alpha1.Quantities, bool) {
	if o.Expired || o.Reason != v1alpha1.CatalogAvailable {
		return nil, false
	}
	available := grantable(o.Available)
	all := v1alpha1.Quantities{} // An Offer may have no amounts at all.
	maps.Copy(all, amounts)
	if len(all) == 0 {
		maps.Copy(all, available)
		maps.DeleteFunc(all, func(_ corev1.ResourceName, q v1alpha1.Quantity) bool { return q.IsZero() })
	}
	if !atMost(all, available) {
		return nil, false
	}
	for _, name := range Required {
		q, asked := all[name]
		if !asked {
			standard, ok := o.Defaults[name]
			if q = partOf(o, name, available[name], slices); ok && standard.Cmp(q.Quantity) <= 0 {
				q = standard
			} else {
				all[name] = q
			}
		}
		if q.IsZero() {
			return nil, false
		}
	}
	return all, true
}

// partOf returns the part of an available amount that leaves as much to each other one of this number of slices.
func partOf(
	o *rest.FederationOffer, name corev1.ResourceName, available v1alpha1.Quantity, slices int,
) v1alpha1.Quantity {
	if slices <= 1 {
		return available
	}
	part := min(amountOf(name, available), forAll(o, name)/int64(slices))
	return v1alpha1.Quantity{Quantity: quantity.Of(string(name), part)}
}

// forAll returns how much further slices of the class can have together, if nothing else changes. What is available in
// a class that grants each slice from one node is of that node.
func forAll(o *rest.FederationOffer, name corev1.ResourceName) int64 {
	available := amountOf(name, o.Available[name])
	if o.Fit != v1alpha1.FitNode {
		return available
	}
	ceiling, limited := o.Ceiling[name]
	if !limited {
		return math.MaxInt64
	}
	return max(available, amountOf(name, ceiling)-amountOf(name, o.Held[name]))
}

// amountOf returns an amount of an Offer in the unit of the resource, rounded down.
func amountOf(name corev1.ResourceName, q v1alpha1.Quantity) int64 {
	return quantity.AmountOf(string(name), q.Quantity, quantity.Down)
}

// Together returns how many slices of these amounts can be granted in full together, if nothing else changes.
func Together(o *rest.FederationOffer, amounts v1alpha1.Quantities) int64 {
	most := int64(math.MaxInt64)
	for name, q := range amounts {
		if each := quantity.AmountOf(string(name), q.Quantity, quantity.Up); each > 0 {
			most = min(most, forAll(o, name)/each)
		}
	}
	return most
}

// AmountsOf returns the amounts of an Offer by resource. They were checked when it was read.
func AmountsOf(of v1alpha1.Quantities) rest.Amounts {
	all := make(rest.Amounts, len(of))
	for name, q := range of {
		all[string(name)] = q.Quantity
	}
	return all
}

// grantable rounds amounts down to ones that can be granted: a request is rounded up.
func grantable(amounts v1alpha1.Quantities) v1alpha1.Quantities {
	all := maps.Clone(amounts)
	for name, q := range all {
		whole := quantity.Of(string(name), quantity.AmountOf(string(name), q.Quantity, quantity.Down))
		if whole.Cmp(q.Quantity) != 0 {
			all[name] = v1alpha1.Quantity{Quantity: whole}
		}
	}
	return all
}

// fitNodes counts the nodes of the shapes that have room for one pod of these amounts. A pod that
// no shape has room for may still be as large as the largest pod, which is not rounded. It is nil
// if the Offer does not say.
func fitNodes(o *rest.FederationOffer, amounts v1alpha1.Quantities) *int {
	if len(amounts) == 0 || len(o.Shapes) == 0 {
		return nil
	}
	pod, nodes := maps.Clone(amounts), 0
	delete(pod, corev1.ResourcePods) // The number of pods is not that of one pod.
	for _, shape := range o.Shapes {
		if atMost(pod, shape.Free) {
			nodes += int(shape.Nodes)
		}
	}
	if nodes == 0 && atMost(pod, o.LargestPod) {
		nodes = 1
	}
	return &nodes
}

// atMost reports whether no amount is more than in most, where a resource that is left out has 0.
func atMost(amounts, most v1alpha1.Quantities) bool {
	for name, q := range amounts {
		if limit := most[name]; q.Cmp(limit.Quantity) > 0 {
			return false
		}
	}
	return true
}

// Fit sets the command of each Offer, or the commands that ask for this number of nodes, 0 for none. With amounts, it
// keeps only the Offers that fit, with their FitNodes. It reports whether there is one.
func Fit(providers []rest.FederationProvider, amounts v1alpha1.Quantities, nodes int, by Liqoctl) (found bool) {
	for i := range providers {
		p := &providers[i]
		kept := p.Offers[:0]
		for _, o := range p.Offers {
			wanted, ok := request(&o, amounts, max(1, nodes))
			if ok {
				found, o.FitNodes = true, fitNodes(&o, amounts)
			}
			switch {
			case !ok:
			case nodes > 0:
				o.Command, o.Commands = "", by.CreateSlices(p.ClusterID, &o, wanted, nodes)
			default:
				o.Command = by.CreateSlice(p.ClusterID, &o, wanted)
			}
			if ok || len(amounts) == 0 {
				kept = append(kept, o)
			}
		}
		p.Offers = kept
	}
	return found
}
