package controllers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"proffer.dev/proffer/internal/kube"
)

var (
	sliceResource        = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"}
	namespaceResource    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	storageClassResource = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// defaultStorageAnnotation marks the StorageClass that a claim gets which names none.
const defaultStorageAnnotation = "storageclass.kubernetes.io/is-default-class"

// sliceSources are what is known of ResourceSlices and of what their answers depend on.
type sliceSources struct {
	book    *sliceBook
	gates   *gates
	storage *kube.ObjectCache[namedClass]
	// unserved says which grants are left alone for a while.
	unserved unservedYet
	// watches keep all of it up to date but the Tenants, which peers watch.
	watches kube.CRDInformers
}

// newSlices makes the sources. The watches, and what is told of Tenants, call wake when something changes that an answer may depend on; of
// slices that change all the time, as their consumer may have them, they call later.
func newSlices(api *clients, wake, later func(), log logr.Logger) *sliceSources {
	s := &sliceSources{
		book: newSliceBook(), gates: newGates(), storage: kube.NewObjectCache(parseStorageClass),
		unserved: unservedYet{started: time.Now(), dealt: map[[2]string]struct{}{}},
	}
	watch := func(k kube.Kind, r kube.Handler) {
		s.watches = append(s.watches, kube.NewCRDInformer(api, k, wake, log, r))
	}
	// Those of this cluster's own are among them: a consumer could take the label that tells them apart off its own.
	watch(kube.Kind{GroupVersionResource: sliceResource, Source: api.sliceStream()}, newSliceRegister(s.book, wake, later))
	watch(kube.Kind{GroupVersionResource: namespaceResource, Builtin: true, Selector: tenantNamespaceLabel, Strip: keepOwner}, s.gates.owners)
	watch(kube.Kind{GroupVersionResource: storageClassResource, Builtin: true, Strip: stripStorageClass}, s.storage)
	return s
}

// storageClasses are all that there are, by name, as Liqo lists them for its own default class. The caller may change it.
func (s *sliceSources) storageClasses() []namedClass {
	return slices.SortedFunc(maps.Values(s.storage.All()), func(a, b namedClass) int { return cmp.Compare(a.name, b.name) })
}

func parseStorageClass(u *unstructured.Unstructured) namedClass {
	return namedClass{name: u.GetName(), isDefault: u.GetAnnotations()[defaultStorageAnnotation] == "true"}
}

func stripStorageClass(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out := kube.Identity(u)
	if value, ok := u.GetAnnotations()[defaultStorageAnnotation]; ok {
		out.SetAnnotations(map[string]string{defaultStorageAnnotation: value})
	}
	return out, nil
}

// News of the slices in one namespace: so many are decided on at once, and then one in each interval. Later ones wait for the batch.
const (
	newsBurst    = 20
	newsInterval = 100 * time.Millisecond
	// maxNewsPaces bounds for how many namespaces that is counted; the one that was heard of longest ago is forgotten first.
	maxNewsPaces = 16384
)

// sliceRegister brings ResourceSlices to the book. It wakes by itself: a consumer that changes its slices all the time must not set the pace
// of all decisions.
type sliceRegister struct {
	book        *sliceBook
	wake, later func()
	paces       *lru.Cache[string, *rate.Limiter]
}

func newSliceRegister(book *sliceBook, wake, later func()) sliceRegister {
	paces, err := lru.New[string, *rate.Limiter](maxNewsPaces)
	utilruntime.Must(err)
	return sliceRegister{book: book, wake: wake, later: later, paces: paces}
}

func (r sliceRegister) Set(u *unstructured.Unstructured) bool {
	return r.news(u, r.book.set(parseSlice(u)))
}

func (r sliceRegister) Remove(u *unstructured.Unstructured) bool {
	return r.news(u, r.book.remove(parseSlice(u)))
}

func (r sliceRegister) RemoveAll() { r.book.removeAll() }

// news wakes for a change, and reports false: there is nothing left to wake for.
func (r sliceRegister) news(u *unstructured.Unstructured, changed bool) bool {
	if !changed {
		return false
	}
	pace, known := r.paces.Get(u.GetNamespace())
	if !known {
		pace = rate.NewLimiter(rate.Every(newsInterval), newsBurst)
		r.paces.Add(u.GetNamespace(), pace)
	}
	if pace.Allow() {
		r.wake()
	} else {
		r.later()
	}
	return false
}

// unservedYet remembers for which consumers a policy has decided since the start, by class.
type unservedYet struct {
	started time.Time
	dealt   map[[2]string]struct{}
}

// awaits returns for how long a grant is left alone on which no policy decides, and none has since the start: policies may be about to be
// applied, as after a new installation. It is used by whoever evaluates.
func (s *sliceSources) awaits(class, consumer string, dealt bool, now time.Time) time.Duration {
	key := [2]string{class, consumer}
	if dealt {
		s.unserved.dealt[key] = struct{}{}
		return 0
	}
	if _, known := s.unserved.dealt[key]; known {
		return 0
	}
	return max(0, unservedGrace-now.Sub(s.unserved.started))
}

// resources returns the sorted names with those of all that is granted. They are the same names in the same list where none is new.
func (s *sliceSources) resources(names []string) []string {
	all := names
	for _, c := range s.book.list() {
		for _, share := range c.holds {
			for name := range share.Amounts {
				if at, found := slices.BinarySearch(all, name); !found {
					all = slices.Insert(slices.Clip(all), at, name)
				}
			}
		}
	}
	return all
}
