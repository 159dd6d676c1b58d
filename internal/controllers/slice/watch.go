package slice

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

var (
	namespaceResource    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	storageClassResource = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=resourceslices,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=offloading.liqo.io,resources=quotas,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=storage.k8s.io,resources=storageclasses,verbs=list;watch

// TenantFields are the fields of a Tenant that the handler of Tenants reads.
var TenantFields = [][]string{{"spec", "clusterID"}, {"spec", "tenantCondition"}}

// Decider knows the ResourceSlices and what their answers depend on, and decides on all of them.
type Decider struct {
	cache   *grantCache
	gates   *gates
	quotas  *kube.ObjectCache[capacity.Amounts]
	storage *kube.ObjectCache[storageClass]
	// grace says which grants are left alone for a while.
	grace holding.Grace
	// Informers keep everything up to date but the Tenants.
	Informers kube.CRDInformers
}

// NewDecider returns a Decider that knows nothing yet. Its informers call wake when something has
// changed that an answer may depend on, and later for a slice whose consumer keeps changing it.
// Neither may block. Capacity that is missing at the first decision lowers no grant for nodeGrace.
func NewDecider(api *Clients, nodeGrace time.Duration, wake, later func(), log logr.Logger) *Decider {
	d := &Decider{
		cache: newGrantCache(), gates: newGates(), quotas: kube.NewObjectCache(parseQuota),
		storage: kube.NewObjectCache(parseStorageClass),
		grace:   holding.Grace{Started: time.Now(), Since: map[[2]string]time.Time{}, Nodes: nodeGrace},
	}
	watch := func(k kube.Kind, r kube.Handler) {
		d.Informers = append(d.Informers, kube.NewCRDInformer(api, k, wake, log, r))
	}
	// All slices are watched, also those of this cluster: a consumer can remove the label that
	// distinguishes its own.
	watch(kube.Kind{GroupVersionResource: liqo.ResourceSlices, Source: api.sliceStream()},
		newSliceHandler(d.cache, wake, later))
	// A consumer that forges answers sets the pace of its Quotas.
	quotas := kube.Kind{GroupVersionResource: liqo.Quotas, Strip: stripQuota}
	d.Informers = append(d.Informers, kube.NewCRDInformer(api, quotas, later, log, d.quotas))
	watch(kube.Kind{
		GroupVersionResource: namespaceResource, Builtin: true, Selector: liqo.TenantNamespaceLabel, Strip: kube.KeepFields(),
	}, d.gates.owners)
	watch(kube.Kind{GroupVersionResource: storageClassResource, Builtin: true, Strip: stripStorageClass}, d.storage)
	return d
}

// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups=proffer.dev,resources=grants,verbs=get;list;watch;create;update;delete

// WatchGrants keeps the records of grants up to date, and calls wake when one has changed what
// counts as granted. The result is done when every Grant has been seen once.
func (d *Decider) WatchGrants(informers cache.Informers, wake func()) (toolscache.DoneChecker, error) {
	kind := &v1alpha1.Grant{}
	informer, err := kube.InformerOf(informers, kind)
	if err != nil {
		return nil, err
	}
	wakeAfter := func(change func(grantRecord) bool) func(*v1alpha1.Grant) {
		return func(g *v1alpha1.Grant) {
			if change(parseGrant(g)) {
				wake()
			}
		}
	}
	set, remove := wakeAfter(d.cache.setRecord), wakeAfter(d.cache.removeRecord)
	registration, err := informer.AddEventHandler(kube.OnEvents(set, remove))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	return registration.HasSyncedChecker(), nil
}

// Tenants is the handler for Liqo's Tenants, which others watch too.
func (d *Decider) Tenants() kube.Handler { return d.gates.tenants }

// The rate of changes in one namespace that are evaluated immediately: newsBurst, then one per
// newsInterval. Further changes wait for the debounce window.
const (
	newsBurst    = 20
	newsInterval = 100 * time.Millisecond
)

// sliceHandler keeps ResourceSlices in the cache. It wakes by itself: a consumer that keeps
// changing its slices must not set the pace of all decisions.
type sliceHandler struct {
	cache       *grantCache
	wake, later func()
	// paces limits the changes of each namespace.
	paces paces
}

func newSliceHandler(cache *grantCache, wake, later func()) sliceHandler {
	return sliceHandler{cache: cache, wake: wake, later: later, paces: newPaces(newsInterval, newsBurst)}
}

func (h sliceHandler) Set(u *unstructured.Unstructured) bool {
	return h.wakeFor(u, h.cache.set(parseSlice(u)))
}

func (h sliceHandler) Remove(u *unstructured.Unstructured) bool {
	return h.wakeFor(u, h.cache.remove(parseSlice(u)))
}

func (h sliceHandler) RemoveAll() { h.cache.removeAll() }

// wakeFor wakes for a change, and reports false so that the informer does not wake again.
func (h sliceHandler) wakeFor(u *unstructured.Unstructured, changed bool) bool {
	if !changed {
		return false
	}
	if h.paces.allow(u.GetNamespace(), time.Now()) {
		h.wake()
	} else {
		h.later()
	}
	return false
}

// maxPaces bounds the keys with a rate of their own; the least recently used key is forgotten.
const maxPaces = 16384

// paces limits a rate for each of many keys.
type paces struct {
	every    time.Duration
	burst    int
	limiters *lru.Cache
}

// newPaces allows a burst immediately for each key, and one more in each interval.
func newPaces(every time.Duration, burst int) paces { return paces{every, burst, lru.New(maxPaces)} }

func (p *paces) allow(key any, now time.Time) bool {
	limiter, known := p.limiters.Get(key)
	if !known {
		limiter = rate.NewLimiter(rate.Every(p.every), p.burst)
		p.limiters.Add(key, limiter)
	}
	return limiter.(*rate.Limiter).AllowN(now, 1)
}

// Granters implements engine.Slices.
func (d *Decider) Granters() map[string]struct{} {
	all := map[string]struct{}{}
	for _, c := range d.cache.list() {
		for _, share := range c.Holds {
			for _, by := range offer.Granters(share.Policy) {
				all[offer.WithoutSeat(by)] = struct{}{}
			}
		}
	}
	return all
}

// Resources returns the sorted names with the resources that are granted added. It is the same list if
// none is new.
func (d *Decider) Resources(names []string) []string {
	all := names
	for _, c := range d.cache.list() {
		for _, share := range c.Holds {
			for name := range share.Amounts {
				if at, found := slices.BinarySearch(all, name); !found {
					all = slices.Insert(slices.Clip(all), at, name)
				}
			}
		}
	}
	return all
}
