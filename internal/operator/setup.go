package operator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/offered"
	"proffer.dev/proffer/internal/controllers/policy"
	"proffer.dev/proffer/internal/controllers/slice"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/plugins/filters"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/source/federation"
	"proffer.dev/proffer/internal/source/peers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// RBAC markers stand next to the code that needs the permissions. These are for the Lease, and for
// the CRDs that the informers of all packages watch.
//
// +kubebuilder:rbac:roleName=proffer-manager,groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=foreignclusters.core.liqo.io;foreignclusters.discovery.liqo.io;quotas.offloading.liqo.io;resourceslices.authentication.liqo.io;tenants.authentication.liqo.io;shadowpods.offloading.liqo.io;virtualnodes.offloading.liqo.io,verbs=list;watch
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
func namespaceOf(election *kube.LeaderElection) string {
	namespace, err := kube.LeaseNamespace(election)
	if err != nil {
		return metav1.NamespaceDefault
	}
	return namespace
}

// parts are the arguments of setup, apart from the manager.
type parts struct {
	Options
	// ledger is kept up to date with nodes and pods. Snapshots are published to table.
	ledger *capacity.Ledger
	table  *table.Table
	// debouncer schedules evaluations.
	debouncer *debounce.Debouncer
	// observer is set for a process that never leads, and so writes nothing.
	observer bool
	// removeAfter is for tests. 0 stands for the default of external sources.
	removeAfter time.Duration
	// replaceGrace is shorter in most tests. 0 stands for offer.ReplaceGrace.
	replaceGrace time.Duration
	// vitals may be nil.
	vitals *vitals
	// metrics may be nil.
	metrics prometheus.Registerer
	// chain is nil without filters in Go.
	chain *filters.Chain
	// providers is nil without Federation.
	providers *federation.Source
	// reconcilers holds the reconcilers in Go.
	reconcilers map[string]plugin.Reconciler
}

// grace is the time for which a policy that is gone is awaited.
func (p *parts) grace() time.Duration { return cmp.Or(p.replaceGrace, offer.ReplaceGrace) }

// setup adds to the manager everything that watches, evaluates and writes. The manager must have
// been created with NewScheme and cacheOptions, and without leader election: it starts everything on every
// replica, and kube.Leader what only one may do.
//
// Objects flow in one direction. The caches of each kind and the ledger wake the engine, which
// publishes a snapshot. Writers read the snapshot. All replicas evaluate; only the leader writes.
func setup(mgr ctrl.Manager, p parts) error {
	h, err := newHouse(mgr, p)
	if err != nil {
		return err
	}
	var all room
	for _, roomOf := range []func() (room, error){
		h.ofNodes, h.ofPolicies, h.ofSources, h.ofGuards, h.ofComponents, h.ofPlugins,
		h.ofSlices, // Its workers start to write with the snapshot, so it comes last.
	} {
		r, err := roomOf()
		if err != nil {
			return err
		}
		all = all.and(r)
	}
	all = all.and(h.ofEngine(all))
	if err := h.register(all.collectors); err != nil {
		return err
	}
	return h.add(all)
}

// newHouse makes what several rooms share.
func newHouse(mgr ctrl.Manager, p parts) (*house, error) {
	h := &house{
		parts: p, mgr: mgr, log: mgr.GetLogger().WithName("controllers"), namespace: namespaceOf(p.LeaderElection),
		recorder: mgr.GetEventRecorder(eventSource), restores: restore.New(), tenure: &kube.Tenure{},
		policies: policy.NewCache(p.chain), clusters: consumers.NewCache(),
	}
	h.vitals = cmp.Or(p.vitals, &vitals{})
	h.vitals.tenure = h.tenure
	if h.namespace != metav1.NamespaceDefault { // See namespaceOf.
		h.vitals.namespace = h.namespace
	}
	liqo, err := slice.NewClients(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for Liqo's objects: %w", err)
	}
	h.liqo = liqo
	h.decider = slice.NewDecider(liqo, p.NodeGrace, p.debouncer.WakeNow, h.wake, h.log.WithName("slices"))
	h.answers = slice.NewWriter(liqo, mgr.GetAPIReader(), mgr.GetClient(), h.namespace, h.decider, p.debouncer,
		h.tenure.Holds, h.recorder, h.restores, h.log.WithName("slices"))
	h.record = offered.NewRecord(mgr.GetAPIReader(), mgr.GetClient(), h.namespace, h.log.WithName("offered"))
	tenants := consumers.Tenants{Handler: h.decider.Tenants(), Fields: slice.TenantFields}
	h.informers = slices.Concat(consumers.Watches(liqo, h.clusters, tenants, h.wake, h.log.WithName("consumers")),
		h.decider.Informers, peers.Watches(liqo, p.ledger, h.wake, h.log.WithName("peers")))
	h.monitors = newExternals(&p, h.policies, h.clusters, h.tenure.Holds, h.log)
	h.monitors.Changed, h.record.Monitors = h.record.WriteLater, h.monitors
	return h, nil
}

func onSnapshot(wake func()) func(*table.Snapshot) {
	return func(*table.Snapshot) { wake() }
}
