package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// most repeats a text until a body of it and a little more has the size that is allowed.
func most(text string) string { return strings.Repeat(text, (rest.MaxChange-1000)/len(text)) }

// manyConsumers is a site with pods of 1,000 consumers that are offered a node. With the race detector, a simulation
// has more time.
func manyConsumers(t *testing.T) *site {
	s := newSite(t)
	s.server.simulateTimeout = kubetest.Slower(rest.SimulateTimeout, 5)
	s.ledger.SetNode(node("n1", 8000))
	for i := range 1000 {
		s.ledger.SetPod(podOf(fmt.Sprintf("consumer-%d", i), fmt.Sprint(i), "n1", 1))
	}
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all")})
	return s
}

// TestAHostileBodyIsAnsweredShortlyAndSoon sends what takes little to write. Each answer, for 1,000
// consumers, is of a size that no such body may change, and comes within the time of a simulation.
func TestAHostileBodyIsAnsweredShortlyAndSoon(t *testing.T) {
	s := manyConsumers(t)
	policy := func(spec string) string {
		return `{"apply":[{"metadata":{"name":"p"},"spec":{"class":"gold","offer":{"nodes":{}},` + spec + `}}]}`
	}
	nodes := func(allocatable string) string {
		return `{"addNodes":[{"count":10000,"allocatable":{` + allocatable + `}}]}`
	}
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			_, _ = fmt.Fprintf(&b, format+",", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for _, tc := range []struct {
		name, body string
		code       int
		text       string
	}{
		{"lists in lists", `{"apply":` + most("["), 400, ""},
		{"objects in annotations", `{"apply":[{"metadata":{"annotations":` + most(`{"a":`), 400, ""},
		{"lists in what is skipped", `{"apply":[{"metadata":{"managedFields":[{"fieldsV1":` + most("["), 400, ""},
		{"a list of empty policies", `{"apply":[` + most("{},") + `{}]}`, 400, "write at most 32"},
		{"a list of empty nodes", `{"addNodes":[` + most("{},") + `{}]}`, 400, "write at most 64"},
		{"the same member many times", "{" + most(`"apply":[{}],`) + `"apply":[]}`, 400, "write at most 32"},
		{"empty overrides", policy(`"overrides":[` + most("{},") + `{}]`), 400, "write at most 512"},
		{"empty tolerations", `{"apply":[{"metadata":{"name":"p"},"spec":{"offer":{"nodes":{"tolerations":[` + most("{},") + `{}]}}}}]}`, 400, "write at most 4096"},
		{"a list of nothing", "null", 400, "it has null where { should be"},
		{"no list", `{"apply":{}}`, 400, "it has { where [ should be"},
		{"a hostile status", `{"apply":[{"metadata":{"name":"p"},"spec":{"offer":{"nodes":{}}},"status":{"capacity":{"cpu":"1e-999999999"}}}]}`, 200, `"Shadowed"`},
		{"null for a list", `{"apply":null,"delete":null,"drain":null,"addNodes":null}`, 200, ""},
		{"an unknown member", `{"aply":[]}`, 400, "aply: unknown field"},
		{"a long name", `{"apply":[{"metadata":{"name":"` + most("a") + `"},"spec":{"offer":{"nodes":{}}}}]}`, 400, "metadata.name"},
		{"a long class", `{"apply":[{"metadata":{"name":"p"},"spec":{"class":"` + most("a") + `","offer":{"nodes":{}}}}]}`, 200, `"Invalid"`},
		{"a long cluster ID", policy(`"consumers":{"clusterIDs":["` + most("a") + `"]}`), 400, "write at most 63"},
		{"a long label", policy(`"consumers":{"selector":{"matchLabels":{"a":"` + most("a") + `"}}}`), 200, `"Invalid"`},
		{"a long label key", policy(`"consumers":{"selector":{"matchLabels":{"` + most("a") + `":"a"}}}`), 200, `"Invalid"`},
		{"many labels", policy(`"consumers":{"selector":{"matchLabels":{` + many(`"k%d":""`, 60_000) + `}}}`), 400, "write at most 4096"},
		{"many values", policy(`"consumers":{"selector":{"matchExpressions":[{"key":"k","operator":"In","values":[` + many(`"%d"`, 100_000) + `]}]}}`), 400, "write at most 4096"},
		{"many labels of virtual nodes", policy(`"slices":{"nodeLabels":{` + many(`"-%d":"-"`, 60_000) + `}}`), 400, "write at most 64"},
		{"many names of classes", policy(`"slices":{"storageClasses":[` + many(`"c%d"`, 100_000) + `]}`), 400, "write at most 64"},
		{"many resources", policy(`"overrides":[{"consumers":{"clusterIDs":["a"]},"offer":{"max":{` + many(`"r/%d":1`, 60_000) + `}}}]`), 400, "write at most 32"},
		{"one resource many times", `{"apply":[{"metadata":{"name":"p"},"spec":{"offer":{"nodes":{},"resources":[` + most(`"cpu",`) + `"cpu"]}}}]}`, 400, "write at most 64"},
		{"a resource with a long name", `{"apply":[{"metadata":{"name":"p"},"spec":{"offer":{"fixed":{"` + most("a") + `":1}}}}]}`, 200, `"Invalid"`},
		{"a policy twice", `{"apply":[{"metadata":{"name":"p"}},{"metadata":{"name":"p"}}]}`, 400, "once in apply and delete"},
		{"deleted many times", `{"delete":[` + most(`"all",`) + `"all"]}`, 200, ""},
		{"drained many times", `{"drain":[` + most(`"n1",`) + `"n1"]}`, 200, ""},
		{"a huge exponent", nodes(`"cpu":"1e999999999"`), 400, v1alpha1.AmountNotAQuantity},
		{"a tiny exponent", nodes(`"cpu":"1e-999999999"`), 400, v1alpha1.AmountNotAQuantity},
		{"an exponent that wraps", nodes(`"cpu":"1e4294967295"`), 400, ""},
		{"three digits of an exponent", nodes(`"memory":"1e300"`), 400, v1alpha1.AmountNotAQuantity},
		{"an amount beyond int64", nodes(`"memory":"1e99"`), 400, v1alpha1.AmountTooLarge},
		{"an amount of cpu beyond int64", nodes(`"cpu":"1E"`), 400, v1alpha1.AmountTooLargeCPU},
		{"a negative amount", nodes(`"cpu":"-1"`), 400, v1alpha1.AmountNegative},
		{"a huge exponent in a policy", policy(`"overrides":[{"consumers":{"clusterIDs":["a"]},"offer":{"max":{"cpu":"1e999999999"}}}]`), 200, v1alpha1.AmountNotAQuantity},
		{"many digits", nodes(`"cpu":"` + most("9") + `"`), 400, ""},
		{"many digits in a policy", policy(`"overrides":[{"consumers":{"clusterIDs":["a"]},"offer":{"max":{"cpu":"` + most("9") + `"}}}]`), 200, `"Invalid"`},
		{"the largest nodes", nodes(`"cpu":"9223372036854775807m","memory":"9223372036854775807"`), 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if len(tc.body) > rest.MaxChange {
				t.Fatalf("the body has %d bytes", len(tc.body))
			}
			response, text := s.do("POST", "/simulate", tc.body)
			if response.StatusCode != tc.code || !strings.Contains(text, tc.text) {
				t.Errorf("%d %.1000s", response.StatusCode, text)
			}
			if len(text) > 4<<20 {
				t.Errorf("the answer has %d bytes", len(text))
			}
		})
	}
}

