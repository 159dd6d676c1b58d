package command

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/process"
)

func get(url string) (code int, body string) {
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 10 * time.Second,
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestTheOperatorServesAndEndsInOrder(t *testing.T) {
	cluster := isolationClusterOf(t, false)
	grpcAddress, metricsAddress, probeAddress := process.FreeAddress(t), process.FreeAddress(t), process.FreeAddress(t)
	o, err := parseFlags([]string{
		"--grpc-bind-address=" + grpcAddress, "--metrics-bind-address=" + metricsAddress,
		"--health-probe-bind-address=" + probeAddress,
		"--leader-elect", "--leader-election-namespace=default",
	}, io.Discard, Program{})
	test.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- runOperator(ctx, cluster.Config, o, Program{}) }()

	client := externaltest.Dial(t, grpcAddress)
	// A read before the first offers waits for them.
	if _, err := client.ReadResources(t.Context(), &wire.ClusterIdentity{ClusterID: "rome"},
		grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	test.Eventually(t, func() string {
		code, body := get("http://" + probeAddress + "/readyz")
		return cmp.Diff("200ok", fmt.Sprint(code, body))
	})
	if code, body := get("http://" + probeAddress + "/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d %s", code, body)
	}
	if code, body := get("http://" + probeAddress + "/readyz/watches"); code != http.StatusOK {
		t.Errorf("readyz/watches: %d %s", code, body)
	}
	requireWatchMetrics(t)
	// The listener for metrics opens independently of readiness.
	test.Eventually(t, func() string {
		code, _ := get("https://" + metricsAddress + "/metrics")
		return cmp.Diff(http.StatusUnauthorized, code) // Without a token.
	})

	stream, err := client.Subscribe(t.Context(), &wire.Empty{})
	test.Must(t, err)
	if first, err := stream.Recv(); err != nil || first.GetClusterID() != "" {
		t.Fatalf("the first notification is %v, %v; want an empty ID", first, err)
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	case <-time.After(waitTimeout):
		t.Fatal("the operator did not end")
	}
}

// requireWatchMetrics fails the test unless the metrics include the watches of every client.
func requireWatchMetrics(t *testing.T) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	test.Must(t, err)
	wanted := []string{
		"proffer_watch_oldest_news_seconds", "proffer_api_requests_silent_total", "nodes", "pods",
		"resourcepolicies.proffer.dev", "namespaces",
	}
	for _, family := range families {
		wanted = slices.DeleteFunc(wanted, func(w string) bool {
			return w == family.GetName() || slices.ContainsFunc(family.GetMetric(), func(m *dto.Metric) bool {
				return family.GetName() == "proffer_watch_news_age_seconds" && m.GetLabel()[0].GetValue() == w
			})
		})
	}
	if len(wanted) > 0 {
		t.Errorf("no metrics of %v", wanted)
	}
}
