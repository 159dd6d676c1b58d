package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// cost is the cost of one operation: nanoseconds of CPU time, the garbage collector's included, and
// the number of objects allocated.
type cost struct{ cpu, objects float64 }

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

func cpu(c cost) float64     { return c.cpu }
func objects(c cost) float64 { return c.objects }
