package slice

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups=proffer.dev,resources=grants,verbs=get;list;watch;create;update;delete

// WatchGrants keeps the records of grants up to date, and calls wake when one has changed what
// counts as granted. The result is done when every Grant has been seen once.
func (d *Decider) WatchGrants(informers cache.Informers, wake func()) (toolscache.DoneChecker, error) {
	return kube.Watch(informers, &v1alpha1.Grant{},
		func(g *v1alpha1.Grant) bool { return d.cache.setRecord(parseGrant(g)) },
		func(g *v1alpha1.Grant) bool { return d.cache.removeRecord(parseGrant(g)) }, wake)
}
