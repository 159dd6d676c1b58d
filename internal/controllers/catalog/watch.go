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

// watches follow what is written, and the ClusterRole.
type watches struct {
	all kube.CRDInformers
	// offers is the informer of Offers, whose CRD may not exist.
	offers *kube.CRDInformer
	role   *kube.ObjectCache[types.UID]
}

// roleUID returns the UID of the ClusterRole, empty while it does not exist.
func (w *watches) roleUID() types.UID {
	uid, _ := w.role.Get(ClusterRole)
	return uid
}

// newWatches returns informers that keep the cache up to date. They enqueue each object that another
// client changes, and call wake if another comparison is needed.
func newWatches(api dynamic.Interface, p *plan, wake func(), log logr.Logger) watches {
	w := watches{role: kube.NewObjectCache(uidOf)}
	w.offers = kube.NewCRDInformer(api, kube.Kind{GroupVersionResource: offerResource, Strip: pack}, wake, log,
		handler{p, offers})
	w.all = kube.CRDInformers{
		w.offers,
		kube.NewCRDInformer(api, kube.Kind{
			GroupVersionResource: bindingResource, Builtin: true, Name: RoleBinding, Strip: pack,
		}, wake, log, handler{p, bindings}),
		kube.NewCRDInformer(api, kube.Kind{
			GroupVersionResource: roleResource, Builtin: true, Name: ClusterRole, Strip: kube.KeepFields(),
		}, wake, log, w.role),
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
