// Package example builds examples/custom-operator as docs/how-to/write-a-filter.md says, in a folder outside of the
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
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

// folder is an empty folder outside of the repository, until all tests have ended.
var folder string

func TestMain(m *testing.M) {
	kubetest.Main(m, func(context.Context) (err error) {
		folder, err = os.MkdirTemp("", "example-")
		test.AtEnd(func() error { return os.RemoveAll(folder) })
		return err
	})
}

// commands returns the commands that the page shows in console blocks.
func commands(page string) (all []string, err error) {
	text, err := os.ReadFile(page)
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all, err
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

// build follows the page once, and returns the folder with the program.
var build = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	// The clone that the page begins in.
	if err := os.Symlink(root, filepath.Join(folder, "proffer")); err != nil {
		return "", err
	}
	typed, err := commands(filepath.Join(root, "docs", "how-to", "write-a-filter.md"))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(folder, "proffer")
	for _, command := range typed {
		if slices.Contains(notRun, command) {
			continue
		}
		if to, ok := strings.CutPrefix(command, "cd "); ok {
			dir = filepath.Join(folder, filepath.Base(to))
			continue
		}
		command = strings.Replace(command, "../my-operator", filepath.Join(folder, "my-operator"), 1)
		c := exec.Command("bash", "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return filepath.Join(folder, "my-operator"), nil
})

// cpuOf returns a function that reads the cpu of a class that a server answers for a consumer.
func cpuOf(t *testing.T, from wire.ResourceReaderClient, id, class string) func() string {
	t.Helper()
	return func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		cpu, err := externaltest.CPU(ctx, from, id, grpc.WaitForReady(true))
		if offered, found := cpu[class]; found {
			return offered
		}
		return fmt.Sprint(err)
	}
}

func TestTheExampleIsBuiltAsThePageSaysAndWorks(t *testing.T) {
	dir, err := build()
	test.Must(t, err)
	for i, degrees := range []string{"20", "80"} {
		kubetest.Create(t, nodestest.Node(fmt.Sprint("n", i), nodestest.List("cpu", "8", "memory", "16Gi", "pods", "110"),
			nodestest.NodeLabel("example.com/temperature", degrees)))
	}
	policy := kubetest.Create(t, &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: v1alpha1.ResourcePolicySpec{
			Consumers: &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
			Offer:     v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{}},
		},
	})
	api, kubeconfig := kubetest.API(t), kubetest.Cluster(t).KubeconfigFile(t)
	p := process.StartTest(t, filepath.Join(dir, "custom-operator"), []string{
		"--config=" + filepath.Join(dir, "deploy", "config.yaml"), "--leader-elect", "--leader-election-namespace=default",
		"--grpc-bind-address=" + process.FreeAddress(t), "--metrics-bind-address=" + process.FreeAddress(t),
		"--health-probe-bind-address=" + process.FreeAddress(t),
	}, "KUBECONFIG="+kubeconfig)
	cpu := cpuOf(t, externaltest.Dial(t, p.Address("grpc")), "rome", "")
	test.Eventually(t, func() string { return cmp.Diff("8", cpu()) }) // The hot node is left out.

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	cooler := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"example.com/temperature":"30"}}}`))
	test.Must(t, api.Patch(t.Context(), node, cooler))
	test.Eventually(t, func() string { return cmp.Diff("16", cpu()) }) // It has cooled down.
	p.AwaitLog(t, `"logger":"plugins.Audit","msg":"An offer has changed","consumer":"rome","class":"","policy":"all","amounts":\{"cpu":"16"`)
	p.AwaitLog(t, `"msg":"A policy is in force","policy":"all","offers":1,"nodes":2`)
	test.Must(t, api.Delete(t.Context(), policy))
	p.AwaitLog(t, `"An object has ended","kind":"Policy","key":"all"`)
	test.Check(t, p.Stop(time.Minute))
}

func TestAWrongConfigurationEndsTheExampleWithOneLine(t *testing.T) {
	dir, err := build()
	test.Must(t, err)
	header := "apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\n"
	kubeconfig := kubetest.Cluster(t).KubeconfigFile(t)
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
