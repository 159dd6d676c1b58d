package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// buildTimeout is the time for the control plane to start. Without KUBEBUILDER_ASSETS, the first
// start on a machine builds its programs.
const buildTimeout = 20 * time.Minute

// startControlPlane runs the control plane of hack/controlplane and waits until it serves. The
// control plane ends with its standard input, so it cannot outlive the tests.
func startControlPlane(program, root, kubeconfig string) (stop func() error, err error) {
	cmd := exec.Command(program, "run", "--kubeconfig", kubeconfig, "--crds", programs.crds)
	cmd.Dir = root
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, write := io.Pipe()
	cmd.Stdout = write
	p, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	stop = func() error {
		_ = input.Close()
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		if err := p.wait(ctx); err != nil {
			return fmt.Errorf("stop the control plane: %w\n%s", err, p.output)
		}
		return nil
	}
	ready := make(chan error, 1)
	go func() {
		// The program prints one line: the directory of its programs.
		line, err := bufio.NewReader(stdout).ReadString('\n')
		programs.kubectl = filepath.Join(strings.TrimSpace(line), "kubectl")
		ready <- err
		_, _ = io.Copy(io.Discard, stdout)
	}()
	go func() {
		<-p.exited
		_ = write.Close()
	}()
	select {
	case err = <-ready:
	case <-time.After(buildTimeout):
		err = fmt.Errorf("not ready after %v", buildTimeout)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w\n%s", err, p.output), stop())
	}
	programs.kubeconfig = kubeconfig
	return stop, nil
}

// kubectl runs kubectl as the administrator and returns its output.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := runKubectl(deadline(t), input, args...)
	must(t, err)
	return out
}

func runKubectl(ctx context.Context, input string, args ...string) (string, error) {
	cache := filepath.Join(filepath.Dir(programs.kubeconfig), "kubectl-cache")
	cmd := exec.CommandContext(ctx, programs.kubectl,
		append([]string{"--kubeconfig", programs.kubeconfig, "--cache-dir", cache}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// apply creates objects as an admin would. They are deleted after the test.
func apply(t *testing.T, manifest string) {
	t.Helper()
	t.Cleanup(func() { remove(t, manifest) })
	edit(t, manifest)
}

// edit updates objects, or creates them.
func edit(t *testing.T, manifest string) {
	t.Helper()
	kubectl(t, manifest, "apply", "-f", "-")
}

func remove(t *testing.T, manifest string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	// There is no kubelet that would end pods.
	_, err := runKubectl(ctx, manifest, "delete", "-f", "-", "--ignore-not-found", "--grace-period=0", "--force")
	if err != nil {
		t.Error(err)
	}
}

// policy renders a ResourcePolicy. The spec is in YAML's flow style.
func policy(name, spec string) string {
	return fmt.Sprintf("apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: %s}\nspec: %s\n",
		name, spec)
}

// fixed renders a policy with fixed amounts for all consumers.
func fixed(name, class, amounts string) string {
	return policy(name, fmt.Sprintf("{class: %s, offer: {fixed: {%s}}}", class, amounts))
}

// newNode creates a ready node with this allocatable.
func newNode(t *testing.T, name, allocatable string) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s}
status:
  allocatable: {%s}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: made by a test}]
`, name, allocatable))
	// Admission taints every new node as not ready. The node controller, which would remove the
	// taint, does not run here.
	kubectl(t, "", "patch", "node", name, "--type=merge", "-p", `{"spec":{"taints":null}}`)
}

// newPod creates a pod that is bound to a node. The origin is the consumer that offloaded it, or
// empty for a local pod.
func newPod(t *testing.T, name, node, origin, requests string) {
	t.Helper()
	labels := ""
	if origin != "" {
		labels = "virtualkubelet.liqo.io/origin: " + origin
	}
	apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, labels: {%s}}
spec:
  nodeName: %s
  containers: [{name: main, image: registry.k8s.io/pause, resources: {requests: {%s}}}]
`, name, labels, node, requests))
}
