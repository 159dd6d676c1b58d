package main

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
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/controllers"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/explain"
	"proffer.dev/proffer/internal/kube/watchage"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/internal/table"
)

// run wires the parts together and runs them until the context ends. Then, in this order: the process says that it is not ready, gRPC ends,
// everything else ends.
func run(ctx context.Context, config *rest.Config, o options) error {
	log := ctrl.Log.WithName("setup")
	log.Info("Starting", "version", versionOf())
	// All clients are made from this config, so every watch of the process is followed.
	watches := watchage.New(ctrl.Log.WithName("watches"))
	config.Wrap(watches.Wrap)
	debouncer := debounce.New(time.Duration(o.batchPeriod))
	offers := table.New()
	server, err := resourcereader.New(resourcereader.Options{
		Table: offers, Endpoints: o.endpoints, TLS: o.tls, Registerer: metrics.Registry, Logger: ctrl.Log.WithName("grpc"),
	})
	if err != nil {
		return err
	}
	if err := server.Listen(ctx); err != nil {
		return o.inUse(err)
	}

	group, serving := errgroup.WithContext(ctx)
	managing, stopManager := context.WithCancel(context.WithoutCancel(ctx))
	// gRPC does not wait for anything: Liqo gives up on a connection after 3 s, and asks again only when it is started anew.
	group.Go(func() error {
		defer stopManager()
		return server.Start(serving)
	})
	group.Go(func() error {
		sparely(serving, offers.Ready())
		return nil
	})
	group.Go(func() error {
		ledger := capacity.NewLedger()
		ready := &readiness{ctx: serving, table: offers}
		mgr, err := newManager(config, o, ready, watches, explain.Handler(offers, ledger.Unusable))
		if err != nil {
			return err
		}
		setup := controllers.Options{Ledger: ledger, Table: offers, Debouncer: debouncer, ServedClasses: o.servedClasses, Metrics: metrics.Registry, Version: versionOf()}
		if o.leaderElect {
			setup.LeaderElection = &o.election
		}
		if err := controllers.Setup(mgr, setup); err != nil {
			return err
		}
		return mgr.Start(managing)
	})
	return o.inUse(group.Wait())
}

// startGCPercent is how much the heap may grow between two collections, in percent, while the cluster is read for the first time: half of
// what is usual. It lowers the peak by a seventh, and costs no time that can be measured.
const startGCPercent = 50

// sparely saves memory until the process is ready. What it took to read the whole cluster is never needed again: it goes back to the system
// then, not over the next minutes.
func sparely(ctx context.Context, ready <-chan struct{}) {
	usual := debug.SetGCPercent(startGCPercent)
	if usual < startGCPercent {
		debug.SetGCPercent(usual) // GOGC says that there is even less memory, or that nothing is to be collected
	}
	select {
	case <-ready:
		debug.SetGCPercent(usual)
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}

func newManager(config *rest.Config, o options, ready *readiness, watches *watchage.Monitor, explanations http.Handler) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: controllers.NewScheme(),
		Cache:  controllers.CacheOptions(controllers.Namespace(&o.election)),
		Metrics: metricsserver.Options{
			BindAddress: o.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
			ExtraHandlers: map[string]http.Handler{explain.Path: explanations, explain.Path + "/": explanations},
		},
		HealthProbeBindAddress: o.probes,
		PprofBindAddress:       o.pprof,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	return mgr, errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("offers", ready.check), mgr.AddReadyzCheck("watches", watches.Check),
		mgr.Add(watches), metrics.Registry.Register(watches),
	)
}

// readiness says whether callers should be sent here.
type readiness struct {
	ctx   context.Context
	table *table.Table
}

// check fails until all has been seen and the first offers are published, and from the moment that the process is told to end.
func (r *readiness) check(*http.Request) error {
	if r.ctx.Err() != nil {
		return errors.New("shutting down")
	}
	select {
	case <-r.table.Ready():
		return nil
	default:
		return errors.New("no offers yet: waiting for the first lists of nodes, pods, policies and Liqo's objects")
	}
}
