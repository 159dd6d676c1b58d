package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// cost is what one operation costs: nanoseconds of CPU time, including garbage collection, and the
// number of allocated objects.
type cost struct{ cpu, objects float64 }

// processCPU returns the CPU time of this process in user and kernel mode.
func processCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// spread is the median and the quartiles of some figures.
type spread struct{ median, low, high float64 }

func spreadOf(figures []float64) spread {
	return spread{median: quantile(figures, 0.5), low: quantile(figures, 0.25), high: quantile(figures, 0.75)}
}

// quantile returns the smallest figure that at least a share q of all figures do not exceed.
func quantile(figures []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

// each returns one figure of each measurement.
func each[T any](all []T, figure func(T) float64) []float64 {
	figures := make([]float64, len(all))
	for i, one := range all {
		figures[i] = figure(one)
	}
	return figures
}

// median returns the median of one figure of all measurements.
func median[T any](all []T, figure func(T) float64) float64 { return quantile(each(all, figure), 0.5) }

// ratioByRound returns the ratios of one figure of two candidates, which are computed round by round.
func ratioByRound[T any](a, b []T, figure func(T) float64) spread {
	return quotients(each(a, figure), each(b, figure))
}

// quotients returns the ratios of two figures, round by round.
func quotients(a, b []float64) spread {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return spreadOf(ratios)
}

func cpu(c cost) float64     { return c.cpu }
func objects(c cost) float64 { return c.objects }
