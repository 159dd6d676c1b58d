package operatorclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func client(t *testing.T, s *operatortest.Server, account operatorclient.Account) *operatorclient.Client {
	t.Helper()
	return operatorclient.NewFlags(s.Flags()).Client(account)
}

func TestOneTokenServesUntilItsLastMinute(t *testing.T) {
	s := operatortest.Start(t)
	reader := client(t, s, operatorclient.Reader)
	ask := func() {
		t.Helper()
		if _, err := reader.Offers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.SetTokenLifetime(30 * time.Second)
	ask()
	s.SetTokenLifetime(10 * time.Minute)
	ask()
	ask()
	if n := s.Tokens(operatorclient.Reader.Name); n != 2 {
		t.Errorf("%d tokens, want one for the token of half a minute and one for the rest", n)
	}
}

func TestEachAccountIsUsedForWhatItMayDo(t *testing.T) {
	s := operatortest.Start(t)
	simulator := client(t, s, operatorclient.Simulator)
	if _, err := simulator.World(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := simulator.Simulate(t.Context(), &rest.Change{Delete: []string{"standard"}}); err != nil {
		t.Error(err)
	}
	if n := s.Tokens(operatorclient.Reader.Name); n != 0 {
		t.Errorf("%d tokens of the reader", n)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	offers, services := operatortest.OperatorPath("GET", rest.OffersPath), &metav1.StatusDetails{Name: "https:proffer-metrics:https", Kind: "services"}
	status := operatortest.Status
	for name, tc := range map[string]struct {
		request string
		refusal operatortest.Refusal
		want    string
		again   bool
	}{
		"no right to a token": {
			operatortest.ReaderPath, operatortest.Refusal{Code: 403, Body: status(403, metav1.StatusReasonForbidden, `serviceaccounts "proffer-reader" is forbidden`, nil)},
			`you may not create serviceaccounts/token "proffer-reader" in namespace proffer-system: ask for Role proffer-plugin-reader, ` +
				`as in: kubectl -n proffer-system create rolebinding NAME --role=proffer-plugin-reader --user=USER`, false,
		},
		"no ServiceAccount": {
			operatortest.ReaderPath, operatortest.Refusal{Code: 404, Body: status(404, metav1.StatusReasonNotFound, `serviceaccounts "proffer-reader" not found`, nil)},
			`there is no ServiceAccount proffer-reader in namespace proffer-system: the operator is not installed there ` +
				`(choose its namespace with --operator-namespace), or it is too old for this plugin`, false,
		},
		"no credentials": {
			operatortest.ReaderPath, operatortest.Refusal{Code: 401, Body: status(401, metav1.StatusReasonUnauthorized, "Unauthorized", nil)},
			"the API server does not accept your credentials: log in again, or choose others with --context or --kubeconfig (Unauthorized)", false,
		},
		"no right to the proxy": {
			offers, operatortest.Refusal{Code: 403, Body: status(403, metav1.StatusReasonForbidden, "forbidden", services)},
			`you may not get services/proxy "https:proffer-metrics:https" in namespace proffer-system: ask for Role proffer-plugin-reader, ` +
				`as in: kubectl -n proffer-system create rolebinding NAME --role=proffer-plugin-reader --user=USER`, false,
		},
		"no Service": {
			offers, operatortest.Refusal{Code: 404, Body: status(404, metav1.StatusReasonNotFound, "not found", services)},
			`there is no Service proffer-metrics in namespace proffer-system: the operator is not installed there ` +
				`(choose its namespace with --operator-namespace), or it is too old for this plugin`, false,
		},
		"no replica that is ready": {
			offers, operatortest.Refusal{Code: 503, Body: status(503, metav1.StatusReasonServiceUnavailable, `no endpoints available for service "proffer-metrics"`, nil)},
			"no replica of the operator is ready: try again in a moment, or look at: kubectl -n proffer-system get pods", true,
		},
		"a replica that is gone": {
			offers, operatortest.Refusal{Code: 503, Body: "error trying to reach service: connection refused"},
			"the API server cannot reach the operator (error trying to reach service: connection refused): try again in a moment, " +
				"or look at: kubectl -n proffer-system get pods", true,
		},
		"a replica behind a firewall": {
			offers, operatortest.Refusal{Code: 503, Body: "error trying to reach service: dial tcp 10.0.0.7:8443: i/o timeout"}, noAnswer, false,
		},
		"a replica behind a firewall, with agents of the control plane": {
			offers, operatortest.Refusal{Code: 503, Body: "error trying to reach service: dial timeout, backstop"}, noAnswer, false,
		},
		"an operator before its first evaluation": {
			offers, operatortest.Refusal{Code: 503, Body: status(503, metav1.StatusReasonServiceUnavailable, "no offers yet: try again in a moment", nil)},
			"the operator is not ready: no offers yet: try again in a moment", true,
		},
		"an operator that does not know the header": {
			offers, operatortest.Refusal{Code: 401, Body: "Authentication failed"},
			"the operator in namespace proffer-system did not accept the token: it is too old for this plugin, or cannot ask the API server to review tokens", false,
		},
		"a token that is not one": {
			offers, operatortest.Refusal{Code: 500, Body: "Authentication failed"},
			"the operator in namespace proffer-system did not accept the token: it is too old for this plugin, or cannot ask the API server to review tokens", false,
		},
		"an account without its role": {
			offers, operatortest.Refusal{Code: 403, Body: "Authorization denied for user system:serviceaccount:proffer-system:proffer-reader"},
			"the operator refuses GET /offers to ServiceAccount proffer-reader in namespace proffer-system: bind ClusterRole proffer-offers-reader to it, as the manifests do", false,
		},
		"an operator without the path": {
			offers, operatortest.Refusal{Code: 404, Body: "404 page not found"},
			"the operator in namespace proffer-system does not serve /offers: it is too old for this plugin", false,
		},
		"a busy operator": {
			offers, operatortest.Refusal{Code: 429, Body: status(429, metav1.StatusReasonTooManyRequests, "another simulation runs", nil), Header: map[string]string{"Retry-After": "2"}},
			"the operator is busy: another simulation runs: try again in a moment (after 2 s)", true,
		},
		"a request that is wrong": {
			offers, operatortest.Refusal{Code: 400, Body: status(400, metav1.StatusReasonBadRequest, `drain[0]: there is no Node "n"`, nil)},
			`the operator refuses the request: drain[0]: there is no Node "n"`, false,
		},
		"any other error": {
			offers, operatortest.Refusal{Code: 504, Body: "too slow"}, "the operator answers 504: too slow", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := operatortest.Start(t)
			s.Refuse(tc.request, tc.refusal)
			_, err := client(t, s, operatorclient.Reader).Offers(t.Context())
			if err == nil || err.Error() != tc.want || errors.Is(err, operatorclient.ErrTryAgain) != tc.again {
				t.Errorf("got  %v (again: %v)\nwant %s", err, errors.Is(err, operatorclient.ErrTryAgain), tc.want)
			}
		})
	}
}

const noAnswer = "the operator does not answer: probably a firewall keeps the control plane from its pod on TCP port 8443: " +
	"allow this port from the control plane to the nodes, as in docs/how-to/run-with-a-private-control-plane.md; see the error of the control plane with: " +
	"kubectl get --raw /api/v1/namespaces/proffer-system/services/https:proffer-metrics:https/proxy/offers"

// silent does not answer until its caller is gone.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestAnOperatorThatIsSilentIsExplainedInTime(t *testing.T) {
	s := operatortest.Start(t)
	flags := operatorclient.NewFlags(s.Flags())
	if flags.FirstByte != 10*time.Second {
		t.Errorf("an answer has to begin within %v", flags.FirstByte)
	}
	docs := test.Read(t, "../../../../docs/how-to/find-out-what-hangs.md")
	simulation := flags.FirstByte + 2*rest.SimulateTimeout
	text := fmt.Sprintf("gives up after %.0f seconds (%.0f for `simulate`)", flags.FirstByte.Seconds(), simulation.Seconds())
	if !strings.Contains(docs, text) {
		t.Errorf("docs/how-to/find-out-what-hangs.md lacks %q", text)
	}
	patient := client(t, s, operatorclient.Reader)
	if _, err := patient.Offers(t.Context()); err != nil { // The token is there from now on.
		t.Fatal(err)
	}
	s.Handle(operatortest.OperatorPath("GET", rest.OffersPath), silent)
	flags.FirstByte = 50 * time.Millisecond
	hasty := flags.Client(operatorclient.Reader)
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, ask := range map[string]func() error{
		"offers":  func() error { _, err := hasty.Offers(t.Context()); return err },
		"version": func() error { _, err := hasty.Version(t.Context()); return err },
		"a page": func() error {
			page, err := hasty.Page(t.Context(), page())
			if err == nil {
				err = page.Body.Close()
			}
			return err
		},
		"a short timeout": func() error { _, err := patient.Offers(hurried); return err },
	} {
		if err := ask(); err == nil || err.Error() != noAnswer || !errors.Is(err, operatorclient.ErrNoAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := patient.Offers(gone); !errors.Is(err, context.Canceled) || errors.Is(err, operatorclient.ErrNoAnswer) {
		t.Errorf("a caller that is gone: %v", err)
	}
}

func page() *operatorclient.PageRequest {
	return &operatorclient.PageRequest{Method: http.MethodGet, Path: rest.OffersPath, Header: http.Header{}, Body: http.NoBody}
}

func TestARefusedSimulationNamesItsOwnRights(t *testing.T) {
	s := operatortest.Start(t)
	details := &metav1.StatusDetails{Name: "https:proffer-metrics:https", Kind: "services"}
	s.Refuse(operatortest.OperatorPath("POST", rest.SimulatePath), operatortest.Refusal{
		Code: http.StatusForbidden, Body: operatortest.Status(403, metav1.StatusReasonForbidden, "forbidden", details),
	})
	_, err := client(t, s, operatorclient.Simulator).Simulate(t.Context(), &rest.Change{})
	want := `you may not create services/proxy "https:proffer-metrics:https" in namespace proffer-system: ask for Role proffer-plugin-simulator, ` +
		`as in: kubectl -n proffer-system create rolebinding NAME --role=proffer-plugin-simulator --user=USER`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAConsumerIsOneElementOfThePath(t *testing.T) {
	s := operatortest.Start(t)
	for _, id := range []string{"rome", "a/b", "a b", "%2f", "Ünïcode", "?x=y"} {
		c, err := client(t, s, operatorclient.Reader).Consumer(t.Context(), id)
		if err != nil || c.ClusterID != id {
			t.Errorf("%q: got %v, %v", id, c, err)
		}
	}
}

func TestAChangeThatIsTooLargeIsNotSent(t *testing.T) {
	s := operatortest.Start(t)
	change := &rest.Change{Delete: make([]string, rest.MaxChange/3)}
	if _, err := client(t, s, operatorclient.Simulator).Simulate(t.Context(), change); err == nil || len(s.Changes()) > 0 {
		t.Errorf("got %v, and %d requests", err, len(s.Changes()))
	}
}

func TestASnapshotOfAnotherFormatIsRefused(t *testing.T) {
	s := operatortest.Start(t)
	s.Refuse(operatortest.OperatorPath("GET", rest.SnapshotPath), operatortest.Refusal{Code: http.StatusOK, Body: rest.World{Version: 2}})
	_, err := client(t, s, operatorclient.Simulator).World(t.Context())
	want := "the operator's snapshot is of format 2, and this plugin reads format 1: use the version of the plugin that fits the operator"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	asked := make(chan http.Header, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := operatortest.Start(t)
		s.Refuse(operatortest.OperatorPath("GET", rest.OffersPath), operatortest.Refusal{Code: code, Body: "", Header: map[string]string{"Location": elsewhere.URL}})
		_, err := client(t, s, operatorclient.Reader).Offers(t.Context())
		if want := fmt.Sprintf("the operator answers %d: ", code); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d: %v, want %s", code, err, want)
		}
	}
	select {
	case header := <-asked:
		t.Errorf("another host gets %v", header)
	default:
	}
}
