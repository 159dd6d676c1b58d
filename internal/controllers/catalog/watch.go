package catalog

import (
	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

var (
	offerResource   = v1alpha1.GroupVersion.WithResource("offers")
	bindingResource = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	roleResource    = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
)

// watches follow what is written, and the ClusterRoles.
type watches struct {
	all kube.CRDInformers
	// offers is the informer of Offers, whose CRD may not exist, nil if none are published.
	offers *kube.CRDInformer
	// roles has the UIDs of the ClusterRoles by name.
	roles *kube.ObjectCache[types.UID]
}

// newWatches returns informers that keep the cache up to date. They enqueue each object that another
// client changes, and call wake if another comparison is needed.
func newWatches(api dynamic.Interface, p *plan, publish bool, wake func(), log logr.Logger) watches {
	w := watches{roles: kube.NewObjectCache(uidOf)}
	if publish {
		w.offers = kube.NewCRDInformer(api, kube.Kind{GroupVersionResource: offerResource, Strip: pack}, wake, log,
			handler{p, offers})
		w.all = kube.CRDInformers{w.offers}
	}
	for _, b := range p.bindings {
		w.all = append(w.all,
			kube.NewCRDInformer(api, kube.Kind{
				GroupVersionResource: bindingResource, Builtin: true, Name: b.Name, Strip: pack,
			}, wake, log, handler{p, bindings}),
			kube.NewCRDInformer(api, kube.Kind{
				GroupVersionResource: roleResource, Builtin: true, Name: b.ClusterRole, Strip: kube.KeepFields(),
			}, wake, log, w.roles))
	}
	return w
}

// uidOf reads the UID of an object that stays.
func uidOf(u *unstructured.Unstructured) types.UID {
	if u.GetDeletionTimestamp() != nil {
		return ""
	}
	return u.GetUID()
}
