package consumers

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=core.liqo.io;discovery.liqo.io,resources=foreignclusters,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=authentication.liqo.io,resources=tenants,verbs=list;watch

// Tenants is another reader of Liqo's Tenants, which are watched once for both.
type Tenants struct {
	kube.Handler
	// Fields are the paths of the fields that it reads, besides metadata and labels.
	Fields [][]string
}

// Watches returns informers that keep the cache up to date and call wake, which must not block,
// when a consumer has changed. They follow each kind for as long as its CustomResourceDefinition
// exists.
func Watches(client dynamic.Interface, consumers *Cache, also Tenants, wake func(), log logr.Logger) kube.CRDInformers {
	changed := func() {
		consumers.changed()
		wake()
	}
	var all kube.CRDInformers
	for i, k := range kinds {
		handlers, fields := []kube.Handler{consumers.handlerOf(i, log)}, [][]string(nil)
		if k.GroupVersionResource == liqo.Tenants {
			handlers, fields = append(handlers, also), also.Fields
		}
		informed := kube.Kind{GroupVersionResource: k.GroupVersionResource, Strip: k.strip(fields...)}
		all = append(all, kube.NewCRDInformer(client, informed, changed, log, handlers...))
	}
	return all
}

// handler brings the objects of one kind to the cache.
type handler struct {
	*kube.ObjectCache[offer.Consumer]
	kind kind
	log  logr.Logger
}

// Set implements kube.Handler. An object that describes no consumer is as good as gone.
func (h handler) Set(u *unstructured.Unstructured) bool {
	if _, err := h.kind.parse(u); err != nil {
		if !errors.Is(err, errNoClusterID) {
			h.log.Error(err, "Ignoring an object that describes no consumer",
				"kind", h.kind.GroupVersionResource.String(), "object", kube.Key(u))
		}
		return h.Remove(u)
	}
	return h.ObjectCache.Set(u)
}
