package filter

import (
	"sync"

	"github.com/google/cel-go/cel"
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
	text    string
	program cel.Program

	mu sync.Mutex
	// failures are texts that all nodes share on which the filter fails alike: the ledger keeps them for as
	// long as the nodes.
	failures map[string]string
}

// Nodes compiles a filter of nodes. Its expression has the variable node, with name, labels and, as
// quantities, allocatable.
func Nodes(expression string) (capacity.NodeFilter, error) {
	return nodeFilters.of(expression, func() (*nodes, error) {
		env, _ := environments()
		p, err := compile(env, expression, "node.name, node.labels and node.allocatable")
		return &nodes{text: expression, program: p}, err
	})
}

var nodeFilters shared[nodes]

// String implements capacity.NodeFilter.
func (f *nodes) String() string { return f.text }

// Admits implements capacity.NodeFilter. It leaves out a node that the expression fails on.
func (f *nodes) Admits(n *capacity.Node) (ok bool, why string) {
	allocatable := make(map[string]any, len(n.Allocatable))
	for name, amount := range n.Allocatable {
		q := quantity.Of(name, amount)
		allocatable[name] = apiservercel.Quantity{Quantity: &q}
	}
	ok, failure := evaluate(f.program, nodeVariable, n.Labels, map[string]any{
		"name": n.Name, "allocatable": orderedAmounts(allocatable),
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
