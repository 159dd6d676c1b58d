package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/internal/web/outside"
)

const (
	// maxBatchPeriod is far above any useful period: Liqo's own deadlines are 5 s.
	maxBatchPeriod = time.Minute
	// maxNodeGrace is far above what any restart on a node takes.
	maxNodeGrace = time.Hour
	off          = "0"
)

// commandOptions are the values of the command line.
type commandOptions struct {
	// Options holds the values that the operator takes as they are.
	operator.Options

	help, version bool
	// config is the path of the configuration file. unused has the names of the plugins of the program that
	// it does not switch on.
	config string
	unused []string

	leaderElect    bool
	election       kube.LeaderElection
	podSecurity    string
	offersSubjects []string
	orchestrate    bool

	grpc, flat string
	form       form
	zap        zap.Options
}

// parseFlags reads the command line, and the configuration file if it names one. Its error is one line
// that says what to write, or pflag.ErrHelp after it has printed the help.
func parseFlags(args []string, help io.Writer, p Program) (commandOptions, error) {
	var o commandOptions
	groups := o.flagGroups()
	all := pflag.NewFlagSet("proffer", pflag.ContinueOnError)
	for _, g := range groups {
		all.AddFlagSet(g.flags)
	}
	err := parse(all, args)
	switch {
	case o.help || errors.Is(err, pflag.ErrHelp):
		printHelp(help, groups)
		return o, pflag.ErrHelp
	case err != nil:
		return o, fmt.Errorf("%w; see proffer --help", whatToWrite(err))
	case all.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag: write only flags, as --name=value; see proffer --help", all.Arg(0))
	}
	if o.version {
		return o, nil
	}
	if err := o.configure(all, p); err != nil {
		return o, err
	}
	return o, o.check()
}

// configure reads the configuration file, if there is one, and switches plugins on.
func (o *commandOptions) configure(all *pflag.FlagSet, p Program) error {
	if err := p.check(); err != nil {
		return err
	}
	c := &config.OperatorConfiguration{}
	if o.config != "" {
		var err error
		if c, err = readConfiguration(o.config); err == nil {
			err = setFlags(all, c)
		}
		if err == nil {
			o.Plugins, err = p.plugins(c)
		}
		if err != nil {
			return fmt.Errorf("--config=%s: %s", o.config, kube.Shorten(err.Error(), kube.MaxMessage))
		}
	}
	o.unused = p.unused(c)
	return nil
}

// check validates flags against each other, and completes the options.
func (o *commandOptions) check() error {
	// Both an empty address and 0 disable a listener.
	for _, text := range []*string{&o.MetricsAddress, &o.ProbeAddress, &o.PprofAddress} {
		if *text == "" {
			*text = off
		}
	}
	for _, text := range []*string{&o.flat, &o.Catalog.Address} {
		if *text == off {
			*text = ""
		}
	}
	for _, check := range []func() error{
		o.checkAddresses, o.checkLists, o.checkOffers, o.checkCatalog, o.checkOrchestrate, o.checkGRPC,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *commandOptions) checkAddresses() error {
	addresses := o.addresses()
	for i := range addresses {
		if err := addresses[i].parse(); err != nil {
			return err
		}
		for j := range i {
			if addresses[i].clashes(addresses[j]) {
				return fmt.Errorf("--%s=%s and --%s=%s are the same address: write different ports",
					addresses[j].flag, addresses[j].text, addresses[i].flag, addresses[i].text)
			}
		}
	}
	return nil
}

// checkLists validates leader election, and what admission policies need.
func (o *commandOptions) checkLists() error {
	if o.election.Namespace != "" && !o.leaderElect {
		return errors.New("--leader-election-namespace has no effect without leader election: " +
			"write --leader-elect too, or leave it out")
	}
	for _, list := range [][2]string{{"served-classes", o.ServedClasses}, {"placements", o.Placements}} {
		if flag, name := list[0], list[1]; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--%s=%q is not the name of an AdmissionParams: "+
				"write lower-case letters, digits, '-' and '.', such as proffer-%[1]s", flag, name)
		}
	}
	if len(o.OtherClasses) > 0 && o.ServedClasses == "" {
		return errors.New("--other-served-class has no effect without --served-classes: write both, or leave it out")
	}
	for _, class := range o.OtherClasses {
		if len(validation.IsDNS1123Label(class)) > 0 {
			return fmt.Errorf("--other-served-class=%q is not a class: write at most 63 lower-case letters, digits and '-', "+
				"such as default", class)
		}
	}
	if o.podSecurity != "" {
		var err error
		if o.OffloadedPodSecurity, err = podsecurity.ParseLevel(o.podSecurity); err != nil {
			return fmt.Errorf("--offloaded-pod-security=%w", err)
		}
	}
	return nil
}

