package command

import (
	"flag"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/resourcereader"
)

// flagGroup is one section of the help.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// flagGroups returns all flags in the order of the help. Each usage is one sentence.
func (o *commandOptions) flagGroups() []flagGroup {
	// Flags of other packages get usage texts of our own.
	others := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(others)
	o.zap.BindFlags(others)
	var groups []flagGroup
	add := func(title string, to func(fs *pflag.FlagSet, others *flag.FlagSet)) {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.SortFlags = false
		to(fs, others)
		groups = append(groups, flagGroup{title, fs})
	}
	add("General", o.generalFlags)
	add("gRPC, for Liqo v0.6 to v0.10", o.grpcFlags)
	add("ResourceSlices, for Liqo v1", o.sliceFlags)
	add("HTTP", o.httpFlags)
	add("Leader election", o.electionFlags)
	add("Logs", logFlags)
	return groups
}

// take adds a flag of another package with our usage text and its real default.
func take(fs *pflag.FlagSet, others *flag.FlagSet, name, usage, byDefault string) {
	f := pflag.PFlagFromGoFlag(others.Lookup(name))
	f.Usage, f.DefValue = usage, byDefault
	fs.AddFlag(f)
}

func (o *commandOptions) generalFlags(fs *pflag.FlagSet, others *flag.FlagSet) {
	fs.BoolVarP(&o.help, "help", "h", false, "Print this help and exit.")
	fs.BoolVar(&o.version, printVersion, false, "Print the version and exit.")
	fs.StringVar(&o.config, "config", "",
		"The configuration `file`, which may hold every other flag, and switches on plugins; "+
			"a flag on the command line takes precedence.")
	take(fs, others, "kubeconfig",
		"The kubeconfig `file`; by default, $KUBECONFIG, the Pod's service account and ~/.kube/config "+
			"are tried in this order.",
		"")
	fs.Var(newPeriod(&o.BatchPeriod, operator.DefaultBatchPeriod, maxBatchPeriod), "batch-period",
		"The minimum time between two evaluations; events are batched for half of it, "+
			"and a change of a ResourceSlice ends the wait.")
	fs.Var(newPeriod(&o.NodeGrace, operator.DefaultNodeGrace, maxNodeGrace), "node-grace-period",
		"The time for which a node that is not Ready, or has lost a label or all of a resource, counts as before; "+
			"0 disables it.")
}

func (o *commandOptions) grpcFlags(fs *pflag.FlagSet, _ *flag.FlagSet) {
	fs.StringVar(&o.grpc, "grpc-bind-address", ":6001", "The `address` at which Liqo reads offers.")
	fs.Var(&o.form, "grpc-form",
		"The `form` of the protocol at --grpc-bind-address: pools for Liqo v0.9 and v0.10, or flat for Liqo v0.6 to v0.8.")
	fs.StringVar(&o.flat, "grpc-flat-bind-address", "",
		"A second `address`, which serves the flat form; empty or 0 disables it.")
	fs.StringVar(&o.TLS.CertFile, "grpc-tls-cert", "",
		"The `file` with the TLS certificate, which is reloaded when it changes; without it, gRPC is plaintext.")
	fs.StringVar(&o.TLS.KeyFile, "grpc-tls-key", "", "The `file` with the private key of --grpc-tls-cert.")
	fs.StringVar(&o.TLS.ClientCAFile, "grpc-client-ca", "",
		"The `file` with the CA certificates that verify client certificates; without it, clients need no certificate.")
}

