package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

// The ports of a cluster's processes, relative to its first.
const (
	managerHealth = iota
	webhookPort
	webhookHealth
	gatePort
	kwokPort
	firstKubelet
	kubeletPorts    = 30
	portsPerCluster = 50
)

// noElection is for Liqo's programs that run once: each election writes to the API server all the time.
const noElection = "--enable-leader-election=false"

// startLiqo installs Liqo's chart, runs processes for its Deployments, and waits until they are
// ready.
func (c *Cluster) startLiqo(ctx context.Context) error {
	r, err := render(c.lab.programs.LiqoModule, c.ID, "https://"+c.address(gatePort))
	if err != nil {
		return err
	}
	if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liqoNamespace}}); err != nil {
		return err
	}
	for _, u := range r.kinds(installed...) {
		// Cluster-scoped kinds ignore the namespace.
		u.SetNamespace(liqoNamespace)
		if err := c.Client.Create(ctx, u); err != nil {
			return fmt.Errorf("install %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	var group errgroup.Group
	group.Go(c.startKubeControllers)
	group.Go(func() error { return c.startManager(ctx, r) })
	group.Go(func() error { return c.startWebhook(ctx, r) })
	group.Go(func() error {
		_, err := c.startProgram(ctx, r, "crd-replicator", "--metrics-address=0")
		return err
	})
	return group.Wait()
}

// startKubeControllers runs kube-controller-manager.
func (c *Cluster) startKubeControllers() error {
	// Liqo needs these: they sign certificates of consumers, and delete the dependents of deleted
	// objects. One more checks the types of admission policies.
	controllers := []string{
		"certificatesigningrequest-signing-controller", "garbage-collector-controller", "namespace-controller",
		"validatingadmissionpolicy-status-controller",
	}
	args := []string{
		"--kubeconfig", c.path("kubeconfig"), "--secure-port=0", "--leader-elect=false",
		"--cluster-signing-cert-file", c.path("ca.crt"), "--cluster-signing-key-file", c.path("ca.key"),
	}
	if c.nodes > 0 {
		controllers = append(controllers, podControllers...)
		// Kubelets renew their Leases every 10 s; a node that has been silent for twice that and more is
		// not ready.
		args = append(args, "--node-monitor-grace-period=24s")
	}
	args = append(args, "--controllers="+strings.Join(controllers, ","))
	const program = "kube-controller-manager"
	_, err := c.run(program, command(filepath.Join(c.lab.programs.Liqo, program), args...))
	return err
}

func (c *Cluster) startManager(ctx context.Context, r release) error {
	health := c.address(managerHealth)
	p, err := c.startProgram(ctx, r, "liqo-controller-manager", "--metrics-address=0",
		"--health-probe-address="+health, noElection)
	if err != nil {
		return err
	}
	return p.await(ctx, "Liqo's controller manager becomes ready", func(ctx context.Context) error {
		return probe(ctx, health)
	})
}

func (c *Cluster) startWebhook(ctx context.Context, r release) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	// controller-runtime's webhook server reads its certificate from this directory.
	dir := filepath.Join(c.dir, "k8s-webhook-server", "serving-certs")
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := cert.WriteCert(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	address := c.address(webhookPort)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	p, err := c.startProgram(ctx, r, "webhook", "--webhook-port="+port, "--secret-name=", "--metrics-address=0",
		"--health-probe-address="+c.address(webhookHealth), noElection)
	if err != nil {
		return err
	}
	err = p.await(ctx, "Liqo's webhook serves", func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return err
	}
	configurations, err := r.webhooks(address, certificate)
	if err != nil {
		return err
	}
	for _, configuration := range configurations {
		if err := c.Client.Create(ctx, configuration); err != nil {
			return err
		}
	}
	return nil
}

// startProgram runs a program of Liqo as its ServiceAccount, with the arguments of its Deployment
// followed by args.
func (c *Cluster) startProgram(ctx context.Context, r release, program string, args ...string) (*process, error) {
	deployment := program
	if program != "liqo-controller-manager" {
		deployment = "liqo-" + program
	}
	args, err := r.arguments(deployment, c.ID, args...)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfigOf(ctx, liqoNamespace, deployment)
	if err != nil {
		return nil, err
	}
	cmd := command(filepath.Join(c.lab.programs.Liqo, program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TMPDIR="+c.dir,
		"POD_NAMESPACE="+liqoNamespace, "POD_NAME="+deployment, "DEPLOYMENT_NAME="+deployment)
	return c.run(program, cmd)
}

// address returns the address of a port of the cluster.
func (c *Cluster) address(port int) string { return fmt.Sprintf("127.0.0.1:%d", c.first+port) }

// probe returns an error unless the process is ready.
func probe(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return nil
}
