package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/test"
)

// WriteKubeconfig writes the administrator's kubeconfig, readable only by the owner.
func (c *Cluster) WriteKubeconfig(path string) error {
	return os.WriteFile(path, c.Kubeconfig, 0o600)
}

// KubeconfigFile writes the administrator's kubeconfig for a test, and returns the path.
func (c *Cluster) KubeconfigFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	test.Must(t, c.WriteKubeconfig(path))
	return path
}

// KubeconfigFileOf writes KubeconfigOf for a test, and returns the path.
func KubeconfigFileOf(t testing.TB, config *rest.Config) string {
	t.Helper()
	path, text := filepath.Join(t.TempDir(), "kubeconfig"), KubeconfigOf(t, config)
	test.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

// KubeconfigOf returns a kubeconfig with the address and the credentials of config, and no others.
func KubeconfigOf(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			"u": {Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData},
		},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	test.Must(t, err)
	return text
}

// AccountConfig returns the configuration of a client with a token of a ServiceAccount, as its pods have
// it. The administrator's configuration asks for the token.
func AccountConfig(t testing.TB, admin *rest.Config, namespace, account string) *rest.Config {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(admin)
	test.Must(t, err)
	token, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(
		context.WithoutCancel(t.Context()), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	test.Must(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return config
}