func TestASimulationEndsWithItsTimeAndWithTheProcess(t *testing.T) {
	s := newSite(t)
	s.publish(nil)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tc := range []struct {
		ctx  context.Context //nolint:containedctx // It is that of a request.
		code int
		text string
	}{
		{t.Context(), http.StatusGatewayTimeout, "the simulation took longer than 1ns: simulate a smaller change"},
		{ended, http.StatusServiceUnavailable, "this replica is shutting down"},
	} {
		s.server.simulateTimeout = 1
		recorder := httptest.NewRecorder()
		s.server.Handlers()[rest.SimulatePath].ServeHTTP(recorder, httptest.NewRequestWithContext(tc.ctx, http.MethodPost, rest.SimulatePath, strings.NewReader("{}")))
		if recorder.Code != tc.code || !strings.Contains(recorder.Body.String(), tc.text) {
			t.Errorf("%d %s", recorder.Code, recorder.Body)
		}
	}
}

// TestAClientThatDoesNotReadDoesNotDelayTheEnd asks for a snapshot that no buffer holds, and reads
// nothing of it.
func TestAClientThatDoesNotReadDoesNotDelayTheEnd(t *testing.T) {
	s := newSite(t)
	for i := range 64 {
		n := node(fmt.Sprint("n", i), 1)
		n.Labels = map[string]string{"long": strings.Repeat("a", 1<<20)}
		s.ledger.SetNode(n)
	}
	s.publish(nil)
	running, shutDown := context.WithCancel(context.Background())
	defer shutDown()
	server := httptest.NewUnstartedServer(s.server.Handlers()[rest.SnapshotPath])
	server.Config.BaseContext = func(net.Listener) context.Context { return running }
	server.Start()
	defer server.Close()
	response, err := server.Client().Get(server.URL + rest.SnapshotPath)
	test.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	if len(s.server.busy) != 1 {
		t.Fatal("the snapshot is already written")
	}
	shutDown()
	test.Eventually(t, func() string { return cmp.Diff(0, len(s.server.busy)) })
	if _, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Error("a part of a snapshot looks like all of it")
	}
}

// TestReadsDoNotWaitForASimulation reads offers and takes a view while a simulation is under way.
func TestReadsDoNotWaitForASimulation(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	s.server.busy <- struct{}{}
	defer func() { <-s.server.busy }()
	if response, text := s.do("GET", "/offers/rome", ""); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	s.ledger.SetNode(node("n1", 1))
	if view := s.ledger.View([]capacity.Selection{{}}); view.Pools[0].Nodes != 1 {
		t.Errorf("%d nodes", view.Pools[0].Nodes)
	}
}

// TestReadersThatDoNotReadAreFew stands for clients that take as many answers as there are, and read none.
func TestReadersThatDoNotReadAreFew(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	for range maxReaders {
		s.server.reading <- struct{}{}
	}
	for _, path := range []string{"/offers", "/offers/rome"} {
		if response, text := s.do("GET", path, ""); response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" ||
			!strings.Contains(text, "8 requests for offers are answered at a time") {
			t.Errorf("%s: %d %s", path, response.StatusCode, text)
		}
	}
	<-s.server.reading
	if response, text := s.do("GET", "/offers", ""); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if n := len(s.server.reading); n != maxReaders-1 {
		t.Errorf("%d readers after the answer", n)
	}
}
