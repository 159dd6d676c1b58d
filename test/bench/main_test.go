package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

// TestMain lets the test's program run as a server or a follower.
func TestMain(m *testing.M) {
	runAsChild()
	os.Exit(m.Run())
}

// This test does not judge the figures: the machine may be busy.
func TestEveryFigureIsMeasured(t *testing.T) {
	var out bytes.Buffer
	r, err := run(t.Context(), options{short: true, population: tiny, only: names()}, &out, t.Output())
	test.Must(t, err)
	got := map[string]int{}
	figure := regexp.MustCompile(`^-?[0-9][0-9.,]*( ?(ns|µs|ms|s|B|KiB|MiB|%))?$`)
	for _, s := range r.sections {
		title, _, _ := strings.Cut(s.title, ":")
		title, _, _ = strings.Cut(title, ",")
		got[title] += len(s.rows)
		for _, row := range s.rows {
			if len(row) != len(s.columns) {
				t.Errorf("%s: row %q does not have a cell for each of %q", s.title, row, s.columns)
			}
			for _, cell := range row[len(row)-2:] {
				if !figure.MatchString(cell) {
					t.Errorf("%s: row %q: %q is not a figure", s.title, row, cell)
				}
			}
			if !strings.Contains(out.String(), row[0]) {
				t.Errorf("%s: row %q is not printed", s.title, row)
			}
		}
	}
	want := map[string]int{
		"Server CPU for one ReadResources": 6,
		"Memory of one stream that waits":  2,
		"From the API server's event of an edited policy to the notification of a subscriber": 2,
		"To know 5 nodes and 50 pods":             7,
		"200 events of pods a second for 500ms":   4,
		"What there was in the soak":              5,
		"The operator in each tenth of the soak":  10,
		"A push to 20 streams with 300 consumers": 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if len(r.ratios) != 33 {
		t.Errorf("%d ratios, want 33", len(r.ratios))
	}
	for _, x := range r.ratios {
		if math.IsNaN(x.value) || math.IsInf(x.value, 0) || x.what == "" || x.of == "" {
			t.Errorf("%+v is not a ratio", x)
		}
	}
}

// make test never runs the Benchmark functions, so this test runs them once with tiny clusters.
func TestTheBenchmarkFunctionsWork(t *testing.T) {
	setBenchTime(t, "1x")
	for name, benchmark := range map[string]func(*testing.B){
		"Evaluate": func(b *testing.B) { benchmarkEvaluate(b, size{nodes: 20, pods: 200, consumers: 20, busy: 4}) },
		"PodEvent": func(b *testing.B) { benchmarkPodEvent(b, 100) },
	} {
		if r := testing.Benchmark(benchmark); r.N == 0 {
			t.Errorf("Benchmark%s failed", name)
		}
	}
}

func setBenchTime(t *testing.T, value string) {
	t.Helper()
	const name = "test.benchtime"
	before := flag.Lookup(name).Value.String()
	test.Must(t, flag.Set(name, value))
	t.Cleanup(func() { _ = flag.Set(name, before) })
}

func TestAnUnknownMeasurementIsRejected(t *testing.T) {
	_, err := run(t.Context(), options{only: []string{"reads", "writes"}}, t.Output(), t.Output())
	want := `unknown measurement "writes": use some of reads, streams, push, startup, idle, slices, soak`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	a := []cost{{cpu: 2}, {cpu: 300}, {cpu: 6}}
	b := []cost{{cpu: 1}, {cpu: 100}, {cpu: 2}}
	if diff := cmp.Diff(spread{median: 3, low: 2, high: 3}, ratioByRound(a, b, cpu),
		cmp.AllowUnexported(spread{})); diff != "" {
		t.Error(diff)
	}
}

func TestAQuantileIsOneOfTheFigures(t *testing.T) {
	figures := make([]float64, 100)
	for i := range figures {
		figures[i] = float64(100 - i)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := quantile(figures, q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
}

func TestFiguresHaveThreeSignificantDigitsAndAUnit(t *testing.T) {
	for want, got := range map[string]string{
		"950 ns": span(950), "1.50 µs": span(1500), "-2.00 ms": span(-2e6), "12.3 s": span(12.34e9),
		"48 B": memory(48), "1.50 KiB": memory(1536), "464 MiB": memory(464 << 20),
		"10,000": thousands(10_000), "1,002,003": thousands(1_002_003), "7": thousands(7),
		"0.96": factor(0.957), "20.5": factor(20.49), "123": factor(123.4),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestTheTimesOfASliceAreSplitBetweenLiqoAndTheOperator(t *testing.T) {
	const ms = 1e6
	r := &report{}
	// The first slice is a warm-up.
	err := reportSlices(r, []byte(`[
		[1, 30000000, 20000000], [1, 60000000, 50000000], [1, 80000000, 60000000],
		[1, 84000000, 64000000], [1, 90000000, 70000000], [1, 110000000, 100000000]]`))
	test.Must(t, err)
	want := [][]string{
		{"the provider has the replica (Liqo)", span(30 * ms), span(30 * ms)},
		{"Liqo has authenticated it (Liqo)", span(60 * ms), span(60 * ms)},
		{"the operator has accepted it", span(80 * ms), span(80 * ms)},
		{"the provider has the quota (Liqo)", span(84 * ms), span(84 * ms)},
		{"the consumer sees that it is accepted (Liqo)", span(90 * ms), span(90 * ms)},
		{"the consumer has the virtual node (Liqo)", span(110 * ms), span(110 * ms)},
		{"the operator's part: from authenticated to accepted", span(20 * ms), span(20 * ms)},
	}
	if diff := cmp.Diff(want, r.sections[0].rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	wantRatios := []ratio{
		{what: "the operator's part of a slice", of: "from create to accepted", value: 0.25, low: 1.0 / 6, high: 0.25},
		{what: "the operator's part of a slice", of: "from create to the virtual node", value: 20.0 / 110, low: 0.1,
			high: 20.0 / 110},
	}
	if diff := cmp.Diff(wantRatios, r.ratios, cmp.AllowUnexported(ratio{})); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "[]", "[[1, 2]]", "[[1], [1], [1], [1], [1], [1]]",
		"[[1, 2], [1], [1, 2], [1, 2], [1, 2], [1, 2]]"} {
		if err := reportSlices(&report{}, []byte(text)); err == nil {
			t.Errorf("%q was accepted as times", text)
		}
	}
}
