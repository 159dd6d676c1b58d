package federation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/test"
)

// kubeconfig is one that Liqo could have written, with an edit. It has no certificates.
func kubeconfig(t testing.TB, edit func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster, user := &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443"}, &clientcmdapi.AuthInfo{Token: "rome"}
	edit(cluster, user)
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	test.Must(t, err)
	return text
}

func TestOnlyInlineDataOfAKubeconfigIsUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	test.Must(t, os.WriteFile(file, []byte("token of the caller"), 0o600))
	for name, edit := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"exec": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{file + "-ran"}, InteractiveMode: "Never"}
		},
		"auth-provider": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		},
		"tokenFile":                func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = file },
		"client-certificate":       func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = file },
		"client-key":               func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientKey = file },
		"username":                 func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = "rome", "secret" },
		"as":                       func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Impersonate = "admin" },
		"certificate-authority":    func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = file },
		"insecure-skip-tls-verify": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.InsecureSkipTLSVerify = true },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(kubeconfig(t, edit), "rome")
			if err == nil || !strings.Contains(err.Error(), "its kubeconfig has "+name+", which Liqo does not write") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := os.Stat(file + "-ran"); err == nil {
		t.Error("the program has run")
	}
}

func TestAKubeconfigThatLeadsNowhereIsRefused(t *testing.T) {
	const aliases = "its kubeconfig has the character * of aliases"
	const server = "the server in its kubeconfig is not an address that begins with https://"
	with := func(edit func(*clientcmdapi.Cluster)) []byte {
		return kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { edit(c) })
	}
	at := func(server string) []byte { return with(func(c *clientcmdapi.Cluster) { c.Server = server }) }
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":      {nil, "no current context"},
		"no YAML":      {[]byte("key: LS0t\n\tx"), "its kubeconfig cannot be read"},
		"no context":   {[]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"), "no current context"},
		"too long":     {[]byte(strings.Repeat("#", maxKubeconfig+1)), "more than 262144 bytes"},
		"no TLS":       {at("http://192.0.2.1"), server},
		"a file":       {at("file:///etc/passwd"), server},
		"no host":      {at("https://"), server},
		"credentials":  {at("https://user:password@192.0.2.1"), server},
		"a query":      {at("https://192.0.2.1/?x=y"), server},
		"no address":   {at("192.0.2.1:6443"), server},
		"a file proxy": {with(func(c *clientcmdapi.Cluster) { c.ProxyURL = "file:///etc/passwd" }), "the proxy-url in its kubeconfig"},
		"no CA":        {with(func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte("CA") }), "the certificates in its kubeconfig"},
		"no certificate": {kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData = []byte("x"), []byte("y")
		}), "the certificates in its kubeconfig"},
		"an alias bomb":            {[]byte("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"), aliases},
		"a long text with aliases": {[]byte("a: &a " + strings.Repeat("x", maxKubeconfig/2) + "\nb: [" + strings.Repeat("*a,", maxKubeconfig/8) + "]\n"), aliases},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connect(tc.text, "rome")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "LS0t") {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestAKubeconfigOfLiqoIsUsed(t *testing.T) {
	c, err := connect(kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server, c.ProxyURL = "https://192.0.2.1:6443/clusters/milan", "http://192.0.2.2:8118"
	}), "liqo-tenant-rome")
	if err != nil || c.server.String() != "https://192.0.2.1:6443/clusters/milan" || c.token != "rome" || c.namespace != "liqo-tenant-rome" {
		t.Errorf("got %+v, %v", c, err)
	}
}
