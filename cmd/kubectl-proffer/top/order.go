package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// order is a value of --sort. of returns the amount of a row, nil if it has none; it is nil for an order by name.
type order[R any] struct {
	name string
	of   func(R) *resource.Quantity
}

// The orders of each kind of row. The first is the order in which the rows are read.
var (
	policyOrders = []order[policyRow]{
		{"policy", nil},
		{"capacity", func(r policyRow) *resource.Quantity { return r.Capacity }},
		{"committed", func(r policyRow) *resource.Quantity { return r.Committed }},
		{"used", func(r policyRow) *resource.Quantity { return r.Used }},
		{"remaining", func(r policyRow) *resource.Quantity { return r.Remaining }},
		{"offered", func(r policyRow) *resource.Quantity { return r.Offered }},
	}
	consumerOrders = []order[consumerRow]{
		{"share", consumerRow.share},
		{"consumer", nil},
		{"offered", func(r consumerRow) *resource.Quantity { return r.Offered }},
		{"granted", func(r consumerRow) *resource.Quantity { return r.Granted }},
		{"used", func(r consumerRow) *resource.Quantity { return r.Used }},
		{"waiting", func(r consumerRow) *resource.Quantity { return r.Waiting }},
	}
	nodeOrders = []order[nodeRow]{
		{"node", nil},
		{"allocatable", func(r nodeRow) *resource.Quantity { return r.Allocatable }},
		{"local", func(r nodeRow) *resource.Quantity { return r.Local }},
		{"used", func(r nodeRow) *resource.Quantity { return r.Used }},
	}
	orders = map[string][]string{
		byPolicies: namesOf(policyOrders), byConsumers: namesOf(consumerOrders), byNodes: namesOf(nodeOrders),
	}
)

func namesOf[R any](orders []order[R]) (names []string) {
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// completeOrder completes --sort for what the argument shows.
func completeOrder(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return orders[kindOf(args)], cobra.ShellCompDirectiveNoFileComp
}

func (r policyRow) key() (subject, name string)   { return r.Policy, r.Resource }
func (r consumerRow) key() (subject, name string) { return r.Consumer, r.Resource }
func (r nodeRow) key() (subject, name string)     { return r.Node, r.Resource }

// share returns how much of the offer is used, in millionths.
func (r consumerRow) share() *resource.Quantity {
	const largest = 1e12
	return resource.NewQuantity(int64(min(share(r.Used, r.Offered), largest)*1e6), resource.DecimalSI)
}

// arranged keeps the rows of a resource, "" for all, and sorts them: by name, or what has the largest amount of the
// resource, or else of cpu, in any row first. A policy, consumer or node stays together. Equal ones keep their order.
// The first order is that of the rows, unless one resource of several decides it.
func arranged[R interface{ key() (subject, name string) }](rows []R, orders []order[R], by, name string) []R {
	i := max(0, slices.IndexFunc(orders, func(o order[R]) bool { return o.name == by }))
	of, largest := orders[i].of, map[string]*resource.Quantity{}
	for _, r := range rows {
		if subject, listed := r.key(); of != nil && listed == cmp.Or(name, capacity.CPU) {
			if a := of(r); quantity.Compare(a, largest[subject]) > 0 {
				largest[subject] = a
			}
		}
	}
	rows = slices.DeleteFunc(rows, func(r R) bool {
		_, listed := r.key()
		return name != "" && listed != name
	})
	if i == 0 && name == "" {
		return rows
	}
	slices.SortStableFunc(rows, func(a, b R) int {
		subject, _ := a.key()
		other, _ := b.key()
		if of == nil {
			return strings.Compare(subject, other)
		}
		return quantity.Compare(largest[other], largest[subject])
	})
	return rows
}
