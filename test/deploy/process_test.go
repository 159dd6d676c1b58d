package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// binary builds the operator, once, unless PROFFER_BIN names one.
var binary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("PROFFER_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	bin := filepath.Join(cluster.dir, "proffer")
	if out, err := exec.Command("go", "build", "-o", bin, "proffer.dev/proffer/cmd/proffer").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// operator is the built binary in a process of its own.
type operator struct {
	// args are those of the Deployment, with addresses of the loopback device.
	args []string
	log  syncBuffer

	process *exec.Cmd
	exited  chan struct{}
	err     error
}

// start runs the operator as the ServiceAccount of config/default, with the arguments of the Deployment. It is ended with the test.
func start(t *testing.T, args []string) *operator {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{args: onLoopback(t, args), exited: make(chan struct{})}
	// A pod finds its own namespace in a file; a process has to be told.
	o.process = exec.Command(bin, append(o.args, "--leader-election-namespace="+namespace)...)
	o.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(t, "proffer"))
	o.process.Stdout, o.process.Stderr = &o.log, &o.log
	if err := o.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.exited)
		o.err = o.process.Wait()
	}()
	t.Cleanup(func() {
		// Politely, so that the next leader need not wait for the lease to end.
		_ = o.process.Process.Signal(syscall.SIGTERM)
		select {
		case <-o.exited:
		case <-time.After(gracefulStop):
			_ = o.process.Process.Kill()
			<-o.exited
		}
		if t.Failed() {
			t.Logf("log of the operator at %s:\n%s", o.addr("grpc"), o.log.String())
		}
	})
	return o
}

// onLoopback puts a free port of the loopback device into every --*-bind-address.
func onLoopback(t *testing.T, args []string) []string {
	t.Helper()
	adapted := make([]string, len(args))
	for i, arg := range args {
		adapted[i] = arg
		if flag, _, ok := strings.Cut(arg, "-bind-address="); ok {
			adapted[i] = flag + "-bind-address=" + freeAddress(t)
		}
	}
	return adapted
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// addr is the address of --<what>-bind-address.
func (o *operator) addr(what string) string {
	for _, arg := range o.args {
		if addr, ok := strings.CutPrefix(arg, "--"+what+"-bind-address="); ok {
			return addr
		}
	}
	return ""
}

// awaitReady waits until the readiness probe of the Deployment would succeed.
func (o *operator) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		select {
		case <-o.exited:
			return gomega.StopTrying(fmt.Sprintf("the operator ended: %v", o.err))
		default:
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			resp, err := http.Get("http://" + o.addr("health-probe") + path)
			if err != nil {
				return err
			}
			if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
				return errors.Join(fmt.Errorf("%s says %s", path, resp.Status), err)
			}
		}
		return nil
	})
}

// stop does what the kubelet does after preStop: SIGTERM, then nothing until the grace period ends.
func (o *operator) stop(t *testing.T) {
	t.Helper()
	if err := o.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.exited:
	case <-time.After(gracefulStop):
		t.Fatalf("the operator still runs %v after SIGTERM", gracefulStop)
	}
	if o.err != nil {
		t.Errorf("the operator ended with %v, want status 0", o.err)
	}
}

// requireAllowed fails the test if the API server refused the operator anything.
func (o *operator) requireAllowed(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(o.log.String()) {
		lower := strings.ToLower(line)
		if strings.Contains(lower, "forbidden") || strings.Contains(lower, "unauthorized") {
			t.Errorf("the API server refused the operator: %s", line)
		}
	}
}

// tokenOf is a token of the service account, as a pod gets it.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := cluster.client.SubResource("token").Create(t.Context(), sa, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// kubeconfigOf writes a kubeconfig that has the service account's token and nothing else.
func kubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			"c": {Server: cluster.rest.Host, CertificateAuthorityData: cluster.rest.CAData},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: tokenOf(t, account)}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// eventually waits until f has no error any more.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	gomega.NewWithT(t).Eventually(f).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(gomega.Succeed())
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
