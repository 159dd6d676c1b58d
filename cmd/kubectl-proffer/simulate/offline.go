package simulate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
)

// offline rehearses a change on a snapshot, with the code of the operator.
func offline(ctx context.Context, file string, change *rest.Change) (*rest.Simulation, error) {
	snapshot, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--world: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	known, of, err := world.Decode(bufio.NewReader(snapshot))
	if err != nil {
		return nil, fmt.Errorf("--world=%s: %w", file, err)
	}
	return rehearseOn(ctx, known, change, of, world.Unknown)
}

// rehearseOn evaluates a change on a world. The unknown lists what the world does not hold.
func rehearseOn(
	ctx context.Context, known *rehearse.World, change *rest.Change, of rest.Evaluated, unknown []string,
) (*rest.Simulation, error) {
	parsed, problems, err := world.ChangeOf(change, known, nil)
	if err != nil {
		return nil, fmt.Errorf("the change does not fit: %w", err)
	}
	outcome := rehearse.Rehearse(known, parsed, func() bool { return ctx.Err() != nil })
	if outcome == nil {
		return nil, ctx.Err()
	}
	return world.SimulationOf(outcome, of, problems, slices.Concat(unknown, world.UnknownFilters(known.Filters))), nil
}
