package federation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"proffer.dev/proffer/api/v1alpha1"
)

const (
	// maxKubeconfig bounds the kubeconfig of an identity, in bytes.
	maxKubeconfig = 256 << 10
	// maxHeader bounds the header of a provider's answer, in bytes.
	maxHeader = 64 << 10
)

// Connection reaches the API server of one provider.
type Connection struct {
	http   *http.Client
	server *url.URL
	// namespace is the tenant namespace of this cluster at the provider.
	namespace string
	// token is empty for an identity that is a certificate, as Liqo's are.
	token string
}

// connect uses the inline data of a kubeconfig and nothing else: no program, no file, no credentials
// of the caller. It refuses a kubeconfig that asks for more. Liqo writes none of that, and who may
// write the Secret must not be able to act as whoever reads it.
func connect(kubeconfig []byte, namespace string) (*Connection, error) {
	if len(kubeconfig) > maxKubeconfig {
		return nil, fmt.Errorf("its kubeconfig has more than %d bytes", maxKubeconfig)
	}
	// Loading copies a text for each alias of it, and limits only how many there are.
	if bytes.IndexByte(kubeconfig, '*') >= 0 {
		return nil, errors.New("its kubeconfig has the character * of aliases, which Liqo does not write")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("its kubeconfig cannot be read") // The cause may quote a key.
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
		return nil, errors.New("its kubeconfig has no current context with a cluster and a user")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if setting := refused(cluster, user); setting != "" {
		return nil, fmt.Errorf(
			"its kubeconfig has %s, which Liqo does not write: only inline certificates and tokens are used", setting)
	}
	server, err := parseServer(cluster.Server)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if cluster.ProxyURL != "" {
		through, err := url.Parse(cluster.ProxyURL)
		if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, through.Scheme) {
			return nil, errors.New("the proxy-url in its kubeconfig is not the address of a proxy")
		}
		proxy = http.ProxyURL(through)
	}
	tls, err := clientrest.TLSConfigFor(&clientrest.Config{TLSClientConfig: clientrest.TLSClientConfig{
		ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
		CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
	}})
	if err != nil {
		return nil, errors.New("the certificates in its kubeconfig cannot be read")
	}
	return &Connection{
		http: &http.Client{
			// What is compressed can be without end and expand to nothing, which only costs time.
			Transport: &http.Transport{
				Proxy: proxy, TLSClientConfig: tls, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true,
				DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		server: server, namespace: namespace, token: user.Token,
	}, nil
}

// refused names a setting of a kubeconfig that is not inline data of an identity, or that turns off a
// check.
func refused(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) string {
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"exec", user.Exec != nil},
		{"auth-provider", user.AuthProvider != nil},
		{"tokenFile", user.TokenFile != ""},
		{"client-certificate", user.ClientCertificate != ""},
		{"client-key", user.ClientKey != ""},
		{"username", user.Username != "" || user.Password != ""},
		{"as", user.Impersonate != "" || user.ImpersonateUID != "" ||
			len(user.ImpersonateGroups)+len(user.ImpersonateUserExtra) > 0},
		{"certificate-authority", cluster.CertificateAuthority != ""},
		{"insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify},
	} {
		if setting.set {
			return setting.name
		}
	}
	return ""
}

// parseServer parses the address of an API server.
func parseServer(text string) (*url.URL, error) {
	server, err := url.Parse(text)
	if err != nil || server.Scheme != "https" || server.Host == "" ||
		server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return nil, errors.New("the server in its kubeconfig is not an address that begins with https://")
	}
	return server, nil
}

// call is a request about objects of Proffer in the tenant namespace of this cluster.
type call struct {
	method string
	// path is the resource, and the name of an object.
	path  []string
	query url.Values
	// body is JSON of this type.
	body        []byte
	contentType string
}

// do makes a request, and returns the body of the answer, which the caller must close. An answer that is no success
// is a *refusal.
func (c *Connection) do(ctx context.Context, r call) (io.ReadCloser, error) {
	version := v1alpha1.GroupVersion
	at := c.server.JoinPath("apis", version.Group, version.Version, "namespaces", c.namespace).JoinPath(r.path...)
	at.RawQuery = r.query.Encode()
	request, err := http.NewRequestWithContext(ctx, r.method, at.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "proffer")
	if r.contentType != "" {
		request.Header.Set("Content-Type", r.contentType)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		// The cause has neither the method nor the URL.
		return nil, fmt.Errorf("it cannot be reached: %w", cmp.Or(errors.Unwrap(err), err))
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusCreated {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, refusalOf(response)
}

// get asks for the Offers, and returns the body of the answer. The caller must close it.
func (c *Connection) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	body, err := c.do(ctx, call{method: http.MethodGet, path: []string{"offers"}, query: query})
	if r, ok := errors.AsType[*refusal](err); ok && (r.code == http.StatusForbidden || r.code == http.StatusNotFound) {
		err = errNotPublished
	}
	return body, err
}

// awaitChange reports whether the provider announces a change of its Offers after a version. It returns false when
// the provider ends the request, or the context ends. What exactly has changed does not matter.
func (c *Connection) awaitChange(ctx context.Context, version string) bool {
	body, err := c.get(ctx, url.Values{"watch": {"1"}, "resourceVersion": {version}})
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	n, _ := body.Read(make([]byte, 1))
	return n > 0
}

// errNotPublished is the error for a provider that lets this cluster read no Offers.
var errNotPublished = errors.New("it publishes no catalog to this cluster")

// refusal is an answer that is no success.
type refusal struct {
	code int
	// message is the provider's, and name that of the object that it is about, if it is about one.
	message, name string
}

func refusalOf(response *http.Response) *refusal {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // What was read is enough.
	r := &refusal{code: response.StatusCode, message: string(text)}
	if status := (&metav1.Status{}); json.Unmarshal(text, status) == nil && status.Message != "" {
		r.message = status.Message
		if status.Details != nil {
			r.name = status.Details.Name
		}
	}
	return r
}

// Error explains the answer.
func (r *refusal) Error() string {
	switch {
	case r.code == http.StatusUnauthorized:
		return "it does not accept the identity of this cluster: its certificate may have expired, or the peering is over"
	case r.code >= 300 && r.code < 400:
		return fmt.Sprintf("it answers %d, a redirect, which is not followed", r.code)
	default:
		return fmt.Sprintf("it answers %d: %s", r.code, r.message)
	}
}
