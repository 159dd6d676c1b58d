package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// simulated is the label of the nodes that KWOK plays.
const simulated = "lab.proffer.dev/simulated"

// podControllers are the controllers of Kubernetes that make and evict pods.
var podControllers = []string{
	"deployment-controller", "replicaset-controller", "job-controller", "pod-garbage-collector-controller",
	"node-lifecycle-controller", "taint-eviction-controller",
}

// runPods lets pods run on the cluster until ctx ends: with kube-scheduler, KWOK, which plays the kubelets
// of the cluster's nodes, and the virtual kubelets of Liqo's Deployments.
func (c *Cluster) runPods(ctx context.Context) error {
	if _, err := c.startScheduler(); err != nil {
		return err
	}
	if err := c.startKwok(); err != nil {
		return err
	}
	for i := range c.nodes {
		if err := c.newNode(ctx, fmt.Sprintf("%s-%d", c.ID, i+1)); err != nil {
			return err
		}
	}
	kubelets := &virtualKubelets{cluster: c, running: map[string]*process{}}
	go kubelets.run(ctx)
	return nil
}

func (c *Cluster) startScheduler() (*process, error) {
	return c.run("kube-scheduler", command(filepath.Join(c.lab.programs.Liqo, "kube-scheduler"),
		"--kubeconfig", c.path("kubeconfig"), "--secure-port=0", "--leader-elect=false"))
}

// RunScheduler has kube-scheduler bind the pods of a cluster without nodes of its own until the end of the test.
func (c *Cluster) RunScheduler(t testing.TB) {
	t.Helper()
	scheduler, err := c.startScheduler()
	Must(t, err)
	Cleanup(t, func(context.Context) error {
		err := scheduler.cmd.Process.Kill()
		<-scheduler.exited
		return err
	})
}

// LogLine is what every container that KWOK plays has logged, followed by the ID of the cluster.
const LogLine = "running on "

// startKwok runs KWOK, which also serves the logs of containers like a kubelet.
func (c *Cluster) startKwok() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"kwok.crt": string(certificate), "kwok.key": string(key),
		// Logs are in the format of container runtimes.
		"containers.log": "2026-01-01T00:00:00.000000000Z stdout F " + LogLine + c.ID + "\n",
		"kwok-logs.yaml": "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: ClusterLogs\nmetadata: {name: all}\n" +
			fmt.Sprintf("spec: {logs: [{logsFile: %q}]}\n", c.path("containers.log")),
	} {
		if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, port, err := net.SplitHostPort(c.address(kwokPort))
	if err != nil {
		return err
	}
	_, err = c.run("kwok", command(filepath.Join(c.lab.programs.Liqo, "kwok"), "--kubeconfig", c.path("kubeconfig"),
		"--config", filepath.Join(c.lab.programs.Liqo, "kwok.yaml"), "--config", c.path("kwok-logs.yaml"),
		"--manage-nodes-with-label-selector="+simulated+"=true", "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40",
		"--node-port="+port, "--tls-cert-file="+c.path("kwok.crt"), "--tls-private-key-file="+c.path("kwok.key")))
	return err
}

// newNode creates a node for KWOK, with 16 CPUs.
func (c *Cluster) newNode(ctx context.Context, name string) error {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{simulated: "true", corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
	if err := c.Client.Create(ctx, node); err != nil {
		return err
	}
	return Await(ctx, "node "+name+" is ready", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if !IsReady(node) {
			return fmt.Errorf("it is not: %v", node.Status.Conditions)
		}
		return nil
	})
}

// waitFor waits for a time, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
