// Package operator builds and runs the operator from Options: everything that watches, evaluates,
// serves and writes. Package command adds the command line.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/watchage"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/internal/web/outside"
)

// The defaults of --batch-period and --node-grace-period. Restarts of a kubelet, a device plugin or a
// labeller take less than a minute, and Kubernetes keeps pods for 5 minutes on a node that is not Ready.
const (
	DefaultBatchPeriod = 100 * time.Millisecond
	DefaultNodeGrace   = 2 * time.Minute
)

// Options configure an operator.
type Options struct {
	// Version is shown in a metric and a log line.
	Version string
	// Endpoints are the gRPC listen addresses; at least one is required.
	Endpoints []resourcereader.Endpoint
	TLS       resourcereader.TLS
	// MetricsAddress, ProbeAddress and PprofAddress are the HTTP listen addresses. "0" or
	// an empty address disables a listener.
	MetricsAddress, ProbeAddress, PprofAddress string
	// BatchPeriod is the minimum time between two evaluations. Events are batched for half of it.
	BatchPeriod time.Duration
	// NodeGrace is the time for which a node counts as before that is not Ready any more, or has lost a
	// label or all of a resource. 0 disables it.
	NodeGrace time.Duration
	// LeaderElection is nil for a single replica without leader election.
	LeaderElection *kube.LeaderElection
	// ServedClasses is the name of an AdmissionParams, in the namespace of the Lease, in which the
	// operator lists the classes that policies offer, and OtherClasses. Empty keeps no list.
	ServedClasses string
	// OtherClasses are classes that another controller answers.
	OtherClasses []string
	// Placements is the name of an AdmissionParams, in the namespace of the Lease, in which the
	// operator lists the users whose pods have to carry labels of nodes. Empty keeps no list.
	Placements string
	// OffloadedPodSecurity is the pod-security level of the namespaces that Liqo creates for consumers.
	// Empty leaves them as they are.
	OffloadedPodSecurity podsecurity.Level
	// PublishOffers publishes the catalog to consumers, as Offers in their tenant namespaces.
	PublishOffers bool
	// Tenants configures what is written into tenant namespaces, with PublishOffers or OrchestrateAs.
	Tenants Tenants
	// Federation reads what the providers of this cluster publish to it.
	Federation bool
	// OrchestrateAs is the ID of this cluster in Liqo. Empty puts no Orchestration into force.
	OrchestrateAs string
	// LegacyToggle also allows callers to disable and enable providers with GET.
	LegacyToggle bool
	// Catalog is the listener for callers from outside of the cluster.
	Catalog Catalog
	// Plugins are filters and reconcilers in Go.
	Plugins Plugins
}

// Tenants configures what is written into the tenant namespaces of consumers.
type Tenants struct {
	// Subjects may read the Offers of a consumer, and write its ProviderChoice.
	Subjects []catalog.Subject
	// QPS bounds the writes in a second. It is positive.
	QPS int
}

// Run runs an operator until the context ends, on the cluster of the configuration, which it
// modifies. At the end the process first reports that it is not ready, then ends gRPC, then
// everything else. Metrics are registered with controller-runtime's registry, so a process can call
// Run only once.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	log := ctrl.Log.WithName("setup")
	log.Info("Starting", "version", o.Version)
	// All clients are created from this config, so the monitor sees every watch of the process.
	watches := watchage.New(ctrl.Log.WithName("watches"))
	config.Wrap(watches.Wrap)
	debouncer, offers := debounce.New(o.BatchPeriod), table.New()
	server, strangers, err := openPorts(ctx, &o, offers)
	if err != nil {
		return err
	}
	clusters, err := consumers.NewLister(config, ctrl.Log.WithName("clusters"))
	if err != nil {
		return err
	}

	group, serving := errgroup.WithContext(ctx)
	managing, stopManager := context.WithCancel(context.WithoutCancel(ctx))
	// gRPC starts at once: Liqo gives up on a connection after 3 s, and tries again only when it is
	// restarted.
	group.Go(func() error {
		defer stopManager()
		return server.Start(serving)
	})
	group.Go(func() error {
		limitStartupHeap(serving, offers.Ready())
		return nil
	})
	group.Go(func() error {
		mgr, err := newManager(config, o, watches)
		if err != nil {
			return err
		}
		p := parts{
			Options: o, ledger: capacity.NewLedger(), table: offers, debouncer: debouncer, metrics: metrics.Registry,
			vitals: &vitals{watches: watches},
		}
		probes := map[string]healthz.Checker{
			"offers": readiness(serving, offers), "watches": watches.Check,
		}
		if err := assemble(serving, mgr, p, probes, clusters, strangers); err != nil {
			return err
		}
		return mgr.Start(managing)
	})
	return group.Wait()
}