func (o *commandOptions) sliceFlags(fs *pflag.FlagSet, _ *flag.FlagSet) {
	fs.StringVar(&o.ServedClasses, "served-classes", "",
		"The `name` of an AdmissionParams, in the namespace of the Lease, in which the operator lists "+
			"the classes that policies offer; see the component served-classes.")
	fs.StringArrayVar(&o.OtherClasses, "other-served-class", nil,
		"A `class` that another controller answers, for the list of --served-classes; repeat it for more classes.")
	fs.StringVar(&o.Placements, "placements", "",
		"The `name` of an AdmissionParams, in the namespace of the Lease, in which the operator lists "+
			"the node labels that pods of slices need, and slices beyond their grant; see the component slice-pod-guard.")
	fs.StringVar(&o.podSecurity, "offloaded-pod-security", "",
		"The pod-security `level`, baseline or restricted, of the namespaces that Liqo creates for consumers; "+
			"by default, they are left as they are.")
	fs.BoolVar(&o.PublishOffers, "publish-offers", false,
		"Publish to each consumer what it could be granted now, as Offers in its tenant namespace; "+
			"see the component catalog.")
	fs.IntVar(&o.Tenants.QPS, "publish-offers-qps", catalog.DefaultQPS,
		"The most `writes` of Offers and RoleBindings in a second; "+
			"a change arrives within 10 s and one more second for each this many Offers.")
	fs.StringArrayVar(&o.offersSubjects, "offers-subject", []string{catalog.DefaultSubject},
		"Who may read the Offers of a consumer, and write its ProviderChoice, as a `subject` User:NAME or Group:NAME "+
			"in which {clusterID} stands for the consumer; repeat it for more subjects.")
	fs.BoolVar(&o.Federation, "federation", false,
		"Read what the providers of this cluster publish to it, and show it at /api/catalog?scope=federation; "+
			"see the component federation.")
	fs.BoolVar(&o.orchestrate, "orchestrate", false,
		"Send the pods of consumers on to other providers, as Orchestrations say; see the component orchestrator.")
	fs.StringVar(&o.OrchestrateAs, "cluster-id", "",
		"The `ID` of this cluster in Liqo, for --orchestrate; by default, clusterID of the configuration file.")
	fs.BoolVar(&o.LegacyToggle, "legacy-toggle", false,
		"Also allow callers of /api/toggle to disable and enable providers with GET, "+
			"as the broker of Liqo's early days did, for --orchestrate.")
}

func (o *commandOptions) httpFlags(fs *pflag.FlagSet, _ *flag.FlagSet) {
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443",
		"The `address` of /metrics, /offers, /api and the pages at /ui/, over HTTPS, "+
			"for callers that the API server authorizes; empty or 0 disables them.")
	fs.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081",
		"The `address` of /healthz and /readyz; empty or 0 disables them.")
	fs.StringVar(&o.PprofAddress, "pprof-bind-address", "",
		"The `address` of Go's profiles (pprof), without authentication; empty or 0 disables them.")
	fs.StringVar(&o.Catalog.Address, "catalog-bind-address", "",
		"The `address` of /api for callers from outside of the cluster, over HTTPS, "+
			"or over HTTP at a loopback address; empty or 0 disables it.")
	fs.StringVar(&o.Catalog.CertFile, "catalog-tls-cert-file", "",
		"The `file` with the TLS certificate of --catalog-bind-address, which is reloaded when it changes.")
	fs.StringVar(&o.Catalog.KeyFile, "catalog-tls-key-file", "",
		"The `file` with the private key of --catalog-tls-cert-file.")
	fs.BoolVar(&o.Catalog.Anonymous, "catalog-anonymous", false,
		"Show callers of --catalog-bind-address without credentials the clusters that this one is peered with, "+
			"and the classes without amounts.")
}

func (o *commandOptions) electionFlags(fs *pflag.FlagSet, _ *flag.FlagSet) {
	fs.BoolVar(&o.leaderElect, "leader-elect", false,
		"Write to the API server only while this replica holds the Lease; required with more than one replica.")
	fs.StringVar(&o.election.Namespace, "leader-election-namespace", "",
		"The `namespace` of the Lease; by default, that of the Pod.")
}

func logFlags(fs *pflag.FlagSet, others *flag.FlagSet) {
	take(fs, others, "zap-log-level",
		"The lowest `level` that is logged: error, info, debug, or a number above 0, where a larger one logs more.",
		"info")
	take(fs, others, "zap-encoder", "The `format` of the log: json or console.", "json")
	take(fs, others, "zap-time-encoding",
		"The `format` of timestamps: rfc3339, rfc3339nano, iso8601, epoch, millis or nano.", "rfc3339")
	take(fs, others, "zap-stacktrace-level",
		"The lowest `level` that is logged with a stack trace: info, error or panic.", "error")
	take(fs, others, "zap-devel",
		"Use the defaults for development: level debug, format console, and stack traces from warnings on.", "false")
}

// form is the value of --grpc-form.
type form resourcereader.Form

func (f *form) String() string { return resourcereader.Form(*f).String() }
func (f *form) Type() string   { return "form" }

func (f *form) Set(text string) error {
	parsed, err := resourcereader.ParseForm(text)
	*f = form(parsed)
	return err
}
