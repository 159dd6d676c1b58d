package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/controllers"
	"proffer.dev/proffer/internal/resourcereader"
)

const (
	defaultBatchPeriod = 100 * time.Millisecond
	// maxBatchPeriod is where waiting for more events stops making sense: Liqo's own deadlines are 5 s.
	maxBatchPeriod = time.Minute
	off            = "0"
)

// options are what the command line says.
type options struct {
	version bool

	metrics, probes, pprof string
	leaderElect            bool
	election               controllers.LeaderElection
	batchPeriod            time.Duration
	servedClasses          string

	grpc      string
	form      resourcereader.Form
	flat      string
	tls       resourcereader.TLS
	zap       zap.Options
	endpoints []resourcereader.Endpoint
}

// parseFlags reads the command line. Its error is one line that says what to write, or flag.ErrHelp after the help was written.
func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{batchPeriod: defaultBatchPeriod}
	fs := flag.NewFlagSet("proffer", flag.ContinueOnError)
	// An error is the caller's to print, once; without this the flag package adds itself and all of the help.
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}

	config.RegisterFlags(fs)
	fs.BoolVar(&o.version, "version", false, "Print the version and exit.")
	fs.StringVar(&o.metrics, "metrics-bind-address", ":8443", "Where metrics are served, over HTTPS to whom the API server authenticates and authorises; 0 turns them off.")
	fs.StringVar(&o.probes, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served; 0 turns them off.")
	fs.StringVar(&o.pprof, "pprof-bind-address", "", "Where pprof is served, to anybody; 0 or nothing turns it off.")
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "Write statuses only while leading; needed with more than one replica.")
	fs.StringVar(&o.election.Namespace, "leader-election-namespace", "", "Namespace of the Lease that the leader holds; by default that of the Pod.")
	fs.StringVar(&o.servedClasses, "served-classes-configmap", "", "Name of a ConfigMap that is kept as a list of the classes that policies offer, in the namespace of the Lease; see the component served-classes.")
	fs.Func("batch-period", "Minimum time between two evaluations. Events are batched for half of it; a change of a ResourceSlice ends the wait. (default 100ms)", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("write a duration, such as 100ms")
		}
		if d < 0 || d > maxBatchPeriod {
			return fmt.Errorf("write 0 to %v, such as 100ms", maxBatchPeriod)
		}
		o.batchPeriod = d
		return nil
	})
	fs.StringVar(&o.grpc, "grpc-bind-address", ":6001", "Where Liqo v0.6 to v0.10 reads offers, over gRPC.")
	fs.Func("grpc-form", "Form of the protocol: pools (Liqo v0.9 and v0.10) or flat (Liqo v0.6 to v0.8). (default pools)", func(s string) error {
		form, err := resourcereader.ParseForm(s)
		o.form = form
		return err
	})
	fs.StringVar(&o.flat, "grpc-flat-bind-address", "", "Where the flat form is served beside pools; nothing or 0 turns it off.")
	fs.StringVar(&o.tls.CertFile, "grpc-tls-cert", "", "File with the certificate for gRPC over TLS; plaintext without. Read again when it changes.")
	fs.StringVar(&o.tls.KeyFile, "grpc-tls-key", "", "File with the key of --grpc-tls-cert.")
	fs.StringVar(&o.tls.ClientCAFile, "grpc-client-ca", "", "File with the authorities that must have signed the certificates of gRPC clients; without, clients need none.")
	o.zap.BindFlags(fs)

	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(help, "Proffer works out what this cluster offers to the clusters that use it through Liqo.\n\nUsage of proffer:")
			fs.SetOutput(help)
			fs.PrintDefaults()
			return o, err
		}
		return o, fmt.Errorf("%w; see proffer --help", err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag: write only flags, as --name=value; see proffer --help", fs.Arg(0))
	}
	return o, o.check()
}

// check finds what each flag cannot say by itself, and completes the options.
func (o *options) check() error {
	if o.flat == off {
		o.flat = ""
	}
	if o.pprof == off {
		o.pprof = ""
	}
	addresses := []address{
		{flag: "grpc-bind-address", text: o.grpc},
		{flag: "grpc-flat-bind-address", text: o.flat, optional: true},
		{flag: "metrics-bind-address", text: o.metrics, offText: off, optional: true},
		{flag: "health-probe-bind-address", text: o.probes, offText: off, optional: true},
		{flag: "pprof-bind-address", text: o.pprof, optional: true},
	}
	for i := range addresses {
		if err := addresses[i].parse(); err != nil {
			return err
		}
		for j := range i {
			if addresses[i].clashes(addresses[j]) {
				return fmt.Errorf("--%s=%s and --%s=%s are one address: write two ports", addresses[j].flag, addresses[j].text, addresses[i].flag, addresses[i].text)
			}
		}
	}
	if o.election.Namespace != "" && !o.leaderElect {
		return errors.New("--leader-election-namespace says where the leader is elected: write --leader-elect too, or leave it out")
	}
	if o.servedClasses != "" && len(validation.IsDNS1123Subdomain(o.servedClasses)) > 0 {
		return fmt.Errorf("--served-classes-configmap=%q is not the name of a ConfigMap: write lower-case letters, digits, '-' and '.', such as proffer-served-classes", o.servedClasses)
	}
	return o.checkGRPC()
}

func (o *options) checkGRPC() error {
	o.endpoints = []resourcereader.Endpoint{{Address: o.grpc, Form: o.form}}
	if o.flat != "" {
		if o.form == resourcereader.Flat {
			return errors.New("--grpc-form=flat and --grpc-flat-bind-address serve the flat form twice: leave one of them out")
		}
		o.endpoints = append(o.endpoints, resourcereader.Endpoint{Address: o.flat, Form: resourcereader.Flat})
	}
	switch cert, key, ca := o.tls.CertFile != "", o.tls.KeyFile != "", o.tls.ClientCAFile != ""; {
	case cert && !key:
		return errors.New("--grpc-tls-cert is of no use without its key: write --grpc-tls-key too")
	case key && !cert:
		return errors.New("--grpc-tls-key is of no use without its certificate: write --grpc-tls-cert too")
	case ca && !cert:
		return errors.New("--grpc-client-ca asks clients for certificates, which needs TLS: write --grpc-tls-cert and --grpc-tls-key too")
	}
	return nil
}

// address is what one flag says of where to listen.
type address struct {
	flag, text string
	// offText, beside nothing at all, turns off what is optional.
	offText    string
	optional   bool
	host, port string
}

func (a *address) parse() error {
	if a.optional && (a.text == "" || a.text == a.offText) {
		return nil
	}
	host, port, err := net.SplitHostPort(a.text)
	if err != nil {
		return a.wrong()
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return a.wrong()
	}
	a.host, a.port = host, port
	return nil
}

func (a *address) wrong() error {
	return fmt.Errorf("--%s=%q is not an address to listen at: write host:port or :port, such as :6001", a.flag, a.text)
}

// clashes reports whether the two cannot be listened at together. Port 0 is any free one.
func (a *address) clashes(b address) bool {
	if a.port == "" || a.port != b.port || a.port == off {
		return false
	}
	return a.host == b.host || everyHost(a.host) || everyHost(b.host)
}

func everyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
