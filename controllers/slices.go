package controllers

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
	storage *objects[namedClass]
	// watches keep all of it up to date but the Tenants, which peers watch.
	watches kindWatches
}

// newSlices makes the sources. The watches, and what is told of Tenants, call wake when something changes that an answer may depend on.
func newSlices(client dynamic.Interface, wake func(), log logr.Logger) *sliceSources {
	s := &sliceSources{book: newSliceBook(), gates: newGates(), storage: newObjects(parseStorageClass)}
	watch := func(k kind, r register) { s.watches = append(s.watches, newKindWatch(client, k, wake, log, r)) }
	// Those of this cluster's own are among them: a consumer could take the label that tells them apart off its own.
	watch(kind{GroupVersionResource: sliceResource, strip: stripSlice}, sliceRegister{s.book})
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
