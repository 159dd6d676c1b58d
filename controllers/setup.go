package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/controllers/corewatch"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/table"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies/status,verbs=update
// +kubebuilder:rbac:roleName=proffer-manager,groups="",resources=namespaces;nodes;pods,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=core.liqo.io;discovery.liqo.io,resources=foreignclusters,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices;tenants,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices/status,verbs=update
// +kubebuilder:rbac:roleName=proffer-manager,groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=foreignclusters.core.liqo.io;foreignclusters.discovery.liqo.io;resourceslices.authentication.liqo.io;tenants.authentication.liqo.io,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups=coordination.k8s.io,resources=leases,resourceNames=proffer.dev,verbs=get;update
// +kubebuilder:rbac:roleName=proffer-leader-election,namespace=proffer-system,groups="",resources=events,verbs=create;patch

// Options are what Setup needs beside the manager.
type Options struct {
	// Ledger is kept up to date with nodes and pods.
	Ledger *capacity.Ledger
	// Table is where offers are published.
	Table *table.Table
	// Batch gathers events; whoever wakes it has all offers worked out anew.
	Batch *Batch
	// LeaderElection has only one replica write. Nil is for an operator that is alone. The manager itself must not elect a leader.
	LeaderElection *LeaderElection
	// ServedClasses is the name of a ConfigMap, in the namespace of the Lease, that is to list the classes that policies offer. Empty is
	// for no list.
	ServedClasses string
	// Metrics is where metrics are registered, nil for nowhere.
	Metrics prometheus.Registerer
}

// NewScheme knows the types that are read and written.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// CacheOptions have the manager's cache hold no more than is needed. Nodes and pods are not in it: see corewatch.
func CacheOptions() cache.Options {
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
}

// Setup adds to the manager all that watches, evaluates and writes. The manager has to be made with NewScheme and CacheOptions. An
// error that says that ResourcePolicy is not known means that its CRD has to be installed first.
func Setup(mgr ctrl.Manager, opts Options) error {
	log := mgr.GetLogger().WithName("controllers")
	client, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for Liqo's objects: %w", err)
	}
	core, err := corewatch.New(mgr.GetConfig(), opts.Ledger, opts.Batch.period, opts.Batch.Wake, log.WithName("core"))
	if err != nil {
		return err
	}
	// What has been gathered of pods is read at once, and has to be given the time that a batch takes.
	wake := func() { core.Hurry(); opts.Batch.Wake() }
	wakeNow := func() {
		if core.Hurry() {
			opts.Batch.Wake()
		} else {
			opts.Batch.WakeNow()
		}
	}
	var (
		policies = newPolicies()
		sources  = newSlices(client, wakeNow, log.WithName("slices"))
		peers    = newPeers(client, wake, log.WithName("consumers"), sources.gates.tenants)
		latest   = &atomic.Pointer[outcome]{}
		timings  = newTimings()
		statuses = &statusWriter{
			client: mgr.GetClient(), outcome: latest, version: policies.version, batch: NewBatch(statusBatch), interval: statusInterval,
			events:  &announcer{recorder: mgr.GetEventRecorder("proffer"), told: map[types.UID]told{}},
			written: map[types.UID]written{}, log: log.WithName("status"),
		}
		answers  = newSliceWriter(client, sources, opts.Batch, newSliceAnnouncer(mgr.GetEventRecorder("proffer")), log.WithName("slices"))
		evaluate = &evaluator{
			ledger: opts.Ledger, table: opts.Table, policies: policies, consumers: peers.consumers, slices: sources, batch: opts.Batch,
			outcome: latest, published: []func(){statuses.batch.Wake}, commit: answers.commit, metrics: timings, log: log.WithName("offers"),
		}
	)
	work := []manager.Runnable{statuses, answers}
	if opts.ServedClasses != "" {
		served, err := newServedClasses(client, opts, latest, log.WithName("classes"))
		if err != nil {
			return err
		}
		work, evaluate.published = append(work, served), append(evaluate.published, served.batch.Wake)
	}
	leader, err := newLeader(mgr, opts.LeaderElection, log.WithName("leader"), work...)
	if err != nil {
		return err
	}
	ofPolicies, err := watchPolicies(mgr.GetCache(), policies, wake, statuses.batch.Wake)
	if err != nil {
		return err
	}
	evaluate.sources = append(core.Sources(), ofPolicies)
	watches := slices.Concat(peers.watches, sources.watches)
	for _, w := range watches {
		evaluate.sources = append(evaluate.sources, w)
	}
	if opts.Metrics != nil {
		for _, c := range []prometheus.Collector{&collector{table: opts.Table, outcome: latest, timings: timings}, answers.writes, answers.restores} {
			if err := opts.Metrics.Register(c); err != nil {
				return fmt.Errorf("registering metrics: %w", err)
			}
		}
	}
	return errors.Join(mgr.Add(core), mgr.Add(watches), mgr.Add(evaluate), mgr.Add(leader))
}

// watchPolicies brings policies to their register. Nothing in a handler waits for anything but a short lock.
func watchPolicies(informers cache.Informers, policies *policies, wake, checkStatus func()) (toolscache.DoneChecker, error) {
	wakeIf := func(changed bool) {
		if changed {
			wake()
		}
	}
	informer, err := informers.GetInformer(context.Background(), &v1alpha1.ResourcePolicy{}, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("install the CRD first, with kubectl apply -k config/crd: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	registration, err := informer.AddEventHandler(handle(
		func(p *v1alpha1.ResourcePolicy) {
			wakeIf(policies.set(p))
			checkStatus() // Somebody else may have written it.
		},
		func(p *v1alpha1.ResourcePolicy) { wakeIf(policies.remove(p)) },
	))
	if err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	return registration.HasSyncedChecker(), nil
}
