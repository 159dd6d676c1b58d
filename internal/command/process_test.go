package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// asOperator is the environment variable that makes the test binary run the operator, with one of two
// Leases.
const (
	asOperator = "PROFFER_TEST_AS_OPERATOR"
	// shortLease is the shortest possible one, so that a test can wait until it expires. A busy machine
	// can be too slow to renew it in time.
	shortLease = "short-lease"
	// deployedLease is that of the Deployment.
	deployedLease = "deployed-lease"
)

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) == "" {
		log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set.
		test.Main(m)
	}
	os.Exit(run(os.Args[1:], Program{}, func(o *commandOptions) {
		if os.Getenv(asOperator) == deployedLease {
			return
		}
		o.election.LeaseDuration = 2 * time.Second
		o.election.RenewDeadline, o.election.RetryPeriod = time.Second, 100*time.Millisecond
	}))
}

// startProcess runs the operator until the test ends, as a separate process with the arguments of
// the Deployment and a short Lease in the namespace default.
func startProcess(t *testing.T, cluster *controlplane.Cluster, args ...string) *process.Process {
	t.Helper()
	return startProcessIn(t, cluster, metav1.NamespaceDefault, args...)
}

// startProcessIn is startProcess with the Lease in the given namespace, and with further arguments.
func startProcessIn(t *testing.T, cluster *controlplane.Cluster, namespace string, args ...string) *process.Process {
	t.Helper()
	return startProcessWith(t, cluster, shortLease, namespace, args...)
}

func startProcessWith(
	t *testing.T, cluster *controlplane.Cluster, lease, namespace string, args ...string,
) *process.Process {
	t.Helper()
	kubeconfig := cluster.KubeconfigFile(t)
	self, err := os.Executable()
	test.Must(t, err)
	args = append(append(deployedArgs(t), "--leader-election-namespace="+namespace), args...)
	return process.StartTest(t, self, args, asOperator+"="+lease, "KUBECONFIG="+kubeconfig)
}

// deployedArgs returns the container's arguments in the Deployment.
func deployedArgs(t *testing.T) []string {
	t.Helper()
	text := test.Read(t, filepath.Join("..", "..", "config", "manager", "deployment.yaml"))
	var d appsv1.Deployment
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &d))
	return d.Spec.Template.Spec.Containers[0].Args
}

// requireAlive fails the test if the process has ended.
func requireAlive(t *testing.T, p *process.Process) {
	t.Helper()
	test.Must(t, p.Alive())
}
