package lab

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scheme has the kinds of Kubernetes and of Liqo.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubescheme.AddToScheme, authv1beta1.AddToScheme, liqov1beta1.AddToScheme, offloadingv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// A Cluster is a control plane with Liqo.
type Cluster struct {
	// ID is Liqo's cluster ID.
	ID string
	// Client and Config have the rights of an admin.
	Client client.WithWatch
	Config *rest.Config

	lab     *Lab
	kubectl string
	dir     string
	// nodes is how many nodes KWOK plays. Without any, no pods run.
	nodes int
	// first is the first port of this cluster's processes.
	first int
	// gate is the way from peers to the API server.
	gate *gate
	// operator is the last one that was started, if there is one.
	operator *operator
}

// start runs the control plane, installs Liqo, and returns once its processes are ready.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.writeAuthority(); err != nil {
		return err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	api, err := url.Parse(c.Config.Host)
	if err != nil {
		return err
	}
	if c.gate, err = openGate(ctx, c.address(gatePort), api.Host); err != nil {
		return err
	}
	if err := c.startLiqo(ctx); err != nil {
		return err
	}
	if c.nodes == 0 {
		return nil
	}
	return c.runPods(ctx)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// run starts a program of the cluster.
func (c *Cluster) run(name string, cmd *exec.Cmd) (*process, error) { return start(c.dir, name, cmd) }

// writeAuthority creates the certificate authority for client certificates of Liqo's consumers.
func (c *Cluster) writeAuthority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: c.ID}, key)
	if err != nil {
		return err
	}
	certificatePEM, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return errors.Join(cert.WriteCert(c.path("ca.crt"), certificatePEM), keyutil.WriteKey(c.path("ca.key"), keyPEM))
}

// startControlPlane runs etcd and kube-apiserver with the CRDs of Liqo.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	cmd := command(c.lab.programs.ControlPlane, "run",
		"--kubeconfig", c.path("kubeconfig"), "--client-ca", c.path("ca.crt"),
		"--crds", filepath.Join(c.lab.programs.LiqoModule, "deployments", "liqo", "charts", "liqo-crds", "crds"))
	cmd.Dir = c.lab.programs.Checkout
	cmd.Env = append(os.Environ(), "TMPDIR="+c.dir) // it is killed without cleaning up
	// The control plane ends with its standard input, which ends with this process.
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = write
	p, err := c.run("controlplane", cmd)
	if err := errors.Join(err, write.Close()); err != nil {
		return err
	}
	assets := make(chan string, 1)
	go func() {
		defer func() { _ = stdout.Close() }()
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		assets <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, stdout)
	}()
	select {
	case dir := <-assets:
		c.kubectl = filepath.Join(dir, "kubectl")
		if dir == "" {
			<-p.exited
			return &endedError{p}
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("start the control plane: %w\n%s", context.Cause(ctx), tail(p.log))
	}
}

func (c *Cluster) connect() (err error) {
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.path("kubeconfig")); err != nil {
		return err
	}
	c.Config.QPS = -1 // no client-side rate limit
	c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme})
	return err
}

// clientset returns the client that some of Liqo's packages need.
func (c *Cluster) clientset() (kubernetes.Interface, error) { return kubernetes.NewForConfig(c.Config) }

// Kubectl runs kubectl as the cluster's admin and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", c.path("kubeconfig"), "--cache-dir", c.path("kubectl-cache")}, args...)
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Stdin, cmd.Env = strings.NewReader(input), append(os.Environ(), "GOGC=400")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args[4:], " "), err, &stderr)
	}
	return string(out), nil
}

// Do runs kubectl as the cluster's admin for its effect.
func (c *Cluster) Do(ctx context.Context, args ...string) error {
	_, err := c.Kubectl(ctx, "", args...)
	return err
}

// Log returns what one of the cluster's programs has printed so far.
func (c *Cluster) Log(program string) (string, error) {
	data, err := os.ReadFile(c.path(program + ".log"))
	return string(data), err
}

// kubeconfigOf writes a kubeconfig with a token of the service account and returns its path.
func (c *Cluster) kubeconfigOf(ctx context.Context, namespace, account string) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64((24 * time.Hour).Seconds())), // A person may keep a lab for a day.
	}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.Client.SubResource("token").Create(ctx, sa, request); err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", namespace, account, err)
	}
	file := c.path(account + ".kubeconfig")
	return file, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"c": {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: request.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
}
