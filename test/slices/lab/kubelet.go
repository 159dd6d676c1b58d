package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/liqotech/liqo/pkg/vkMachinery"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// virtualKubelets runs Liqo's virtual kubelets: a process for each of their Deployments, for as long as
// there is the Deployment.
type virtualKubelets struct {
	cluster *Cluster
	// running has the processes by the key of their Deployments.
	running map[string]*process
	// started counts the processes, for their ports.
	started int
}

// run adjusts the processes to the Deployments until ctx ends. What fails is written to the log of the cluster's
// virtual kubelets and tried again.
func (k *virtualKubelets) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.adjust(ctx); err != nil && ctx.Err() == nil {
			k.note(err)
		}
		waitFor(ctx, 200*time.Millisecond)
	}
}

func (k *virtualKubelets) note(problem error) {
	log, err := os.OpenFile(k.cluster.path("virtual-kubelets.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintln(log, time.Now().Format(time.TimeOnly), problem)
	_ = log.Close()
}

// adjust starts the processes that are missing or have ended, and ends those without a Deployment.
func (k *virtualKubelets) adjust(ctx context.Context) error {
	var list appsv1.DeploymentList
	if err := k.cluster.Client.List(ctx, &list, client.MatchingLabels(vkMachinery.KubeletBaseLabels)); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		key := d.Namespace + "/" + d.Name
		wanted[key] = true
		if p := k.running[key]; p != nil && !p.ended() {
			continue
		}
		p, err := k.start(ctx, d)
		if err != nil {
			return fmt.Errorf("start %s: %w", key, err)
		}
		k.running[key] = p
	}
	for key, p := range k.running {
		if !wanted[key] {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			delete(k.running, key)
		}
	}
	return nil
}

// start runs the container of a Deployment as its ServiceAccount.
func (k *virtualKubelets) start(ctx context.Context, d *appsv1.Deployment) (*process, error) {
	c, pod := k.cluster, d.Spec.Template.Spec
	kubeconfig, err := c.kubeconfigOf(ctx, d.Namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	env := map[string]string{"POD_IP": "127.0.0.1", "POD_NAME": d.Name, "POD_NAMESPACE": d.Namespace}
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom == nil {
			env[e.Name] = e.Value
		}
	}
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "$(POD_IP)", env["POD_IP"]))
	}
	_, port, err := net.SplitHostPort(c.address(firstKubelet + k.started%kubeletPorts))
	if err != nil {
		return nil, err
	}
	k.started++
	// A provider that does not answer is noticed in seconds, not in a minute.
	args = append(args, "--home-kubeconfig="+kubeconfig, "--listen-port="+port, "--node-check-network=false",
		"--vk-lease-enabled=false", "--certificate-type=self-signed", "--node-ping-interval=1s", "--node-ping-timeout=2s")
	cmd := command(filepath.Join(c.lab.programs.Liqo, "virtual-kubelet"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return c.run(d.Name, cmd)
}

// IsReady reports whether a node is Ready.
func IsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
