// Package operatorclient asks the operator with the caller's own rights.
//
// A request takes two steps. The caller creates a token of a ServiceAccount of the operator, which
// may read what the operator serves and nothing else, and which is valid for ten minutes. The API
// server then proxies the request to the Service of the operator, with that token in
// rest.TokenHeader. The caller's own credentials never reach the operator: the API server removes
// them before it proxies.
package operatorclient

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"
)

// The names in the default manifests.
const (
	DefaultNamespace = "proffer-system"
	DefaultService   = "proffer-metrics"
	// port is the name of the Service's port.
	port = "https"
	// firstByte is far longer than the operator needs, except for a simulation.
	firstByte = 10 * time.Second
)

// Flags say where the operator is.
type Flags struct {
	// Config locates the API server.
	Config *genericclioptions.ConfigFlags
	// Namespace is the operator's namespace, Service the Service in front of its HTTPS port.
	Namespace, Service string
	// FirstByte bounds the time until an answer of the operator begins.
	FirstByte time.Duration
}

// NewFlags returns the flags with their defaults.
func NewFlags(config *genericclioptions.ConfigFlags) *Flags {
	return &Flags{Config: config, Namespace: DefaultNamespace, Service: DefaultService, FirstByte: firstByte}
}

// AddFlags adds --operator-namespace and --service.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Namespace, "operator-namespace", f.Namespace, "The namespace of the operator.")
	flags.StringVar(&f.Service, "service", f.Service, "The Service of the operator's HTTPS port.")
}

// Account is a ServiceAccount in the operator's namespace that the operator answers.
type Account struct {
	// Name is the name of the ServiceAccount.
	Name string
	// Role is the Role that lets a user of the plugin act as the account.
	Role string
	// Rights is the ClusterRole that lets the account ask the operator.
	Rights string
}

var (
	// Reader may read offers.
	Reader = Account{Name: "proffer-reader", Role: "proffer-plugin-reader", Rights: "proffer-offers-reader"}
	// Simulator may also read the snapshot, and simulate.
	Simulator = Account{Name: "proffer-simulator", Role: "proffer-plugin-simulator", Rights: "proffer-simulator"}
)

// catalogReader is the ClusterRole with which both accounts read the catalog.
const catalogReader = "proffer-catalog-reader"

// RESTConfig locates the API server by the flags and the kubeconfig. The caller may change it.
func (f *Flags) RESTConfig() (*clientrest.Config, error) {
	config, err := f.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	return clientrest.CopyConfig(config), nil
}

// Client returns a client that asks the operator as this account. It sends nothing yet: if the API server cannot be
// found, each request returns why.
func (f *Flags) Client(account Account) *Client {
	c := &Client{flags: f, account: account, base: &url.URL{}}
	c.err = c.connect()
	return c
}

func (c *Client) connect() error {
	config, err := c.flags.RESTConfig()
	if err != nil {
		return err
	}
	client, err := clientrest.HTTPClientFor(config)
	if err == nil {
		c.core, err = corev1client.NewForConfigAndClient(config, client)
	}
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	// The answer is of whoever is behind the Service. To follow a redirect would send the caller's own
	// credentials to the host that it names.
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base := c.core.RESTClient().Get().AbsPath(c.flags.proxyPath()).URL()
	c.http, c.base = &direct, &url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}
	return nil
}

// proxyPath is the path of the operator at the API server.
func (f *Flags) proxyPath() string {
	return path.Join("/api/v1/namespaces", f.Namespace, "services", f.proxied(), "proxy")
}

// proxied names the port of the Service for the API server's proxy.
func (f *Flags) proxied() string { return "https:" + f.Service + ":" + port }
