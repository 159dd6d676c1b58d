package example

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/process"
)

// startMonitor is the command of the README that the test runs at a free address, and usedThere those
// that it replaces: they need a cluster with the plugin of kubectl.
const startMonitor = "./custom-monitor --listen=127.0.0.1:7001 --amounts=amounts.json"

var usedThere = []string{"kubectl apply -f policy.yaml", "kubectl proffer explain rome"}

// buildMonitor follows the README, and returns the command that starts the program, which is built in a
// folder of the test, with a copy of the amounts.
func buildMonitor(t *testing.T, source string) (start string, dir string) {
	t.Helper()
	dir = t.TempDir()
	amounts, err := os.ReadFile(filepath.Join(source, "amounts.json"))
	test.Must(t, err)
	test.Must(t, os.WriteFile(filepath.Join(dir, "amounts.json"), amounts, 0o600))
	typed, err := commands(filepath.Join(source, "README.md"))
	test.Must(t, err)
	for _, command := range typed {
		switch {
		case slices.Contains(usedThere, command):
			continue
		case command == startMonitor:
			start = command
			continue
		case command == "go build .":
			command = "go build -o " + dir + " ."
		}
		c := exec.CommandContext(t.Context(), "bash", "-c", command)
		c.Dir, c.Env = source, append(os.Environ(), "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	if start == "" {
		t.Fatalf("README.md does not start the monitor by %s", startMonitor)
	}
	return start, dir
}

func TestTheMonitorIsBuiltAsItsPageSaysAndItsAmountsAreOffered(t *testing.T) {
	source, err := filepath.Abs(filepath.Join("..", "..", "examples", "custom-monitor"))
	test.Must(t, err)
	start, dir := buildMonitor(t, source)
	address := process.FreeAddress(t)
	args := strings.Fields(strings.Replace(start, "127.0.0.1:7001", address, 1))
	args[2] = "--amounts=" + filepath.Join(dir, "amounts.json")
	monitor := process.StartTest(t, filepath.Join(dir, args[0]), args[1:])

	text := test.Read(t, filepath.Join(source, "policy.yaml"))
	policy := &v1alpha1.ResourcePolicy{}
	test.Must(t, yaml.UnmarshalStrict([]byte(text), policy))
	if policy.Spec.Offer.External.Address != "127.0.0.1:7001" {
		t.Errorf("policy.yaml has the address %s, and README.md another one", policy.Spec.Offer.External.Address)
	}
	policy.Spec.Offer.External.Address = address
	kubetest.Create(t, policy)
	kubeconfig := kubetest.Cluster(t).KubeconfigFile(t)
	program, err := process.Build(t.Context(), t.TempDir())
	test.Must(t, err)
	p := process.StartTest(t, program, []string{
		"--leader-elect", "--leader-election-namespace=default", "--grpc-bind-address=" + process.FreeAddress(t),
		"--metrics-bind-address=0", "--health-probe-bind-address=" + process.FreeAddress(t),
	}, "KUBECONFIG="+kubeconfig)
	cpu := cpuOf(t, externaltest.Dial(t, p.Address("grpc")), "rome", policy.Spec.Class)
	test.Eventually(t, func() string { return cmp.Diff("8", cpu()) })
	test.Must(t, os.WriteFile(filepath.Join(dir, "amounts.json"), []byte(`{"rome": {"cpu": "6"}}`), 0o600))
	test.Eventually(t, func() string { return cmp.Diff("6", cpu()) }) // The file was edited.

	if _, err := externaltest.Dial(t, address).RemoveCluster(t.Context(), &wire.ClusterIdentity{ClusterID: "rome"}); err != nil {
		t.Fatal(err)
	}
	monitor.AwaitLog(t, "rome is gone")
	for _, running := range []*process.Process{p, monitor} {
		test.Check(t, running.Stop(time.Minute))
	}
}
