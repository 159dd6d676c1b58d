package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/hack/controlplane/egress"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

const (
	namespace = "proffer-system"
	// patience is for anything that a test waits for.
	patience = time.Minute
	pause    = 100 * time.Millisecond
)

// world is a control plane on which the operator works, behind the API server's service proxy.
type world struct {
	cluster *controlplane.Cluster
	client  client.Client
	dir     string
	// plugin is the built kubectl-proffer, and admin the kubeconfig of the administrator.
	plugin, admin string
	// browser is the context of a running Chromium.
	browser context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard()) // controller-runtime complains if nobody does.
	w := &world{dir: t.TempDir()}
	w.admin, w.plugin = filepath.Join(w.dir, "admin"), filepath.Join(w.dir, "kubectl-proffer")
	root, err := process.Checkout()
	test.Must(t, err)
	test.Must(t, process.AddPlugin(t.Context(), w.dir))
	proxy, err := egress.New(w.dir)
	test.Must(t, err)
	// It waits for the connections of the API server, which ends before it.
	t.Cleanup(func() { test.Must(t, proxy.Close()) })
	w.cluster = controlplane.StartTest(t, controlplane.Options{APIServerFlags: map[string][]string{"egress-selector-config-file": {proxy.Config}}})
	w.client, err = client.New(w.cluster.Config, client.Options{})
	test.Must(t, err)
	test.Must(t, w.cluster.WriteKubeconfig(w.admin))
	w.kubectl(t, "apply", "-k", filepath.Join(root, "config", "default"))
	for _, name := range []string{"orchestrator/crd", "orchestrator/role", "orchestrator/toggle_role", "federation/role"} {
		w.kubectl(t, "apply", "-f", filepath.Join(root, "config", "components", name+".yaml"))
	}
	w.startOperator(t, proxy)
	w.populate(t)
	return w
}

// startOperator runs the operator as its ServiceAccount, behind its Service.
func (w *world) startOperator(t *testing.T, proxy *egress.Proxy) {
	t.Helper()
	program, err := process.Build(t.Context(), w.dir)
	test.Must(t, err)
	operator := process.StartTest(t, program, []string{
		"--leader-elect", "--leader-election-namespace=" + namespace, "--grpc-bind-address=:6001", "--metrics-bind-address=:8443",
		"--health-probe-bind-address=:8081", "--orchestrate", "--federation", "--cluster-id=milan",
	}, "KUBECONFIG="+controlplane.KubeconfigFileOf(t, controlplane.AccountConfig(t, w.cluster.Config, namespace, "proffer")))
	operator.AwaitReady(t)
	proxy.Route(operator.Address("metrics"))
	pod, endpoint := egress.Replica(namespace)
	nodestest.Create(t, w.client, pod)
	nodestest.Create(t, w.client, endpoint)
}

// populate creates nodes, pods and policies, and waits until the operator offers by them.
func (w *world) populate(t *testing.T) {
	t.Helper()
	for _, object := range nodestest.Example() {
		nodestest.Create(t, w.client, object)
	}
	w.kubectl(t, "apply", "-f", "testdata/policies.yaml", "-f", "testdata/orchestration.yaml")
	test.Eventually(t, func() error {
		text := fmt.Sprint(w.offers(t).Consumers)
		if !strings.Contains(text, "50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3") {
			return errors.New(text)
		}
		return nil
	})
}

// user returns the kubeconfig of a new user with these Roles in the operator's namespace.
func (w *world) user(t *testing.T, name string, roles ...string) string {
	t.Helper()
	config, err := w.cluster.UserConfig(name)
	test.Must(t, err)
	for _, role := range roles {
		w.kubectl(t, "-n", namespace, "create", "rolebinding", name+"-"+role, "--role="+role, "--user="+name)
	}
	return controlplane.KubeconfigFileOf(t, config)
}

// kubectl runs kubectl as the administrator.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, w.admin, filepath.Join(w.cluster.Assets, "kubectl"), args...)
}

// proffer runs the plugin as the administrator.
func (w *world) proffer(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, w.admin, w.plugin, args...)
}

func run(t *testing.T, kubeconfig, program string, args ...string) string {
	t.Helper()
	// Also at the end of a test.
	out, err := test.Kubectl(context.WithoutCancel(t.Context()), program, kubeconfig, "", args...)
	test.Must(t, err)
	return out
}

// offers returns what the JSON API answers.
func (w *world) offers(t *testing.T) (offers rest.Offers) {
	t.Helper()
	test.Must(t, json.Unmarshal([]byte(w.proffer(t, "offers", "-o", "json")), &offers))
	return offers
}

// overview returns what kubectl proffer status prints.
func (w *world) overview(t *testing.T) (all rest.Overview) {
	t.Helper()
	test.Must(t, json.Unmarshal(w.report(t, "status", "-o", "json"), &all))
	return all
}

// simulate returns what kubectl proffer simulate prints for a file.
func (w *world) simulate(t *testing.T, file string) string {
	t.Helper()
	return string(w.report(t, "simulate", "-f", file))
}

// report runs a command of the plugin that ends with 1 or 2 if something needs somebody, or changes.
func (w *world) report(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.plugin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.admin)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 2) {
		t.Fatal(err)
	}
	return out
}

// dashboard runs kubectl proffer dashboard until the test ends, and returns the address that it prints.
func (w *world) dashboard(t *testing.T, kubeconfig string) (address string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), w.plugin, "dashboard", "--no-browser")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	stdout, err := cmd.StdoutPipe()
	test.Must(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	test.Must(t, cmd.Start())
	t.Cleanup(func() {
		begun := time.Now()
		test.Must(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			t.Errorf("the dashboard ends with %v: %s", err, &stderr)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the dashboard ends %v after Ctrl-C", took)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\S+`).FindString(lines.Text()); address != "" {
			break
		}
	}
	if address == "" {
		t.Fatalf("the dashboard prints no address: %s", &stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return address
}

// crowd applies policies for 1,000 consumers, and waits until the operator offers by them.
func (w *world) crowd(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for p := range 4 {
		var ids []string
		for i := range 250 {
			ids = append(ids, fmt.Sprintf("crowd-%03d", 250*p+i))
		}
		fmt.Fprintf(&text, "apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: crowd-%d}\n"+
			"spec: {class: crowd, consumers: {clusterIDs: [%s]}, offer: {fixed: {cpu: 1, memory: 1Gi, pods: 5}}}\n---\n", p, strings.Join(ids, ","))
	}
	file := filepath.Join(w.dir, "crowd.yaml")
	test.Must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	w.kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { _ = os.Remove(file) })
	test.Eventually(t, func() error {
		if n := len(w.offers(t).Consumers); n < 1000 {
			return fmt.Errorf("%d consumers", n)
		}
		return nil
	})
}
