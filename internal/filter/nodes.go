package filter

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// nodes implements capacity.NodeFilter.
type nodes struct {
	text    string
	program cel.Program
}

// Nodes compiles a filter of nodes. Its expression has the variable node, with name, labels and, as
// quantities, allocatable.
func Nodes(expression string) (capacity.NodeFilter, error) {
	env, _ := environments()
	p, err := compile(env, expression, "node.name, node.labels and node.allocatable")
	if err != nil {
		return nil, err
	}
	return &nodes{text: expression, program: p}, nil
}

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
		return false, "left out by the filter, which fails on it: " + failure
	}
	return false, "left out by the filter"
}