func (o *commandOptions) checkOffers() error {
	defaultSubjects := slices.Equal(o.offersSubjects, []string{catalog.DefaultSubject})
	if !o.PublishOffers && !o.orchestrate && (o.Tenants.QPS != catalog.DefaultQPS || !defaultSubjects) {
		return errors.New("--publish-offers-qps and --offers-subject have no effect without --publish-offers " +
			"and --orchestrate: write one of these too, or leave them out")
	}
	if o.Tenants.QPS < 1 || o.Tenants.QPS > catalog.MaxQPS {
		return fmt.Errorf("--publish-offers-qps=%d is not a rate: write a number from 1 to %d",
			o.Tenants.QPS, catalog.MaxQPS)
	}
	if n := len(o.offersSubjects); n < 1 || n > catalog.MaxSubjects {
		return fmt.Errorf("--offers-subject is written %d times: write it 1 to %d times", n, catalog.MaxSubjects)
	}
	for i, text := range o.offersSubjects {
		subject, err := catalog.ParseSubject(text)
		if err != nil {
			return fmt.Errorf("--offers-subject=%q: %w", kube.Shorten(text, kube.MaxShown), err)
		}
		if slices.Contains(o.offersSubjects[:i], text) {
			return fmt.Errorf("--offers-subject=%q is written twice: leave one of them out", text)
		}
		if other := slices.IndexFunc(o.Tenants.Subjects, subject.Overlaps); other >= 0 {
			return fmt.Errorf("--offers-subject=%q and %q can name the same subject for two consumers: "+
				"write a character such as : next to {clusterID}", o.offersSubjects[other], text)
		}
		o.Tenants.Subjects = append(o.Tenants.Subjects, subject)
	}
	return nil
}

func (o *commandOptions) checkOrchestrate() error {
	switch {
	case !o.orchestrate && o.OrchestrateAs != "":
		return errors.New("--cluster-id has no effect without --orchestrate: write --orchestrate too, or leave it out")
	case !o.orchestrate && o.LegacyToggle:
		return errors.New("--legacy-toggle has no effect without --orchestrate: write --orchestrate too, or leave it out")
	case o.orchestrate && o.OrchestrateAs == "":
		o.OrchestrateAs = o.Plugins.ClusterID
	}
	switch {
	case o.orchestrate && o.OrchestrateAs == "":
		return errors.New("--orchestrate needs the ID of this cluster in Liqo: " +
			"write --cluster-id too, as liqoctl info shows it")
	case o.orchestrate && len(validation.IsDNS1123Label(o.OrchestrateAs)) > 0:
		return fmt.Errorf("--cluster-id=%q is not a cluster ID: write it as liqoctl info shows it, such as milan",
			kube.Shorten(o.OrchestrateAs, kube.MaxShown))
	}
	return nil
}

// checkCatalog refuses an address at which tokens could be read on the way.
func (o *commandOptions) checkCatalog() error {
	c := o.Catalog
	switch cert, key := c.CertFile != "", c.KeyFile != ""; {
	case c.Address == "" && c != (operator.Catalog{}):
		return errors.New("--catalog-anonymous, --catalog-tls-cert-file and --catalog-tls-key-file have no effect " +
			"without --catalog-bind-address: write it too, or leave them out")
	case cert && !key:
		return errors.New("--catalog-tls-cert-file needs the private key: write --catalog-tls-key-file too")
	case key && !cert:
		return errors.New("--catalog-tls-key-file needs the certificate: write --catalog-tls-cert-file too")
	case c.Address != "" && !cert && !outside.Loopback(c.Address):
		return fmt.Errorf("--catalog-bind-address=%s needs TLS: "+
			"write --catalog-tls-cert-file and --catalog-tls-key-file too, "+
			"or a loopback address such as 127.0.0.1:8444", c.Address)
	}
	return nil
}

func (o *commandOptions) checkGRPC() error {
	o.Endpoints = []resourcereader.Endpoint{{Address: o.grpc, Form: resourcereader.Form(o.form)}}
	if o.flat != "" {
		if o.form == form(resourcereader.Flat) {
			return errors.New("--grpc-form=flat and --grpc-flat-bind-address serve the flat form twice: leave one of them out")
		}
		o.Endpoints = append(o.Endpoints, resourcereader.Endpoint{Address: o.flat, Form: resourcereader.Flat})
	}
	switch cert, key, ca := o.TLS.CertFile != "", o.TLS.KeyFile != "", o.TLS.ClientCAFile != ""; {
	case cert && !key:
		return errors.New("--grpc-tls-cert needs the private key: write --grpc-tls-key too")
	case key && !cert:
		return errors.New("--grpc-tls-key needs the certificate: write --grpc-tls-cert too")
	case ca && !cert:
		return errors.New("--grpc-client-ca needs TLS: write --grpc-tls-cert and --grpc-tls-key too")
	}
	return nil
}
