package operator

import (
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/relay"
)

// link is the only connection from an operator to the API server. A test can cut it.
type link struct {
	*relay.Relay
	down atomic.Bool
}

// newLink returns a link and a configuration that uses it. The link ends with the test.
func newLink(t *testing.T) (*link, *rest.Config) {
	t.Helper()
	server, _, err := rest.DefaultServerUrlFor(kubetest.Cluster(t).Config)
	test.Must(t, err)
	l := &link{}
	l.Relay = relay.Start(t, relay.Options{Target: func() string {
		if l.down.Load() {
			return ""
		}
		return server.Host
	}})
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	config.Host = l.Address()
	return l, config
}

// cut resets all connections, and every new one until restore.
func (l *link) cut() {
	l.down.Store(true)
	l.Cut()
}

func (l *link) restore() { l.down.Store(false) }
