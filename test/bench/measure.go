package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// cost is what one operation takes, all of it per operation and in this process.
type cost struct {
	// wall and cpu are nanoseconds; cpu includes what the garbage collector uses beside the operation.
	wall, cpu float64
	// bytes and objects are allocated.
	bytes, objects float64
}

// variant is one of the operations that are measured beside each other.
type variant struct {
	name string
	// times is how often the operation runs in a round.
	times int
	op    func()
	// before, which may be nil, runs before each round and is not measured.
	before func() error
}

// rounds measures the variants in turn, round after round, so that whatever else the machine does falls on all of them, and
// returns the costs of each by round. Each round begins with another variant, and one before the first is not counted.
func rounds(ctx context.Context, n int, variants []variant) ([][]cost, error) {
	costs := make([][]cost, len(variants))
	for round := range n + 1 {
		for k := range variants {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			i := (round + k) % len(variants)
			if before := variants[i].before; before != nil {
				if err := before(); err != nil {
					return nil, err
				}
			}
			c, err := measure(variants[i].times, variants[i].op)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				costs[i] = append(costs[i], c)
			}
		}
	}
	return costs, nil
}

func measure(times int, op func()) (cost, error) {
	var before, after runtime.MemStats
	// What other variants left behind is not this one's to clean up.
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu, err := processCPU()
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	for range times {
		op()
	}
	wall := time.Since(start)
	cpuAfter, err := processCPU()
	if err != nil {
		return cost{}, err
	}
	runtime.ReadMemStats(&after)
	per := func(total float64) float64 { return total / float64(times) }
	return cost{
		wall:    per(float64(wall)),
		cpu:     per(float64(cpuAfter - cpu)),
		bytes:   per(float64(after.TotalAlloc - before.TotalAlloc)),
		objects: per(float64(after.Mallocs - before.Mallocs)),
	}, nil
}

// processCPU returns the CPU time that this process has used, in user and in kernel mode.
func processCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// spread is the middle of some figures, and the middle half of them.
type spread struct{ median, low, high float64 }

func spreadOf(figures []float64) spread {
	return spread{median: quantile(figures, 0.5), low: quantile(figures, 0.25), high: quantile(figures, 0.75)}
}

// quantile returns the least figure that a share q of all are at most.
func quantile(figures []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

// median returns the middle over the rounds of one figure of a cost.
func median(costs []cost, figure func(cost) float64) float64 {
	return spreadOf(each(costs, figure)).median
}

// beside returns the ratio of two costs, round by round.
func beside(a, b []cost, figure func(cost) float64) spread {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = figure(a[i]) / figure(b[i])
	}
	return spreadOf(ratios)
}

func each(costs []cost, figure func(cost) float64) []float64 {
	figures := make([]float64, len(costs))
	for i, c := range costs {
		figures[i] = figure(c)
	}
	return figures
}

func wall(c cost) float64      { return c.wall }
func cpu(c cost) float64       { return c.cpu }
func allocated(c cost) float64 { return c.bytes }
func objects(c cost) float64   { return c.objects }

// describe adds a row for each variant.
func (s *section) describe(variants []variant, costs [][]cost) {
	for i, v := range variants {
		c := costs[i]
		s.row(v.name, span(median(c, wall)), span(median(c, cpu)), memory(median(c, allocated)), fmt.Sprintf("%.0f", median(c, objects)))
	}
}

var costColumns = []string{"time", "CPU", "allocated", "objects"}
