package top

import (
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// The orders of each kind of row. The first is the order in which the rows are read.
var (
	policyOrders = []output.Order[policyRow]{
		{Name: "policy"},
		{Name: "capacity", Amount: func(r policyRow) *resource.Quantity { return r.Capacity }},
		{Name: "committed", Amount: func(r policyRow) *resource.Quantity { return r.Committed }},
		{Name: "used", Amount: func(r policyRow) *resource.Quantity { return r.Used }},
		{Name: "remaining", Amount: func(r policyRow) *resource.Quantity { return r.Remaining }},
		{Name: "offered", Amount: func(r policyRow) *resource.Quantity { return r.Offered }},
	}
	consumerOrders = []output.Order[consumerRow]{
		{Name: "share", Amount: consumerRow.share, OfAny: true},
		{Name: "consumer", Text: func(r consumerRow) string { return r.Consumer }},
		{Name: "offered", Amount: func(r consumerRow) *resource.Quantity { return r.Offered }},
		{Name: "granted", Amount: func(r consumerRow) *resource.Quantity { return r.Granted }},
		{Name: "used", Amount: func(r consumerRow) *resource.Quantity { return r.Used }},
		{Name: "waiting", Amount: func(r consumerRow) *resource.Quantity { return r.Waiting }},
	}
	nodeOrders = []output.Order[nodeRow]{
		{Name: "node"},
		{Name: "allocatable", Amount: func(r nodeRow) *resource.Quantity { return r.Allocatable }},
		{Name: "local", Amount: func(r nodeRow) *resource.Quantity { return r.Local }},
		{Name: "used", Amount: func(r nodeRow) *resource.Quantity { return r.Used }},
	}
	orders = map[string][]string{
		byPolicies: output.Names(policyOrders), byConsumers: output.Names(consumerOrders), byNodes: output.Names(nodeOrders),
	}
)

// completeOrder completes --sort for what the argument shows.
func completeOrder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return orders[kindOf(args)], cobra.ShellCompDirectiveNoFileComp
}

func (r policyRow) key() (subject, name string)   { return r.Policy, r.Resource }
func (r consumerRow) key() (subject, name string) { return r.Consumer, r.Resource }
func (r nodeRow) key() (subject, name string)     { return r.Node, r.Resource }

// share returns how much of the offer is used, in millionths, 0 without an offer.
func (r consumerRow) share() *resource.Quantity {
	const largest = 1e12
	if !positive(r.Offered) {
		return &resource.Quantity{}
	}
	share := r.Used.AsApproximateFloat64() / r.Offered.AsApproximateFloat64()
	return resource.NewQuantity(int64(min(share, largest)*1e6), resource.DecimalSI)
}

// arranged keeps the rows of a resource, "" for all, and sorts them by an order.
func arranged[R interface{ key() (subject, name string) }](
	rows []R, orders []output.Order[R], by, name string,
) []R {
	rows = slices.DeleteFunc(rows, func(r R) bool {
		_, listed := r.key()
		return name != "" && listed != name
	})
	output.Sort(rows, orders, by, name, R.key)
	return rows
}
