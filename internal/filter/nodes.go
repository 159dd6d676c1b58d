package filter

import (
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

const (
	leftOut = "left out by the filter"
	failed  = leftOut + ", which fails on it"
	// maxFailures bounds the different texts that a filter remembers of why it fails.
	maxFailures = 16
)

// nodes implements capacity.ContentFilter.
type nodes struct {
	*program

	mu sync.Mutex
	// failures are texts that all nodes share on which the filter fails alike: the ledger keeps them for as
	// long as the nodes.
	failures map[string]string
}

// Nodes compiles a filter of nodes. Its expression has the variable node, with name, labels and, as
// quantities, allocatable.
func Nodes(expression string) (capacity.NodeFilter, error) {
	const reads = "node.name, node.labels and node.allocatable"
	return nodeFilters.filterOf(environments().nodes, expression, reads, func(p *program) *nodes {
		return &nodes{program: p}
	})
}

var nodeFilters shared[nodes]

// Admits implements capacity.NodeFilter. It leaves out a node that the expression fails on.
func (f *nodes) Admits(n *capacity.Node) (ok bool, why string) {
	ok, failure := evaluate(f.program, map[string]fields{
		nodeVariable: {"name": n.Name, "allocatable": quantities(n.Allocatable), "labels": n.Labels},
	})
	switch {
	case ok:
		return true, ""
	case failure != "":
		return false, f.failing(failure)
	}
	return false, leftOut
}

// failing returns why a node is left out that the filter fails on.
func (f *nodes) failing(failure string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, known := f.failures[failure]
	switch {
	case known:
		return text
	case len(f.failures) == maxFailures:
		return failed
	case f.failures == nil:
		f.failures = map[string]string{}
	}
	text = failed + ": " + failure
	f.failures[failure] = text
	return text
}

// ReadsContentOnly implements capacity.ContentFilter.
func (f *nodes) ReadsContentOnly() {}

// quantities converts amounts for expressions.
func quantities(of capacity.Amounts) traits.Mapper {
	all := make(map[string]any, len(of))
	for name, amount := range of {
		q := quantity.Of(name, amount)
		all[name] = apiservercel.Quantity{Quantity: &q}
	}
	return inOrder(types.NewStringInterfaceMap(types.DefaultTypeAdapter, all), all)
}
