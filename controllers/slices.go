package controllers

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
)

var (
	sliceResource        = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"}
	namespaceResource    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	storageClassResource = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

// sliceSelector is for the copies of other clusters' slices: this cluster may have slices of its own, that others answer.
const sliceSelector = replicatedLabel + "=true"

// defaultStorageAnnotation marks the StorageClass that a claim gets which names none.
const defaultStorageAnnotation = "storageclass.kubernetes.io/is-default-class"

// sliceSources are what is known of ResourceSlices and of what their answers depend on.
type sliceSources struct {
	book    *sliceBook
	gates   *gates
	storage *objects[namedClass]
	// watches keep all of it up to date but the Tenants, which peers watch.
	watches kindWatches
}

// newSlices makes the sources. The watches, and what is told of Tenants, call wake when something changes that an answer may depend on.
func newSlices(client dynamic.Interface, wake func(), log logr.Logger) *sliceSources {
	s := &sliceSources{book: newSliceBook(), gates: newGates(), storage: newObjects(parseStorageClass)}
	watch := func(k kind, r register) { s.watches = append(s.watches, newKindWatch(client, k, wake, log, r)) }
	watch(kind{GroupVersionResource: sliceResource, selector: sliceSelector, strip: stripSlice}, sliceRegister{s.book})
	watch(kind{GroupVersionResource: namespaceResource, builtin: true, selector: tenantNamespaceLabel, strip: keepLabels}, s.gates.owners)
	watch(kind{GroupVersionResource: storageClassResource, builtin: true, strip: stripStorageClass}, s.storage)
	return s
}

// storageClasses are all that there are, by name, as Liqo lists them for its own default class. The caller may change it.
func (s *sliceSources) storageClasses() []namedClass {
	return slices.SortedFunc(maps.Values(s.storage.all()), func(a, b namedClass) int { return cmp.Compare(a.name, b.name) })
}

func parseStorageClass(u *unstructured.Unstructured) namedClass {
	return namedClass{name: u.GetName(), isDefault: u.GetAnnotations()[defaultStorageAnnotation] == "true"}
}

func stripStorageClass(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out := bare(u)
	if value, ok := u.GetAnnotations()[defaultStorageAnnotation]; ok {
		out.SetAnnotations(map[string]string{defaultStorageAnnotation: value})
	}
	return out, nil
}

// sliceRegister brings ResourceSlices to the book.
type sliceRegister struct{ book *sliceBook }

func (r sliceRegister) set(u *unstructured.Unstructured) bool    { return r.book.set(parseSlice(u)) }
func (r sliceRegister) remove(u *unstructured.Unstructured) bool { return r.book.remove(parseSlice(u)) }
func (r sliceRegister) removeAll()                               { r.book.removeAll() }

// rememberedRemovals is for how many slices that are gone the book still knows so.
const rememberedRemovals = 4096

// sliceBook is the register of the slices. A slice may be told by the watch, by a list and by what a write of its status returns, in any
// order: the newest counts.
type sliceBook struct {
	mu    sync.Mutex
	byKey map[string]slice
	// removed has the versions at which slices were removed, so that news that is older does not bring one back for good. A slice that
	// got its label again is newer.
	removed *simplelru.LRU[types.UID, string]
	// sorted is nil when it has to be made anew.
	sorted []slice
}

func newSliceBook() *sliceBook {
	removed, err := simplelru.NewLRU[types.UID, string](rememberedRemovals, nil)
	utilruntime.Must(err)
	return &sliceBook{byKey: map[string]slice{}, removed: removed}
}

// set records a slice unless a newer state of it is known, and reports whether anything that is decided by has changed.
func (b *sliceBook) set(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, gone := b.removed.Get(s.uid); gone && !newer(s.version(), at) {
		return false
	}
	known, found := b.byKey[s.key]
	if found && !newer(s.version(), known.version()) {
		return false
	}
	b.byKey[s.key], b.sorted = s, nil
	return !found || !same(&known, &s)
}

// remove forgets a slice, and reports whether it was known. Another slice of the same name stays.
func (b *sliceBook) remove(s slice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed.Add(s.uid, s.version())
	known, found := b.byKey[s.key]
	if !found || known.uid != s.uid {
		return false
	}
	delete(b.byKey, s.key)
	b.sorted = nil
	return true
}

func (b *sliceBook) removeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.byKey)
	b.sorted = nil
}

// list returns the slices by their keys. The caller must not change it.
func (b *sliceBook) list() []slice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sorted == nil {
		b.sorted = make([]slice, 0, len(b.byKey))
		for _, key := range slices.Sorted(maps.Keys(b.byKey)) {
			b.sorted = append(b.sorted, b.byKey[key])
		}
	}
	return b.sorted
}

// newer compares versions of objects of one kind. Where they are not numbers, as those of the API server are, whatever is told last is newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
