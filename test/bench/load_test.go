package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/test"
)

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
			"the API server received 6000 PUT: more than 38 writes",
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, strings.Join([]string{
			`# TYPE requests_total counter`,
			`requests_total{method="GET",code="200"} 3`, `requests_total{method="GET",code="404"} 4`,
			`requests_total{method="PUT",code="200"} 50`,
			`# TYPE seconds histogram`,
			`seconds_bucket{le="1"} 2`, `seconds_bucket{le="+Inf"} 7`, `seconds_sum 9`, `seconds_count 7`, ``,
		}, "\n"))
	}))
	defer server.Close()
	m, err := scrape(t.Context(), server.Client(), server.URL+"/metrics", "")
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
	if _, err := scrape(t.Context(), server.Client(), server.URL+"/other", ""); err == nil {
		t.Error("an answer of 404 was parsed as metrics")
	}
}

func TestCPUTimeAndMemoryOfAProcessAreRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	before, err := processCPU()
	test.Must(t, err)
	used, err := cpuOf(os.Getpid())
	test.Must(t, err)
	after, err := processCPU()
	test.Must(t, err)
	// Some machines count getrusage in whole ticks.
	const tick = 20e6
	if used < before-tick || used > after+tick {
		t.Errorf("%v CPU time used, want %v to %v", used, before, after)
	}
	memory, err := residentOf(os.Getpid())
	if err != nil || memory.anonymous <= 0 || memory.now <= memory.anonymous || memory.peak < memory.now {
		t.Errorf("%+v, %v: want 0 < anonymous < now <= peak", memory, err)
	}
	const unused = 1 << 22 // above the largest PID
	if _, err := cpuOf(unused); err == nil {
		t.Error("a process that does not exist has CPU time")
	}
	if _, err := residentOf(unused); err == nil {
		t.Error("a process that does not exist has memory")
	}
}

func TestTheAccountOfAReflectorFollowsItsPods(t *testing.T) {
	pod := func(uid, cpu string) *corev1.Pod {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		}
	}
	synced := 0
	a := &account{known: func() { synced++ }}
	steps := []struct {
		name string
		do   func() error
		want int64
	}{
		{"two are listed", func() error { return a.Replace([]any{pod("a", "1"), pod("b", "2")}, "7") }, 3000},
		{"one is created", func() error { return a.Add(pod("c", "500m")) }, 3500},
		{"one is resized", func() error { return a.Update(pod("a", "4")) }, 6500},
		{"one is deleted", func() error { return a.Delete(pod("b", "2")) }, 4500},
		{"a new list has only one", func() error { return a.Replace([]any{pod("c", "500m")}, "9") }, 500},
	}
	for _, s := range steps {
		if err := s.do(); err != nil || a.cpu != s.want {
			t.Errorf("%s: %d, %v; want %d", s.name, a.cpu, err, s.want)
		}
	}
	if synced != 2 {
		t.Errorf("known was called %d times, want 2", synced)
	}
	if err := a.Add(&corev1.Service{}); err == nil {
		t.Error("a Service was accepted as a pod or a node")
	}
}

func TestAFollowerRejectsInvalidArguments(t *testing.T) {
	kubeconfig := t.TempDir() + "/kubeconfig"
	content := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],
		"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"current-context":"a","users":[{"name":"a"}]}`
	test.Must(t, os.WriteFile(kubeconfig, []byte(content), 0o600))
	for want, args := range map[string][]string{
		"follow: want a way and the path of a kubeconfig":             {followList},
		`follow: unknown way "guess"`:                                 {"guess", kubeconfig},
		"follow: stat " + kubeconfig + "s: no such file or directory": {followList, kubeconfig + "s"},
	} {
		if err := followCluster(args, strings.NewReader(""), t.Output()); text(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// No server listens at the address of the kubeconfig.
	if err := followCluster([]string{followList, kubeconfig}, strings.NewReader(""), t.Output()); err == nil {
		t.Error("lists were read without an API server")
	}
}

func TestASoakThatIsTooShortIsRejected(t *testing.T) {
	_, err := run(t.Context(), options{only: []string{"soak"}, scale: 0.00001}, t.Output(), t.Output())
	want := "soak: -scale 1e-05 leaves 10 events: write at least 5e-05"
	if text(err) != want {
		t.Errorf("got %v, want %s", err, want)
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
