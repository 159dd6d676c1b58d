// Package example builds examples/custom-operator as docs/plugins.md says, in a folder outside of the
// repository, and examples/custom-monitor as its README says, and runs them.
package example

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/operator"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set.
	os.Exit(m.Run())
}

// commands returns the commands that the page shows in console blocks.
func commands(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	test.Must(t, err)
	var all []string
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}

// notRun are the commands of the page that the test replaces: they need a registry, or a cluster that
// has Proffer.
var notRun = []string{
	"./custom-operator --config=deploy/config.yaml --leader-elect --leader-election-namespace=proffer-system",
	"docker build -t registry.example.com/custom-operator:v0.1.0 .",
	"docker push registry.example.com/custom-operator:v0.1.0",
	"kubectl apply -k deploy",
	"kubectl label node worker-1 example.com/temperature=80",
	"TOKEN=$(kubectl -n proffer-system create token proffer-reader)",
	`curl -sk -H "X-Proffer-Token: $TOKEN" https://localhost:8443/offers/oslo`,
}

// build follows the page, and returns the folder with the program.
func build(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	test.Must(t, err)
	// The clone that the page begins in.
	parent := t.TempDir()
	test.Must(t, os.Symlink(root, filepath.Join(parent, "proffer")))
	dir := filepath.Join(parent, "proffer")
	for _, command := range commands(t, filepath.Join(root, "docs", "plugins.md")) {
		if slices.Contains(notRun, command) {
			continue
		}
		if to, ok := strings.CutPrefix(command, "cd "); ok {
			dir = filepath.Join(parent, filepath.Base(to))
			continue
		}
		command = strings.Replace(command, "../my-operator", filepath.Join(parent, "my-operator"), 1)
		c := exec.CommandContext(t.Context(), "bash", "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	return filepath.Join(parent, "my-operator")
}

// reader returns a client of Liqo's protocol.
func reader(t *testing.T, address string) wire.ResourceReaderClient {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	test.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return wire.NewResourceReaderClient(connection)
}

// cpuOf returns a function that reads the cpu that a server answers for a consumer.
func cpuOf(t *testing.T, from wire.ResourceReaderClient, id string) func() string {
	t.Helper()
	return func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		answer, err := from.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id}, grpc.WaitForReady(true))
		if err != nil || len(answer.GetResourceLists()) == 0 {
			return fmt.Sprint(err)
		}
		return answer.GetResourceLists()[0].GetResources()["cpu"].GetString_()
	}
}

func startCluster(t *testing.T) *controlplane.Cluster {
	t.Helper()
	return controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{filepath.Join("..", "..", "config", "crd", "bases")}})
}

func TestTheExampleIsBuiltAsThePageSaysAndWorks(t *testing.T) {
	dir := build(t)
	cluster := startCluster(t)
	api, err := client.New(cluster.Config, client.Options{Scheme: operator.NewScheme()})
	test.Must(t, err)
	for i, degrees := range []string{"20", "80"} {
		nodestest.Create(t, api, nodestest.Node(fmt.Sprint("n", i), nodestest.List("cpu", "8", "memory", "16Gi", "pods", "110"),
			nodestest.NodeLabel("example.com/temperature", degrees)))
	}
	policy := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.ResourcePolicySpec{
		Consumers: &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
		Offer:     v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{}},
	}}
	test.Must(t, api.Create(t.Context(), policy))
	kubeconfig := cluster.KubeconfigFile(t)
	p := process.StartTest(t, filepath.Join(dir, "custom-operator"), []string{
		"--config=" + filepath.Join(dir, "deploy", "config.yaml"), "--leader-elect", "--leader-election-namespace=default",
		"--grpc-bind-address=" + process.FreeAddress(t), "--metrics-bind-address=" + process.FreeAddress(t),
		"--health-probe-bind-address=" + process.FreeAddress(t),
	}, "KUBECONFIG="+kubeconfig)
	cpu := cpuOf(t, reader(t, p.Address("grpc")), "rome")
	test.Eventually(t, func() string { return cmp.Diff("8", cpu()) }) // The hot node is left out.

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	test.Must(t, api.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/temperature":"30"}}}`))))
	test.Eventually(t, func() string { return cmp.Diff("16", cpu()) }) // It has cooled down.
	p.AwaitLog(t, `"logger":"plugins.Audit","msg":"An offer has changed","consumer":"rome","class":"","policy":"all","amounts":\{"cpu":"16"`)
	p.AwaitLog(t, `"msg":"A policy is in force","policy":"all","offers":1,"nodes":2`)
	test.Must(t, api.Delete(t.Context(), policy))
	p.AwaitLog(t, `"An object has ended","kind":"Policy","key":"all"`)
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestAWrongConfigurationEndsTheExampleWithOneLine(t *testing.T) {
	dir := build(t)
	header := "apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\n"
	kubeconfig := startCluster(t).KubeconfigFile(t)
	for text, want := range map[string]string{
		"filters: {nodes: [Basic, Affinity, Warm]}":                                       `filters.nodes lists "Warm", and there is no such filter: write Basic, Affinity or Temperature`,
		"filters: {nodes: [Basic, Affinity, Temperature, Temperature]}":                   "filters.nodes lists Temperature twice: leave one of them out",
		"flags: {zap-log-level: error}\nfilters: {nodes: [Basic, Affinity, Temperature]}": "plugin Temperature: its argument most is missing: write a temperature above 0, such as most: 70",
	} {
		path := filepath.Join(dir, "wrong.yaml")
		test.Must(t, os.WriteFile(path, []byte(header+text), 0o600))
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "custom-operator"), "--config="+path, "--kubeconfig="+kubeconfig,
			"--grpc-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--health-probe-bind-address=0")
		out, err := c.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if last := lines[len(lines)-1]; err == nil || !strings.HasPrefix(last, "proffer: ") || !strings.HasSuffix(last, want) || len(lines) > 1 {
			t.Errorf("%s: %v\n%s\nwant one line that ends in %s", text, err, out, want)
		}
	}
}
