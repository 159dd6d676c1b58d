package filters

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/plugin"
)

// filter is one filter in Go. T is capacity.Node, offer.Consumer or offer.Request.
type filter[T any] struct {
	*caller
	// ask copies an object, and returns a function that asks about the copy.
	ask func(p *plugin.Policy, object *T) func() (ok bool, why string)
	// digest identifies the state of an object. While there is no answer about a state, the answer about an
	// earlier one counts if the first parts of both digests are equal.
	digest func(object *T) memo.Digest
}

// nodeFilter implements capacity.NodeFilter.
type nodeFilter struct{ *answers[capacity.Node] }

// Admits implements capacity.NodeFilter.
func (f nodeFilter) Admits(n *capacity.Node) (ok bool, why string) {
	a := f.answerTo(n.Name, n)
	return a.ruling == offer.Admitted, a.why
}

// consumerFilter implements offer.ConsumerFilter.
type consumerFilter struct{ *answers[offer.Consumer] }

// Admits implements offer.ConsumerFilter.
func (f consumerFilter) Admits(c offer.Consumer) (ok bool, why string) {
	a := f.answerTo(c.ID, &c)
	return a.ruling == offer.Admitted, a.why
}

// sliceFilter implements offer.SliceFilter.
type sliceFilter struct{ *answers[offer.Request] }

// Rule implements offer.SliceFilter.
func (f sliceFilter) Rule(r *offer.Request) (ruling offer.Ruling, why string) {
	a := f.answerTo(r.Key, r)
	return a.ruling, a.why
}

func consumerOf(c *offer.Consumer) *plugin.Consumer {
	return &plugin.Consumer{ClusterID: c.ID, Labels: maps.Clone(c.Labels)}
}

func requestOf(r *offer.Request) *plugin.Request {
	out := &plugin.Request{
		Consumer: *consumerOf(&r.Consumer), Labels: maps.Clone(r.Labels), Age: r.Age,
		Resources: listOf(r.Resources),
	}
	out.Namespace, out.Name, _ = strings.Cut(r.Key, "/")
	return out
}

// listOf returns the amounts as a list that can be written to, also if there are none.
func listOf(amounts capacity.Amounts) corev1.ResourceList {
	if list := quantity.ListOf(amounts); list != nil {
		return list
	}
	return corev1.ResourceList{}
}

// nodeOf converts a node. A filter that changes it, which it must not, changes nothing of the ledger.
func nodeOf(n *capacity.Node) *plugin.Node {
	out := &plugin.Node{
		Name: n.Name, Labels: maps.Clone(n.Labels), Ready: n.State == capacity.Ready, Cordoned: n.State == capacity.Cordoned,
		Allocatable: listOf(n.Allocatable),
	}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// digestOfNode is a digest of everything that nodeOf reads.
func digestOfNode(n *capacity.Node) memo.Digest {
	d := capacity.Digest([...]uint64{
		capacity.DigestMap(n.Labels), capacity.DigestMap(n.Allocatable), uint64(n.State),
	})
	for _, t := range n.Taints {
		d = capacity.Digest([...]uint64{d, capacity.Digest(t)})
	}
	return memo.Digest{1: d}
}

func digestOfConsumer(c *offer.Consumer) memo.Digest { return memo.Digest{1: c.Digest()} }
