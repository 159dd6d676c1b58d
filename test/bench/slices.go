package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"proffer.dev/proffer/test/process"
)

// The steps of a slice, in the order of the times that test/slices writes.
const (
	replicated = iota
	authenticated
	accepted
	quota
	seen
	usable
	sliceSteps
)

// measureSlices measures the operator's share of the wait for a slice, with the real Liqo on both
// sides. The clusters are those of test/slices, another module. There is no short form, because the
// tests of that module measure a few slices themselves.
func measureSlices(ctx context.Context, o options, r *report, progress io.Writer) (err error) {
	if o.short {
		return nil
	}
	root, err := process.Checkout(ctx)
	if err != nil {
		return err
	}
	c, err := newCluster(ctx, o.operator)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	operator, err := filepath.Abs(c.operator)
	if err != nil {
		return err
	}
	times := filepath.Join(c.work, "times")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=30m", "-run", "^TestTimesFromCreateToUse$", ".")
	cmd.Dir = filepath.Join(root, "test", "slices")
	cmd.Env = append(os.Environ(), "PROFFER_BIN="+operator, "PROFFER_TIMES="+times)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the tests of test/slices: %w", err)
	}
	data, err := os.ReadFile(times)
	if err != nil {
		return err
	}
	return reportSlices(r, data)
}

// reportSlices reports times in nanoseconds since the consumer's create: one list for each step,
// with one time for each slice. The first slice is not counted.
func reportSlices(r *report, data []byte) error {
	var times [][]float64
	if err := json.Unmarshal(data, &times); err != nil {
		return fmt.Errorf("the times of slices: %w", err)
	}
	if len(times) != sliceSteps {
		return fmt.Errorf("times of %d steps, want %d", len(times), sliceSteps)
	}
	slices := len(times[replicated]) - 1
	for step := range times {
		if slices < 1 || len(times[step]) != slices+1 {
			return fmt.Errorf("step %d has the times of %d slices, want %d, and at least 2", step, len(times[step]), slices+1)
		}
		times[step] = times[step][1:]
	}
	ours := make([]float64, slices)
	for i := range ours {
		ours[i] = times[accepted][i] - times[authenticated][i]
	}
	const title = "A slice of the real Liqo, seen after its consumer's create, %d slices one after the other"
	t := r.section(fmt.Sprintf(title, slices), "step", "median", "p99")
	row := func(what string, all []float64) { t.row(what, span(quantile(all, 0.5)), span(quantile(all, 0.99))) }
	row("the provider has the replica (Liqo)", times[replicated])
	row("Liqo has authenticated it (Liqo)", times[authenticated])
	row("the operator has accepted it", times[accepted])
	row("the provider has the quota (Liqo)", times[quota])
	row("the consumer sees that it is accepted (Liqo)", times[seen])
	row("the consumer has the virtual node (Liqo)", times[usable])
	row("the operator's part: from authenticated to accepted", ours)
	for _, whole := range []struct {
		name string
		step int
	}{{"from create to accepted", accepted}, {"from create to the virtual node", usable}} {
		shares := make([]float64, slices)
		for i := range shares {
			shares[i] = ours[i] / times[whole.step][i]
		}
		r.ratio("the operator's part of a slice", whole.name, spreadOf(shares))
	}
	return nil
}
