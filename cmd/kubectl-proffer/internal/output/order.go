package output

import (
	"fmt"
	"slices"
	"strings"
)

// CheckOrder refuses a value of --sort that is none of the orders.
func CheckOrder(order string, orders []string) error {
	if slices.Contains(orders, order) {
		return nil
	}
	return fmt.Errorf("there is no order %q: write --sort=%s", order, strings.Join(orders, "|"))
}

// OrdersText lists at least two orders, as in "consumer, class or used".
func OrdersText(orders []string) string {
	last := len(orders) - 1
	return strings.Join(orders[:last], ", ") + " or " + orders[last]
}
