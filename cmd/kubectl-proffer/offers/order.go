package offers

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// The values of --sort. Amounts are of the resource of --resource, or of cpu.
var orders = []string{"consumer", "class", "policy", "offered", "granted", "used"}

// inOrder sorts the offers, the largest amounts first. What is equal stays as it was, and the default offer last.
func inOrder(rows []row, order, name string) []row {
	name = cmp.Or(name, capacity.CPU)
	all := offersIn(rows)
	slices.SortStableFunc(all, func(a, b []row) int {
		byOrder := 0
		switch order {
		case "class":
			byOrder = strings.Compare(a[0].class, b[0].class)
		case "policy":
			byOrder = strings.Compare(a[0].policy, b[0].policy)
		case "offered", "granted", "used":
			byOrder = quantity.Compare(amountIn(b, order, name), amountIn(a, order, name))
		}
		return cmp.Or(isAnyone(a[0])-isAnyone(b[0]), byOrder)
	})
	return slices.Concat(all...)
}

// amountIn returns one amount of an offer, nil if there is none.
func amountIn(offer []row, column, name string) *resource.Quantity {
	i := slices.IndexFunc(offer, func(r row) bool { return r.resource == name })
	if i < 0 {
		return nil
	}
	switch column {
	case "granted":
		return offer[i].granted
	case "used":
		return offer[i].used
	}
	return offer[i].offered
}
