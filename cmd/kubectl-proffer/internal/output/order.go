package output

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// Order is a value of --sort for rows: by a text, or by an amount, the largest first. With neither it is the order
// in which the rows are read.
type Order[R any] struct {
	Name string
	Text func(R) string
	// Amount returns nil for a row without the amount.
	Amount func(R) *resource.Quantity
	// OfAny has the amounts of all resources count without --resource, otherwise those of cpu do.
	OfAny bool
}

// Names returns the values of --sort.
func Names[R any](orders []Order[R]) []string {
	return Texts(orders, func(o Order[R]) string { return o.Name })
}

// Sort sorts rows by one of the orders, of which the first is the default. The resource is that of --resource. A
// subject has the largest of its amounts, its rows stay together, and what is equal keeps its order.
func Sort[R any, S comparable](rows []R, orders []Order[R], name, resourceName string, of func(R) (S, string)) {
	by := orders[max(0, slices.IndexFunc(orders, func(o Order[R]) bool { return o.Name == name }))]
	largest := map[S]*resource.Quantity{}
	for _, r := range rows {
		subject, listed := of(r)
		counts := listed == cmp.Or(resourceName, capacity.CPU) || resourceName == "" && by.OfAny
		if by.Amount != nil && counts && quantity.Compare(by.Amount(r), largest[subject]) > 0 {
			largest[subject] = by.Amount(r)
		}
	}
	slices.SortStableFunc(rows, func(a, b R) int {
		switch {
		case by.Text != nil:
			return strings.Compare(by.Text(a), by.Text(b))
		case by.Amount != nil:
			subject, _ := of(a)
			other, _ := of(b)
			return quantity.Compare(largest[other], largest[subject])
		}
		return 0
	})
}

// Fold groups the rows of which what they have in common is the same, each group where its first row is. In format
// Wide each row is a group.
func Fold[R any, K comparable](rows []R, format string, common func(R) K) [][]R {
	var groups [][]R
	at := map[K]int{}
	for _, r := range rows {
		key := common(r)
		i, ok := at[key]
		if !ok || format == Wide {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// CheckOrder refuses a value of --sort that is none of the orders.
func CheckOrder(order string, orders []string) error { return oneOf(order, orders, "order", "--sort=") }

// OrdersText lists at least two orders, as in "consumer, class or used".
func OrdersText(orders []string) string {
	last := len(orders) - 1
	return strings.Join(orders[:last], ", ") + " or " + orders[last]
}
