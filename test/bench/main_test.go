package bench

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // errors are returned
	os.Exit(m.Run())
}

// This test does not judge the figures: the machine may be busy. make test measures nothing else.
func TestEveryFigureIsMeasured(t *testing.T) {
	self, err := os.Executable()
	test.Must(t, err)
	want := map[string]string{}
	add := func(units string, names ...string) {
		for _, name := range names {
			want[name] = units
		}
	}
	for _, callers := range []string{"1", "64"} {
		server := "Read/callers=" + callers + "/server="
		add("cpu-ns objects", server+"ours")
		add("cpu-ns objects q1-cpu-ns q1-objects q3-cpu-ns q3-objects x-cpu-ns x-objects", server+"bare", server+"generated")
	}
	add("live-B rss-B", "Streams/server=ours")
	add("live-B q1-live-B q1-rss-B q3-live-B q3-rss-B rss-B x-live-B x-rss-B", "Streams/server=bare")
	for _, period := range []string{"0s", "100ms"} {
		add("event-p50-ms event-p99-ms request-p50-ms request-p99-ms", "Push/period="+period)
		add("first-to-last-p50-ms last-p50-ms last-p99-ms middle-p50-ms one-p50-ms one-p99-ms",
			"FanOut/server=bare/period="+period, "FanOut/server=ours/period="+period)
	}
	start := "Cluster/pods=50/start="
	add("cpu-s peak-MiB ready-s rss-MiB", start+"empty/program=operator", start+"full/program=operator")
	for _, program := range []string{"reflector", "stripped", "cache", "list"} {
		add("cpu-s peak-MiB q1-cpu-s q1-peak-MiB q1-ready-s q1-rss-MiB q3-cpu-s q3-peak-MiB q3-ready-s q3-rss-MiB "+
			"ready-s rss-MiB x-cpu-s x-peak-MiB x-ready-s x-rss-MiB", start+"full/program="+program)
	}
	for _, pods := range []string{"20", "50"} {
		add("evaluations/period operator-cpu-µs/event reflector-cpu-µs/event watch-cpu-µs/event x-reflector",
			"Cluster/pods="+pods+"/events=quiet", "Cluster/pods="+pods+"/events=loud")
	}
	add("cpu-s goroutines-last/second-tenth goroutines-left least-rss-MiB most-rss-MiB rss-last/second-tenth", "Soak/churn")
	for _, from := range []string{"from=scratch", "change=none", "change=policy", "change=pods"} {
		add("B/op allocs/op ns/op", "Evaluate/consumers=20/busy=4/"+from)
	}
	for _, event := range []string{"changed", "replaced"} {
		add("B/op allocs/op ns/op", "PodEvent/pods=100/event="+event)
	}
	add("B/op allocs/op ns/op", "EvaluateNamed")

	got := map[string]string{}
	for times, names := range map[string]string{"3x": "Read|Streams|Push|FanOut|Evaluate|PodEvent", "250x": "Cluster|Soak"} {
		out, err := exec.CommandContext(t.Context(), self,
			"-test.run=^$", "-test.short", "-test.benchtime="+times, "-test.bench="+names).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		maps.Copy(got, measured(t, string(out)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("units of each benchmark (-want +got):\n%s", diff)
	}
}

// measured returns the units that each benchmark has reported.
func measured(t *testing.T, output string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\t(.*)$`).FindAllStringSubmatch(output, -1) {
		cells := strings.Fields(line[2])
		var units []string
		for figure := range slices.Chunk(cells, 2) {
			value, err := strconv.ParseFloat(figure[0], 64)
			if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
				t.Errorf("%s: %s %s is not a figure", line[1], figure[0], figure[1])
			}
			units = append(units, figure[1])
		}
		slices.Sort(units)
		all[line[1]] = strings.Join(units, " ")
	}
	return all
}

// A figure that nobody can measure again is not worth publishing.
func TestEveryBenchmarkInTheREADMEExists(t *testing.T) {
	readme := test.Read(t, "README.md")
	var sources strings.Builder
	for _, dir := range []string{".", "../slices", "../accounting", "../../internal/grant", "../../internal/table"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		test.Must(t, err)
		for _, file := range files {
			sources.WriteString(test.Read(t, file))
		}
	}
	names := regexp.MustCompile(`Benchmark\w+`).FindAllString(readme, -1)
	if len(names) < 20 {
		t.Errorf("the README names %d benchmarks, want one for each figure", len(names))
	}
	for _, name := range names {
		if !strings.Contains(sources.String(), "func "+name+"(b *testing.B)") {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	a := []figures{{"cpu": 2}, {"cpu": 300}, {"cpu": 6}}
	b := []figures{{"cpu": 1}, {"cpu": 100}, {"cpu": 2}}
	ratios := quotients(each(a, "cpu"), each(b, "cpu"))
	got := []float64{quantile(ratios, 0.25), quantile(ratios, 0.5), quantile(ratios, 0.75)}
	if want := []float64{2, 3, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
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

func TestMoreEvaluationsOrWritesThanAllowedAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		events eventCost
		want   string
	}{
		"one evaluation in each batch period": {eventCost{seconds: 30, evaluations: 300}, ""},
		"more evaluations": {
			eventCost{seconds: 30, evaluations: 303}, "303 evaluations in 300 batch periods",
		},
		"statuses every 10 s": {
			eventCost{seconds: 30, requests: map[string]float64{"PUT": 12, "POST": 24, "GET": 99}}, "",
		},
		"a write for each event": {
			eventCost{seconds: 30, requests: map[string]float64{"PUT": 6000}},
			"the API server received map[PUT:6000]: more than 38 writes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.events.check()
			if got := text(err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSamplesWithAllGivenLabelsAreAddedUp(t *testing.T) {
	m, err := parseMetrics([]byte(strings.Join([]string{
		`# TYPE requests_total counter`,
		`requests_total{method="GET",code="200"} 3`, `requests_total{method="GET",code="404"} 4`,
		`requests_total{method="PUT",code="200"} 50`,
		`# TYPE seconds histogram`,
		`seconds_bucket{le="1"} 2`, `seconds_bucket{le="+Inf"} 7`, `seconds_sum 9`, `seconds_count 7`, ``,
	}, "\n")))
	test.Must(t, err)
	for what, c := range map[string]struct{ got, want float64 }{
		"one method":                   {m.sum("requests_total", map[string]string{"method": "GET"}), 7},
		"a method and code":            {m.sum("requests_total", map[string]string{"method": "GET", "code": "404"}), 4},
		"all":                          {m.sum("requests_total", nil), 57},
		"a label that no sample has":   {m.sum("requests_total", map[string]string{"host": ""}), 0},
		"a histogram's observations":   {m.sum("seconds", nil), 7},
		"a metric that does not exist": {m.sum("minutes", nil), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if _, err := parseMetrics([]byte("404 page not found")); err == nil {
		t.Error("an error page was parsed as metrics")
	}
}

func TestCPUTimeAndMemoryOfAProcessAreRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	getrusage := func() time.Duration {
		var usage syscall.Rusage
		test.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := getrusage()
	used, err := cpuOf(os.Getpid())
	test.Must(t, err)
	after := getrusage()
	// Some machines count getrusage in whole ticks.
	const tick = 20e6
	if used < before-tick || used > after+tick {
		t.Errorf("%v CPU time used, want %v to %v", used, before, after)
	}
	memory, err := residentOf(os.Getpid())
	if err != nil || memory.now <= 0 || memory.peak < memory.now {
		t.Errorf("%+v, %v: want 0 < now <= peak", memory, err)
	}
	const unused = 1 << 22 // above the largest PID
	if _, err := cpuOf(unused); err == nil {
		t.Error("a process that does not exist has CPU time")
	}
	if _, err := residentOf(unused); err == nil {
		t.Error("a process that does not exist has memory")
	}
}

func TestGoroutinesThatAreLeftAreListed(t *testing.T) {
	const text = `goroutine profile: total %d
%d @ 0x1 0x2
#	0x1	example.com/some/pkg.(*stream).wait+0x1f	/src/stream.go:7
#	0x2	main.main+0x2	/src/main.go:1

1 @ 0x3
# labels: {"a":"b"}
#	0x3	net/http.(*conn).serve+0x1f	/src/http.go:7

%s
`
	before, err := parseGoroutines(fmt.Sprintf(text, 3, 2, ""))
	test.Must(t, err)
	after, err := parseGoroutines(fmt.Sprintf(text, 6, 4, "1 @ 0x4\n#	0x4	os.read+0x1	/src/os.go:1"))
	test.Must(t, err)
	want := []string{"+1 of os.read", "+2 of pkg.(*stream).wait < main.main"}
	if got := after.since(before); !slices.Equal(got, want) || after.total != 6 {
		t.Errorf("%d goroutines, %q since before; want 6, %q", after.total, got, want)
	}
	want = []string{"-1 of os.read", "-2 of pkg.(*stream).wait < main.main"}
	if got := before.since(after); !slices.Equal(got, want) {
		t.Errorf("in reverse: %q, want %q", got, want)
	}
	if _, err := parseGoroutines("404 page not found"); err == nil {
		t.Error("an error page was parsed as a profile")
	}
}
