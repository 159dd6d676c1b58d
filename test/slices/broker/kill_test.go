package broker

import (
	"context"
	"testing"

	"proffer.dev/proffer/test/slices/lab"
)

// TestAKilledOperatorGoesOn kills the operator of the broker at each state that a move goes through, and
// has another one go on from there.
func TestAKilledOperatorGoesOn(t *testing.T) {
	settle(t, "oslo", 1)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	for _, step := range []struct {
		name string
		// at returns nil when it is time to kill the operator during a move to this provider.
		at           func(ctx context.Context, to string) error
		drainMinutes int
	}{
		{"before anything is written", func(context.Context, string) error { return nil }, 1},
		{"when the status has the new choice", isChosen, 1},
		{"when both are selected", func(ctx context.Context, _ string) error { return selects(ctx, "oslo", "paris") }, 1},
		{"when only the new one is", func(ctx context.Context, to string) error { return selects(ctx, to) }, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			from, to := "oslo", "paris"
			if err := selects(t.Context(), to); err == nil {
				from, to = to, from
			}
			change(t, map[string]any{"drainMinutes": step.drainMinutes})
			price(t, map[string]string{from: "0.09", to: "0.01"})
			lab.Eventually(t, step.name, func(ctx context.Context) error { return step.at(ctx, to) })
			lab.Must(t, clusters.Milan.KillOperator(t.Context()))
			change(t, map[string]any{"drainMinutes": 0}) // Nobody waits for the drain again.
			lab.Must(t, clusters.Milan.StartOperator(t.Context()))
			awaitSelected(t, to)
			awaitRunOn(t, "web", 2, to)
		})
	}
}