// openPorts opens the ports of gRPC and of callers from outside. The second server is nil without an address.
func openPorts(ctx context.Context, o *Options, offers *table.Table) (*resourcereader.Server, *outside.Server, error) {
	server, err := resourcereader.New(resourcereader.Options{
		Table: offers, Endpoints: o.Endpoints, TLS: o.TLS, Registerer: metrics.Registry,
		Logger: ctrl.Log.WithName("grpc"),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := server.Listen(ctx); err != nil {
		return nil, nil, err
	}
	strangers, err := o.Catalog.listen(ctx)
	return server, strangers, err
}

// assemble adds everything to the manager that watches, evaluates, writes, and answers over HTTP.
func assemble(
	ctx context.Context, mgr ctrl.Manager, p parts, probes map[string]healthz.Checker, clusters *consumers.Lister,
	strangers *outside.Server,
) error {
	if err := p.buildPlugins(mgr); err != nil {
		return err
	}
	pages := web.New(p.table, p.ledger, clusters, p.chain, p.Version)
	pages.Process, pages.Month = p.vitals.process, p.vitals.month
	if err := mgr.Add(sample(p.table, pages.Trends)); err != nil {
		return err
	}
	if p.Federation {
		var err error
		if p.providers, err = newFederation(mgr); err != nil {
			return err
		}
		pages.Federation = p.providers.Federation
	}
	if p.OrchestrateAs != "" {
		toggling, err := newToggling(mgr.GetConfig(), clusters, &p.Options, ctrl.Log.WithName("toggle"))
		if err != nil {
			return err
		}
		pages.Toggling = &toggling
	}
	if err := metrics.Registry.Register(pages); err != nil {
		return err
	}
	if err := servePorts(ctx, mgr, &p.Options, probes, pages.Handlers()); err != nil {
		return err
	}
	if err := p.Catalog.serve(mgr, strangers, pages); err != nil {
		return err
	}
	return setup(mgr, p)
}

// startGCPercent is the growth of the heap between two collections, in percent, until the process
// is ready: half of Go's default. It lowers the peak by a seventh, at no measurable cost of time.
const startGCPercent = 50

// limitStartupHeap saves memory until the process is ready. The memory for the first lists is not
// needed again, so it is returned to the system at once instead of over the next minutes.
func limitStartupHeap(ctx context.Context, ready <-chan struct{}) {
	usual := debug.SetGCPercent(startGCPercent)
	if usual < startGCPercent {
		debug.SetGCPercent(usual) // GOGC sets a smaller growth, or disables collection.
	}
	select {
	case <-ready:
		debug.SetGCPercent(usual)
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}

func newManager(config *rest.Config, o Options, watches *watchage.Monitor) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  NewScheme(),
		Cache:   cacheOptions(namespaceOf(o.LeaderElection)),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", // See servePorts.
		PprofBindAddress: o.PprofAddress,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	return mgr, errors.Join(mgr.Add(watches), metrics.Registry.Register(watches))
}

// readiness returns a check that fails until the first offers are published, and again once the context has
// ended: the process shuts down.
func readiness(ctx context.Context, offers *table.Table) healthz.Checker {
	return func(*http.Request) error {
		if ctx.Err() != nil {
			return errors.New("shutting down")
		}
		select {
		case <-offers.Ready():
			return nil
		default:
			return errors.New("no offers yet: waiting for the first lists of nodes, pods, policies and Liqo's objects")
		}
	}
}
