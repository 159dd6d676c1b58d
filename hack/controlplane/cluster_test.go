package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set.
	os.Exit(m.Run())
}

func TestAnOutageOfTheAPIServerKeepsItsDataPortAndUsers(t *testing.T) {
	c := StartTest(t, Options{})
	client := kubernetes.NewForConfigOrDie(c.Config)
	namespaces := client.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := namespaces.Watch(t.Context(), metav1.ListOptions{})
	test.Must(t, err)
	defer watch.Stop()

	test.Must(t, c.StopAPIServer())
	for range watch.ResultChan() {
		continue // The outage closes the channel.
	}
	if _, err := namespaces.Get(t.Context(), "kept", metav1.GetOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a read during the outage: got %v, want connection refused", err)
	}

	test.Must(t, c.StartAPIServer())
	if _, err := namespaces.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("a read after the outage: %v", err)
	}
}

func TestClientsAuthenticateAsAnyUser(t *testing.T) {
	c := StartTest(t, Options{})
	t.Run("a user may do only what RBAC grants", func(t *testing.T) {
		config, err := c.UserConfig("rome", "liqo.io")
		test.Must(t, err)
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"rome"`) {
			t.Errorf("got %v, want forbidden to rome", err)
		}
	})
	t.Run("kubectl is the administrator through the kubeconfig", func(t *testing.T) {
		out, err := test.Kubectl(t.Context(), filepath.Join(c.Assets, "kubectl"), c.KubeconfigFile(t), "",
			"get", "namespace", "default", "-o", "name")
		if got := strings.TrimSpace(out); err != nil || got != "namespace/default" {
			t.Errorf("kubectl: %q, %v", got, err)
		}
	})
}

func TestClientsOfAnotherCAAreAcceptedAlsoAfterAnOutage(t *testing.T) {
	file, certificate, key := newClient(t, "rome")
	c := StartTest(t, Options{ClientCA: file})
	config := rest.AnonymousClientConfig(c.Config)
	config.CertData, config.KeyData = certificate, key
	whoami := func() {
		t.Helper()
		review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		test.Must(t, err)
		if got := review.Status.UserInfo.Username; got != "rome" {
			t.Errorf("the API server authenticates the client as %q, want rome", got)
		}
	}
	whoami()
	test.Must(t, errors.Join(c.StopAPIServer(), c.StartAPIServer()))
	whoami()
}

// newClient returns a file with a CA, and a client's certificate and key that the CA signed.
func newClient(t *testing.T, name string) (authority string, certificate, key []byte) {
	t.Helper()
	private := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		test.Must(t, err)
		return k
	}
	caKey, clientKey := private(), private()
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "another"}, caKey)
	test.Must(t, err)
	authority = filepath.Join(t.TempDir(), "ca.crt")
	caPEM, err := cert.EncodeCertificates(ca)
	test.Must(t, errors.Join(err, cert.WriteCert(authority, caPEM)))
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, clientKey.Public(), caKey)
	test.Must(t, err)
	key, err = keyutil.MarshalPrivateKeyToPEM(clientKey)
	test.Must(t, err)
	return authority, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key
}

func TestFlagsReachTheAPIServer(t *testing.T) {
	c := StartTest(t, Options{APIServerFlags: map[string][]string{"disable-admission-plugins": {"NamespaceLifecycle"}}})
	pods := kubernetes.NewForConfigOrDie(c.Config).CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "refused"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	// envtest disables ServiceAccount admission. This cluster disables only another plugin.
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "serviceaccount") {
		t.Errorf("got %v, want the ServiceAccount admission to refuse the pod", err)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	c, err := Start(t.Context(), Options{})
	test.Must(t, err)
	test.Must(t, c.Stop())
	if _, err := os.Stat(c.work); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", c.work, err)
	}
	if _, err := kubernetes.NewForConfigOrDie(c.Config).Discovery().ServerVersion(); !errors.Is(err,
		syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestAServerThatIsGoneIsNoErrorOfStop(t *testing.T) {
	process := exec.Command("true")
	test.Must(t, process.Run())
	gone := fmt.Errorf("unable to signal: %w", syscall.Kill(process.Process.Pid, syscall.SIGTERM))
	other := errors.New("etcd does not stop")
	for _, test := range []struct{ err, want error }{
		{},
		{err: gone},
		{err: utilerrors.NewAggregate([]error{gone})},
		{err: utilerrors.NewAggregate([]error{gone, other}), want: other},
		{err: other, want: other},
	} {
		if err := ignoreGone(test.err); !errors.Is(err, test.want) || err != nil && errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v becomes %v, want %v", test.err, err, test.want)
		}
	}
}

func TestAStartThatFailsLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	missing := filepath.Join(t.TempDir(), "crds")
	_, err := Start(t.Context(), Options{CRDDirs: []string{missing}})
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, want an error that names %s", err, missing)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := Start(ctx, Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if c != nil {
		_ = c.Stop()
	}
}
