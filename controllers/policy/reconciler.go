package policy

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies,verbs=list;watch
// +kubebuilder:rbac:roleName=proffer-manager,groups=proffer.dev,resources=resourcepolicies/status,verbs=update
// +kubebuilder:rbac:roleName=proffer-manager,groups=events.k8s.io,resources=events,verbs=create;patch

// Watch keeps the cache up to date, and calls wake when that may change an offer. It calls
// checkStatus for each event of a policy: another client may have written its status. The result is
// done when every policy has been seen once.
func Watch(informers cache.Informers, policies *Cache, wake, checkStatus func()) (toolscache.DoneChecker, error) {
	return kube.Watch(informers, &v1alpha1.ResourcePolicy{},
		func(p *v1alpha1.ResourcePolicy) bool {
			checkStatus()
			return policies.Set(p)
		}, policies.Remove, wake)
}
