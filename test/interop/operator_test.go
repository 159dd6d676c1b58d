package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// operator is the program under test. It keeps its ports over restarts.
type operator struct {
	*process
	grpc, flat, metrics, health string
	args                        []string
	runs                        int
}

// offeredRecord is the object in which operators record what they have offered.
const offeredRecord = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: proffer-offered, namespace: default}\n"

// newOperator returns an operator that is not started.
func newOperator(t *testing.T, args ...string) *operator {
	t.Helper()
	t.Cleanup(func() { remove(t, offeredRecord) }) // The next test has another cluster.
	ports := freeAddresses(t, 4)
	o := &operator{grpc: ports[0], flat: ports[1], metrics: ports[2], health: ports[3]}
	o.args = append([]string{
		"--kubeconfig", programs.kubeconfig,
		"--grpc-bind-address", o.grpc, "--metrics-bind-address", o.metrics, "--health-probe-bind-address", o.health,
	}, args...)
	return o
}

// startOperator starts an operator and does not wait for it.
func startOperator(t *testing.T, args ...string) *operator {
	t.Helper()
	o := newOperator(t, args...)
	o.start(t)
	return o
}

// readyOperator starts an operator and waits until it is ready.
func readyOperator(t *testing.T, args ...string) *operator {
	t.Helper()
	o := startOperator(t, args...)
	o.awaitReady(t)
	return o
}

func (o *operator) start(t *testing.T) {
	t.Helper()
	o.runs++
	name := fmt.Sprintf("the operator, run %d", o.runs)
	p := start(t, name, exec.Command(programs.operator, o.args...))
	o.process = p
	t.Cleanup(func() {
		// Cleanups run in reverse order, so the process still runs here.
		for _, report := range []string{"WARNING: DATA RACE", "panic:", "fatal error:"} {
			if p.output.contains(report) {
				t.Errorf("%s printed %q", name, report)
			}
		}
	})
}

// terminate sends SIGTERM, as Kubernetes does, and requires exit status 0.
func (o *operator) terminate(t *testing.T) {
	t.Helper()
	o.signal(syscall.SIGTERM)
	if err := o.wait(deadline(t)); err != nil {
		t.Fatalf("the operator after SIGTERM: %v", err)
	}
}

func (o *operator) awaitReady(t *testing.T) {
	t.Helper()
	await(t, "the operator becomes ready", func() error {
		if !o.alive() {
			t.Fatalf("the operator ended: %v", o.err)
		}
		_, err := get(t.Context(), http.DefaultClient, "http://"+o.health+"/readyz", "")
		return err
	})
}

// metric returns the sum of all series of a metric. Reading it needs a token.
func (o *operator) metric(t *testing.T, token, name string) (float64, error) {
	t.Helper()
	body, err := get(t.Context(), selfSigned, "https://"+o.metrics+"/metrics", token)
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return sum, nil
}

// selfSigned accepts the certificate that the operator signs itself.
var selfSigned = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

func get(ctx context.Context, client *http.Client, url, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return string(body), err
}

// freeAddresses returns addresses of the loopback device whose ports are free. They are below those that
// systems give to connections: the operator needs them again after a restart.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var addresses []string
	var err error
	for range 100 * n {
		var l net.Listener
		l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000))))
		if err != nil {
			continue // The port is taken.
		}
		defer func() { _ = l.Close() }() // only at the end, so that the addresses differ
		if addresses = append(addresses, l.Addr().String()); len(addresses) == n {
			return addresses
		}
	}
	t.Fatalf("no port is free, the last of %d attempts: %v", 100*n, err)
	return nil
}

// scraper returns a token that may read metrics.
func scraper(t *testing.T) string {
	t.Helper()
	apply(t, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: interop-scraper}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: interop-scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: interop-scraper}
subjects: [{kind: ServiceAccount, name: scraper, namespace: default}]
`)
	return strings.TrimSpace(kubectl(t, "", "create", "token", "scraper", "--namespace=default"))
}
