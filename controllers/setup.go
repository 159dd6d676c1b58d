package controllers

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/internal/table"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies/status,verbs=update
// +kubebuilder:rbac:roleName=proffer-manager,groups="",resources=namespaces;nodes;pods,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=core.liqo.io;discovery.liqo.io,resources=foreignclusters,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices;tenants,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices/status,verbs=patch
// +kubebuilder:rbac:roleName=proffer-manager,groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=foreignclusters.core.liqo.io;foreignclusters.discovery.liqo.io;resourceslices.authentication.liqo.io;tenants.authentication.liqo.io,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups=proffer.dev,resources=grants,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups="",resources=configmaps,resourceNames=proffer-offered,verbs=get;create;update;patch
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,resourceNames=proffer.dev,verbs=get;update
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups="",resources=events,verbs=create;patch

// LeaderElectionID is the name of the Lease that the leader holds.
const LeaderElectionID = "proffer.dev"

// Options are what Setup needs beside the manager.
type Options struct {
	// Ledger is kept up to date with nodes and pods.
	Ledger *capacity.Ledger
	// Table is where offers are published.
	Table *table.Table
	// Debouncer merges events into evaluations: its Wake schedules one.
	Debouncer *debounce.Debouncer
	// LeaderElection has only one replica write. Nil is for an operator that is alone. The manager itself must not elect a leader.
	LeaderElection *kube.LeaderElection
	// ServedClasses is the name of a ConfigMap, in the namespace of the Lease, that is to list the classes that policies offer. Empty is
	// for no list.
	ServedClasses string
	// Metrics is where metrics are registered, nil for nowhere.
	Metrics prometheus.Registerer
	// Version is that of the program, for a metric.
	Version string
}

// NewScheme knows the types that are read and written.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// CacheOptions have the manager's cache hold no more than is needed. Nodes and pods are not in it: see nodes. Grants are read in one
// namespace.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&v1alpha1.Grant{}: {Namespaces: map[string]cache.Config{namespace: {}}}},
	}
}

// Namespace is where the Grants are: that of the Lease or, where no leader is elected, that of the Pod; outside of a Pod it is default.
func Namespace(election *kube.LeaderElection) string {
	namespace, err := kube.LeaseNamespace(election)
	if err != nil {
		return metav1.NamespaceDefault
	}
	return namespace
}

// Setup adds to the manager all that watches, evaluates and writes. The manager has to be made with NewScheme and CacheOptions. An
// error that says that ResourcePolicy is not known means that its CRD has to be installed first.
func Setup(mgr ctrl.Manager, opts Options) error {
	log := mgr.GetLogger().WithName("controllers")
	objects, err := newClients(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for Liqo's objects: %w", err)
	}
	core, err := nodes.New(mgr.GetConfig(), opts.Ledger, opts.Debouncer.Wake, log.WithName("core"))
	if err != nil {
		return err
	}
	var (
		policies = newPolicies()
		sources  = newSlices(objects, opts.Debouncer.WakeNow, opts.Debouncer.Wake, log.WithName("slices"))
		peers    = newPeers(objects, opts.Debouncer.Wake, log.WithName("consumers"), sources.gates.tenants)
		latest   = &atomic.Pointer[outcome]{}
		timings  = newTimings()
		statuses = &statusWriter{
			client: mgr.GetClient(), outcome: latest, unusable: opts.Ledger.Unusable, version: policies.version, debouncer: debounce.New(statusBatch), interval: statusInterval,
			events:  &announcer{events: kube.NewEventEmitter(mgr.GetEventRecorder("proffer"), actionOffer), told: map[types.UID]told{}},
			written: map[types.UID]written{}, log: log.WithName("status"),
		}
		tenure   = &kube.Tenure{}
		grants   = &grantClient{reader: mgr.GetAPIReader(), writer: mgr.GetClient(), namespace: Namespace(opts.LeaderElection)}
		answers  = newSliceWriter(objects.slices, grants, sources, opts.Debouncer, tenure.Holds, newSliceAnnouncer(mgr.GetEventRecorder("proffer")), log.WithName("slices"))
		record   = newOfferedRecord(mgr.GetAPIReader(), mgr.GetClient(), grants.namespace, log.WithName("offered"))
		evaluate = &evaluator{
			ledger: opts.Ledger, table: opts.Table, policies: policies, consumers: peers.consumers, slices: sources, record: record, debouncer: opts.Debouncer,
			outcome: latest, published: []func(){statuses.debouncer.Wake}, commit: answers.commit, metrics: timings, log: log.WithName("offers"),
			delayed: debounce.NewDelayedWake(opts.Debouncer.Wake),
		}
	)
	work := []manager.Runnable{statuses, answers, offeredWriter{record}}
	if opts.ServedClasses != "" {
		served, err := newServedClasses(objects, opts, latest, log.WithName("classes"))
		if err != nil {
			return err
		}
		work, evaluate.published = append(work, served), append(evaluate.published, served.debouncer.Wake)
	}
	leader, err := kube.NewLeader(mgr, LeaderElectionID, opts.LeaderElection, tenure, log.WithName("leader"), work...)
	if err != nil {
		return err
	}
	ofPolicies, err := watchPolicies(mgr.GetCache(), policies, opts.Debouncer.Wake, statuses.debouncer.Wake)
	if err != nil {
		return err
	}
	ofGrants, err := watchGrants(mgr.GetCache(), sources.book, opts.Debouncer.Wake)
	if err != nil {
		return err
	}
	evaluate.sources = append(core.Sources(), ofPolicies, ofGrants, record)
	watches := slices.Concat(peers.watches, sources.watches)
	for _, w := range watches {
		evaluate.sources = append(evaluate.sources, w)
	}
	if opts.Metrics != nil {
		collectors := append(answers.metrics.collectors(), core.Metrics(),
			&collector{table: opts.Table, outcome: latest, timings: timings, version: opts.Version})
		for _, c := range collectors {
			if err := opts.Metrics.Register(c); err != nil {
				return fmt.Errorf("registering metrics: %w", err)
			}
		}
	}
	return errors.Join(mgr.Add(core), mgr.Add(watches), mgr.Add(record), mgr.Add(evaluate), mgr.Add(leader))
}

// watchGrants brings the records of grants to the book.
func watchGrants(informers cache.Informers, book *sliceBook, wake func()) (toolscache.DoneChecker, error) {
	return kube.Watch(informers, &v1alpha1.Grant{},
		func(g *v1alpha1.Grant) bool { return book.setRecord(parseGrant(g)) },
		func(g *v1alpha1.Grant) bool { return book.removeRecord(parseGrant(g)) }, wake)
}

// watchPolicies brings policies to their register.
func watchPolicies(informers cache.Informers, policies *policies, wake, checkStatus func()) (toolscache.DoneChecker, error) {
	return kube.Watch(informers, &v1alpha1.ResourcePolicy{},
		func(p *v1alpha1.ResourcePolicy) bool {
			checkStatus() // Another client may have written the status.
			return policies.set(p)
		}, policies.remove, wake)
}
