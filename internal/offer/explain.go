package offer

import (
	"fmt"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// Explain says in a line how the amount came about, in words an admin of the provider understands.
func (s Step) Explain() string {
	q := func(amount int64) string {
		quantity := capacity.Quantity(s.Resource, amount)
		return quantity.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", s.Resource, q(s.Offer))
	switch s.Source {
	case FromFixed:
		fmt.Fprintf(&b, "fixed at %s", q(s.Fixed))
	case FromOverride:
		fmt.Fprintf(&b, "fixed at %s by the override", q(s.Fixed))
	case FromRevocation:
		b.WriteString("not offered any more")
	case FromNodes:
		if s.Reserve > 0 {
			fmt.Fprintf(&b, "%d%% of (%s - %s reserved) is a pool of %s", s.Percent, q(s.Counted), q(s.Reserve), q(s.Pool))
		} else {
			fmt.Fprintf(&b, "%d%% of %s is a pool of %s", s.Percent, q(s.Counted), q(s.Pool))
		}
		if present := s.present(); present != s.Pool {
			fmt.Fprintf(&b, ", and %s now", q(present))
		}
		fmt.Fprintf(&b, ", %s committed, %s remaining; it has %s", q(s.Committed), q(s.Remaining), q(s.Own))
	}
	switch {
	case s.Held >= 0:
		b.WriteString("; held by reclaim")
	case s.Max >= 0 && s.Offer == s.Max:
		fmt.Fprintf(&b, "; at most %s", q(s.Max))
	}
	return b.String()
}
