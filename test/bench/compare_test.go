package bench

import (
	"slices"
	"testing"
)

// figures are what one round measured, by unit.
type figures map[string]float64

// candidate is one of several programs that are compared.
type candidate struct {
	name    string
	measure func() figures
}

// compare measures the candidates in turn, round after round, so that other load on the machine falls
// on all of them. It reports the medians of each as a sub-benchmark. For all candidates but the first,
// it also reports the first one's figures in relation to theirs, round by round: the median (x-) and
// the quartiles (q1-, q3-).
func compare(b *testing.B, key string, rounds int, candidates ...candidate) {
	b.Helper()
	all := make([][]figures, len(candidates))
	for round := range rounds {
		for k := range candidates {
			i := (round + k) % len(candidates)
			all[i] = append(all[i], candidates[i].measure())
		}
	}
	for i, c := range candidates {
		b.Run(key+"="+c.name, func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op") // reports nothing
			for unit := range all[i][0] {
				b.ReportMetric(quantile(each(all[i], unit), 0.5), unit)
				if i > 0 {
					ratios := quotients(each(all[0], unit), each(all[i], unit))
					b.ReportMetric(quantile(ratios, 0.5), "x-"+unit)
					b.ReportMetric(quantile(ratios, 0.25), "q1-"+unit)
					b.ReportMetric(quantile(ratios, 0.75), "q3-"+unit)
				}
			}
		})
	}
}

// each returns the figures of one unit.
func each(all []figures, unit string) []float64 {
	of := make([]float64, len(all))
	for i := range all {
		of[i] = all[i][unit]
	}
	return of
}

func quotients(a, b []float64) []float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// quantile returns the smallest figure that at least a share q of all figures do not exceed.
func quantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// reportTimes reports the median and the 99th percentile of times in nanoseconds, in milliseconds.
func reportTimes(b *testing.B, name string, ns []float64) {
	b.Helper()
	b.ReportMetric(quantile(ns, 0.5)/1e6, name+"-p50-ms")
	b.ReportMetric(quantile(ns, 0.99)/1e6, name+"-p99-ms")
}
