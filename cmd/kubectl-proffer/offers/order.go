package offers

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// rowOrders are the values of --sort. The first is the order of the operator.
var rowOrders = []output.Order[row]{
	{Name: "consumer"},
	{Name: "class", Text: func(r row) string { return r.class }},
	{Name: "policy", Text: func(r row) string { return r.policy }},
	{Name: "offered", Amount: func(r row) *resource.Quantity { return r.offered }},
	{Name: "granted", Amount: func(r row) *resource.Quantity { return r.granted }},
	{Name: "used", Amount: func(r row) *resource.Quantity { return r.used }},
}

var orders = output.Names(rowOrders)

// inOrder sorts the rows, the largest amounts of the resource first, or else of cpu. The rows of an offer stay
// together, and the default offer stays last.
func inOrder(rows []row, order, name string) []row {
	known := len(rows)
	for known > 0 && rows[known-1].consumer == output.Anyone {
		known--
	}
	output.Sort(rows[:known], rowOrders, order, name, func(r row) (rowKey, string) { return r.offer(), r.resource })
	return rows
}
