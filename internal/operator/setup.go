package operator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/controllers/offered"
	"proffer.dev/proffer/controllers/podsecurity"
	"proffer.dev/proffer/controllers/policy"
	"proffer.dev/proffer/controllers/slice"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/metasync"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/plugins/filters"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/internal/source/peers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// RBAC markers stand next to the code that needs the permissions. These are for the Lease, and for
// the CRDs that the informers of all packages watch.
//
// +kubebuilder:rbac:roleName=proffer-manager,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=foreignclusters.core.liqo.io;foreignclusters.discovery.liqo.io;resourceslices.authentication.liqo.io;tenants.authentication.liqo.io;virtualnodes.offloading.liqo.io,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,resourceNames=proffer.dev,verbs=get;update
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups="",resources=events,verbs=create;patch

const (
	// LeaderElectionID is the name of the Lease that the leader holds.
	LeaderElectionID = "proffer.dev"
	// OfferedConfigMap is the name of the ConfigMap that records every resource that was ever
	// offered.
	OfferedConfigMap = offered.ConfigMap
	// eventSource is the reporting controller of Events.
	eventSource = "proffer"
)

// NewScheme returns a scheme with the types that the operator reads and writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// cacheOptions returns the options of the manager's cache, which keep it small. Nodes and pods are
// not in it: see internal/source/nodes. Grants are cached from one namespace.
func cacheOptions(namespace string) cache.Options {
	return cache.Options{
		DefaultTransform:         cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: kube.LogWatchError,
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Grant{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		},
	}
}

// namespaceOf returns the namespace of the Grants: the Lease's or, without leader election, the Pod's.
// Outside of a Pod it is default.
func namespaceOf(election *LeaderElection) string {
	namespace, err := kube.LeaseNamespace(election)
	if err != nil {
		return metav1.NamespaceDefault
	}
	return namespace
}

// parts are the arguments of setup, apart from the manager.
type parts struct {
	// ledger is kept up to date with nodes and pods, and nodeGrace is the grace of nodes. Snapshots are
	// published to table.
	ledger    *capacity.Ledger
	nodeGrace time.Duration
	table     *table.Table
	// debouncer schedules evaluations.
	debouncer *debounce.Debouncer
	// election is nil without leader election.
	election *LeaderElection
	// observer is set for a process that never leads, and so writes nothing.
	observer bool
	// servedClasses is the name of an AdmissionParams, or empty. otherClasses are listed there too.
	servedClasses string
	otherClasses  []string
	// placements is the name of an AdmissionParams, or empty.
	placements string
	// podSecurity is the level of the namespaces of consumers, empty to leave them as they are.
	podSecurity podsecurity.Level
	// publish is nil if the catalog is not published to consumers.
	publish *PublishOffers
	// orchestrateAs is the ID of this cluster, empty if no Orchestration is put into force.
	orchestrateAs string
	// removeAfter is for tests. 0 stands for the default of external sources.
	removeAfter time.Duration
	// metrics may be nil.
	metrics prometheus.Registerer
	version string
	// chain is nil without filters in Go.
	chain *filters.Chain
	// reconcilers holds the reconcilers in Go.
	reconcilers map[string]plugin.Reconciler
	// metasync is nil if no books are kept in a database.
	metasync *metasync.Options
}

