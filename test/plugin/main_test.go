package plugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/hack/controlplane/egress"
	proffer "proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

const (
	namespace = "proffer-system"
	patience  = time.Minute
)

// cluster is the control plane of all tests of the package.
var cluster struct {
	*controlplane.Cluster
	client client.Client
	egress *egress.Proxy
	// dir has kubectl's plugin in bin, and the kubeconfig of the administrator.
	dir   string
	admin string
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	test.Main(m, install)
}

// install starts the control plane and applies config/default.
func install(ctx context.Context) (err error) {
	if cluster.dir, err = os.MkdirTemp("", "proffer-plugin-"); err != nil {
		return err
	}
	test.AtEnd(func() error { return os.RemoveAll(cluster.dir) })
	bin := filepath.Join(cluster.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	if err := process.AddPlugin(ctx, bin); err != nil {
		return err
	}
	if cluster.egress, err = egress.New(cluster.dir); err != nil {
		return err
	}
	test.AtEnd(cluster.egress.Close)
	cluster.Cluster, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, APIServerFlags: map[string][]string{"egress-selector-config-file": {cluster.egress.Config}},
	})
	if err != nil {
		return err
	}
	test.AtEnd(cluster.Stop)
	if cluster.client, err = client.New(cluster.Config, client.Options{}); err != nil {
		return err
	}
	cluster.admin = filepath.Join(cluster.dir, "admin")
	if err := cluster.WriteKubeconfig(cluster.admin); err != nil {
		return err
	}
	if r := kubectl(ctx, cluster.admin, "apply", "-k", "../../config/default"); r.status != 0 {
		return fmt.Errorf("kubectl apply: %s", r.stderr)
	}
	return nil
}

// result is the exit status and the output of a command.
type result struct {
	status         int
	stdout, stderr string
}

// kubectl runs kubectl, which finds the plugin, with a kubeconfig.
func kubectl(ctx context.Context, kubeconfig string, args ...string) result {
	return shell(ctx, kubeconfig, "kubectl "+strings.Join(args, " "))
}

// shell runs a line of a shell in which kubectl has the plugin and a kubeconfig. The working
// directory is that of the test.
func shell(ctx context.Context, kubeconfig, line string) result {
	cmd := shellCommand(ctx, kubeconfig, line)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return result{-1, "", err.Error()}
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// shellCommand returns what shell runs.
func shellCommand(ctx context.Context, kubeconfig, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	path := filepath.Join(cluster.dir, "bin")
	if cluster.Cluster != nil {
		path += string(os.PathListSeparator) + cluster.Assets
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// must is kubectl as the administrator, for what has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := kubectl(t.Context(), cluster.admin, args...)
	if r.status != 0 {
		t.Fatalf("kubectl %v: %d %s", args, r.status, r.stderr)
	}
	return r.stdout
}

// cleanup is kubectl as the administrator, at the end of the test.
func cleanup(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if r := kubectl(context.WithoutCancel(t.Context()), cluster.admin, args...); r.status != 0 {
			t.Errorf("kubectl %v: %s", args, r.stderr)
		}
	})
}

// startOperator runs the operator as its ServiceAccount, behind the Service, with more arguments, until the test
// ends.
func startOperator(t *testing.T, more ...string) *process.Process {
	t.Helper()
	// What the operator of another test has offered would be offered as 0.
	must(t, "-n", namespace, "delete", "configmap", "--ignore-not-found", proffer.OfferedConfigMap)
	p := process.StartTest(t, process.Program(t), append([]string{
		"--leader-elect", "--leader-election-namespace=" + namespace, "--grpc-bind-address=:6001", "--metrics-bind-address=:8443",
		"--health-probe-bind-address=:8081",
	}, more...), "KUBECONFIG="+controlplane.KubeconfigFileOf(t, tokenOf(t, "proffer")))
	p.AwaitReady(t)
	route(t, p.Address("metrics"))
	startPod(t)
	return p
}

// route leads the Service to a server, until the test ends.
func route(t *testing.T, server string) {
	t.Helper()
	cluster.egress.Route(server)
	t.Cleanup(func() { cluster.egress.Route("") })
}

// startPod creates what the controllers of a cluster would create for a replica that is ready.
func startPod(t *testing.T) {
	t.Helper()
	pod, endpoint := egress.Replica(namespace)
	create(t, pod)
	create(t, endpoint)
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	nodestest.Create(t, cluster.client, object)
	nodestest.DeleteAfter(t, cluster.client, object)
}

// tokenOf returns a client configuration with a token of a ServiceAccount of the operator's namespace.
func tokenOf(t *testing.T, account string) *rest.Config {
	t.Helper()
	return controlplane.AccountConfig(t, cluster.Config, namespace, account)
}

// user returns the kubeconfig of a new user with these Roles in the operator's namespace.
func user(t *testing.T, name string, roles ...string) string {
	t.Helper()
	config, err := cluster.UserConfig(name)
	test.Must(t, err)
	for _, role := range roles {
		must(t, "-n", namespace, "create", "rolebinding", name+"-"+role, "--role="+role, "--user="+name)
		cleanup(t, "-n", namespace, "delete", "rolebinding", name+"-"+role)
	}
	return controlplane.KubeconfigFileOf(t, config)
}
