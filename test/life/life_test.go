package life

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"proffer.dev/proffer/test"
)

// bound is the time in which every watch must notice that its connection is dead, and catch up.
const bound = time.Minute

var (
	asPopulated = map[string]string{"": "8", "gold": "1"}
	asChanged   = map[string]string{"": "2", "gold": "3", "silver": "5"}
)

// deadConnection is a way for an operator to lose its API server without any error.
type deadConnection struct {
	name string
	// start returns the kubeconfig and the environment of an operator.
	start func() (kubeconfig string, env []string)
	cut   func()
}

// at points a kubeconfig to this address. The certificate of the API servers is for localhost.
func at(address string) func(*api.Cluster) {
	return func(c *api.Cluster) { c.Server, c.TLSServerName = "https://"+address, "localhost" }
}

func deadConnections(t *testing.T, c *cluster) []deadConnection {
	t.Helper()
	var (
		silent   = newProxy(t, c.second)
		balancer = newProxy(t, c.first)
		lossy    = newProxy(t, c.second)
		outgoing = newProxy(t, c.second, forward(t))
	)
	cases := []deadConnection{
		{
			"a relay that terminates TCP falls silent",
			func() (string, []string) { return c.kubeconfig(at(silent.Address())), nil },
			silent.Silence,
		},
		{
			"an API server is stopped by SIGSTOP with a healthy one behind the same address",
			func() (string, []string) { return c.kubeconfig(at(balancer.Address())), nil },
			func() {
				balancer.target.Store(c.second)
				test.Must(c.t, c.FreezeAPIServer())
			},
		},
		{
			"a forward proxy (HTTPS_PROXY) falls silent",
			func() (string, []string) {
				return c.kubeconfig(at("apiserver.example.com:6443")),
					[]string{"HTTPS_PROXY=http://" + outgoing.Address(), "NO_PROXY="}
			},
			outgoing.Silence,
		},
	}
	if canDrop {
		cases = append(cases, deadConnection{
			"packets are dropped with a request in flight",
			func() (string, []string) { return c.kubeconfig(at(lossy.Address())), nil },
			func() {
				restore := time.AfterFunc(lossyFor, lossy.dropInFlight())
				t.Cleanup(func() { restore.Stop() })
			},
		})
	}
	return cases
}

// lossyFor is how long new connections lose their packets after the old ones ended. Reflectors
// reconnect within 1.6 s.
const lossyFor = 5 * time.Second

func TestEveryWatchFindsADeadConnectionWithinAMinute(t *testing.T) {
	c := startCluster(t)
	c.populate(t.Context())
	cases := deadConnections(t, c)
	operators := make([]*operator, len(cases))
	for i, dead := range cases {
		kubeconfig, env := dead.start()
		operators[i] = startOperator(t, kubeconfig, env...)
	}
	for _, o := range operators {
		test.Must(t, o.awaitOffers(t.Context(), syncTimeout, asPopulated))
	}

	// All cases run at once, because each takes most of a minute.
	cut := time.Now()
	for _, dead := range cases {
		dead.cut()
	}
	c.change(t.Context())
	found := make([]chan error, len(cases))
	for i, o := range operators {
		found[i] = make(chan error, 1)
		go func() {
			err := o.awaitOffers(t.Context(), bound-time.Since(cut), asChanged)
			t.Logf("%s: done %v after the cut", cases[i].name, time.Since(cut).Round(100*time.Millisecond))
			found[i] <- err
		}()
	}
	for i, dead := range cases {
		t.Run(dead.name, func(t *testing.T) {
			if err := <-found[i]; err != nil {
				t.Errorf("not done %v after the cut: %v", bound, err)
			}
		})
	}
}

func TestTheOperatorSyncsWithAnAPIServerThatOnlySpeaksHTTP2(t *testing.T) {
	c := startCluster(t)
	c.populate(t.Context())
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	test.Must(c.t, err)
	own, err := tls.X509KeyPair(authority, key)
	test.Must(c.t, err)
	admin, err := tls.X509KeyPair(c.Config.CertData, c.Config.KeyData)
	test.Must(c.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Config.CAData)
	p := newProxy(t, c.first, endingTLS(
		&tls.Config{Certificates: []tls.Certificate{own}},
		&tls.Config{Certificates: []tls.Certificate{admin}, RootCAs: roots, ServerName: "localhost"},
	))
	o := startOperator(t, c.kubeconfig(func(to *api.Cluster) {
		to.Server, to.CertificateAuthorityData = "https://"+p.Address(), authority
	}))
	test.Must(t, o.awaitOffers(t.Context(), syncTimeout, asPopulated))
}