// setup adds to the manager everything that watches, evaluates and writes. The manager must have
// been created with NewScheme and cacheOptions, and without leader election.
//
// Objects flow in one direction. The caches of each kind and the ledger wake the engine, which
// publishes a snapshot. Writers read the snapshot. All replicas evaluate; only the leader writes.
func setup(mgr ctrl.Manager, p parts) error {
	log := mgr.GetLogger().WithName("controllers")
	wake, namespace, recorder := p.debouncer.Wake, namespaceOf(p.election), mgr.GetEventRecorder(eventSource)
	liqo, err := slice.NewClients(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for Liqo's objects: %w", err)
	}

	// Everything that is watched, each kind with its cache.
	core, err := nodes.New(mgr.GetConfig(), p.ledger, p.nodeGrace, wake, log.WithName("core"))
	if err != nil {
		return err
	}
	policies, clusters := policy.NewCache(p.chain), consumers.NewCache()
	decider := slice.NewDecider(liqo, p.debouncer.WakeNow, wake, log.WithName("slices"))
	tenants := consumers.Tenants{Handler: decider.Tenants(), Fields: slice.TenantFields}
	informers := slices.Concat(consumers.Watches(liqo, clusters, tenants, wake, log.WithName("consumers")),
		decider.Informers(), peers.Watches(liqo, p.ledger, wake, log.WithName("peers")))
	tenure := &kube.Tenure{}
	monitors := newExternals(&p, policies, clusters, tenure.Holds, log)

	// The writers, which run while this replica leads.
	restores := restore.New()
	statuses := policy.NewStatusReconciler(mgr.GetClient(), p.table, policies.Version, recorder, restores,
		log.WithName("status"))
	answers := slice.NewWriter(liqo, mgr.GetAPIReader(), mgr.GetClient(), namespace, decider, p.debouncer, tenure.Holds,
		recorder, restores, log.WithName("slices"))
	record := offered.NewRecord(mgr.GetAPIReader(), mgr.GetClient(), namespace, log.WithName("offered"))
	work := []manager.Runnable{statuses, answers, offered.Writer{Record: record}}
	// These run after each evaluation. The answers come last, because workers start to write with
	// them.
	published := []func(*table.Snapshot){policies.Remember, record.Note, onSnapshot(statuses.Wake), monitors.follow}
	guards, err := p.guards(liqo, answers, wake, restores, log)
	if err != nil {
		return err
	}
	work, published, collectors := append(work, guards.work...), append(published, guards.published...), guards.collectors
	components := p.components(mgr, liqo, clusters, informers, restores, tenure.Holds)
	work, published = append(work, components.work...), append(published, components.published...)
	collectors = append(collectors, components.collectors...)
	plugins := p.runners(tenure.Holds, log.WithName("reconcilers"))
	work, published = append(work, plugins.leading...), append(published, plugins.wake...)
	collectors = append(collectors, plugins.collectors...)
	published = append(published, answers.Commit)
	if !p.observer {
		leader, err := kube.NewLeader(mgr, LeaderElectionID, p.election, tenure, log.WithName("leader"), work...)
		if err != nil {
			return err
		}
		if err := mgr.Add(leader); err != nil {
			return err
		}
	}

	parser, err := policy.NewReconciler(mgr.GetCache(), policies, wake, statuses.Check, log.WithName("policies"))
	if err != nil {
		return err
	}
	ofGrants, err := decider.WatchGrants(mgr.GetCache(), wake)
	if err != nil {
		return err
	}
	evaluator := engine.New(engine.Config{
		Ledger: p.ledger, Policies: policies, Consumers: clusters, Slices: decider, Peers: decider.Peers,
		Debouncer: p.debouncer, Table: p.table,
		Previous: func() []offer.PreviousOffers { return record.Previous(policies.Previous()) },
		Sources:  monitors.and(sourcesOf(append(core.Sources(), parser, ofGrants, record), informers)),
		Answers:  monitors.Answers, Published: published, Log: log.WithName("offers"),
	})
	if p.metrics != nil {
		for _, c := range slices.Concat(collectors, core.Metrics(), []prometheus.Collector{
			restores, statuses, answers, monitors, evaluator, &collector{table: p.table, version: p.version},
		}) {
			if err := p.metrics.Register(c); err != nil {
				return fmt.Errorf("registering metrics: %w", err)
			}
		}
	}
	return errors.Join(mgr.Add(core), mgr.Add(informers), mgr.Add(parser), mgr.Add(record), mgr.Add(evaluator),
		mgr.Add(monitors), plugins.addTo(mgr))
}

func onSnapshot(wake func()) func(*table.Snapshot) {
	return func(*table.Snapshot) { wake() }
}

func sourcesOf(checkers []toolscache.DoneChecker, informers kube.CRDInformers) []engine.Source {
	var all []engine.Source
	for _, c := range checkers {
		all = append(all, c)
	}
	for _, i := range informers {
		all = append(all, i)
	}
	return all
}
