package resourcereader

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/table"
)

// Form is one of the two forms of the protocol.
type Form int

const (
	// Pools is the form of Liqo v0.9 and v0.10: one list of resources for each class.
	Pools Form = iota
	// Flat is the form of Liqo v0.6 to v0.8: one list of resources.
	Flat
)

// String returns the name of the form, which ParseForm accepts.
func (f Form) String() string {
	if f == Flat {
		return "flat"
	}
	return "pools"
}

// ParseForm returns the form with the name.
func ParseForm(name string) (Form, error) {
	for _, f := range []Form{Pools, Flat} {
		if name == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is not a form of Liqo's protocol: "+
		"write pools (Liqo v0.9 and v0.10) or flat (Liqo v0.6 to v0.8)", name)
}

// Endpoint is an address and the form that is served there.
type Endpoint struct {
	// Address is an address for net.Listen over TCP, such as ":6001".
	Address string
	Form    Form
}

// TLS names the files of the server's identity. They are read again when they change; the new
// content applies to new connections.
type TLS struct {
	// CertFile and KeyFile are the server's certificate and key, in PEM. Without them the server
	// speaks plaintext, as Liqo does.
	CertFile, KeyFile string
	// ClientCAFile holds, in PEM, the authorities that may sign the certificates of clients. Without
	// it clients need no certificate.
	ClientCAFile string
}

// Options configure a Server.
type Options struct {
	// Table holds the offers.
	Table *table.Table
	// Endpoints are the addresses to listen at. There must be at least one.
	Endpoints []Endpoint
	TLS       TLS
	// MaxWait bounds the wait for the first offers of a read without a deadline. 0 means 30 s.
	MaxWait time.Duration
	// ShutdownTimeout bounds the time for calls to end on shutdown. 0 means 10 s.
	ShutdownTimeout time.Duration
	// Registerer takes the metrics. If it is nil, they are not registered.
	Registerer prometheus.Registerer
	Logger     logr.Logger
}
