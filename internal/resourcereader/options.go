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
	// Pools is what Liqo v0.9 and v0.10 speak: one list of resources for each class.
	Pools Form = iota
	// Flat is what Liqo v0.6 to v0.8 speak: one list of resources.
	Flat
)

// String returns the name of the form, as ParseForm takes it.
func (f Form) String() string {
	if f == Flat {
		return "flat"
	}
	return "pools"
}

// ParseForm returns the form of that name.
func ParseForm(name string) (Form, error) {
	for _, f := range []Form{Pools, Flat} {
		if name == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is not a form of Liqo's protocol: write pools (Liqo v0.9 and v0.10) or flat (Liqo v0.6 to v0.8)", name)
}

// Endpoint is an address at which one form is served.
type Endpoint struct {
	// Address is what net.Listen takes for TCP, such as ":6001".
	Address string
	Form    Form
}

// TLS names the files of the server's identity. All are read again when they change, for connections made from then on.
type TLS struct {
	// CertFile and KeyFile are the server's certificate and its key, in PEM; without them the server speaks plaintext, as Liqo does.
	CertFile, KeyFile string
	// ClientCAFile holds, in PEM, the authorities one of which must have signed a client's certificate; without it no
	// certificate is asked for.
	ClientCAFile string
}

// Options say what is served, and how.
type Options struct {
	// Table holds the offers.
	Table *table.Table
	// Endpoints are where to listen; there must be one at least.
	Endpoints []Endpoint
	TLS       TLS
	// MaxWait is how long a read waits for the first offers if its caller set no deadline; 0 stands for 30 s.
	MaxWait time.Duration
	// ShutdownTimeout is how long calls under way may take to end on shutdown; 0 stands for 10 s.
	ShutdownTimeout time.Duration
	// Registerer takes the metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
	Logger     logr.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxWait <= 0 {
		o.MaxWait = 30 * time.Second
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 10 * time.Second
	}
	return o
}
