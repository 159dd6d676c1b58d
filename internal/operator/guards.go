package operator

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/controllers/classlist"
	"proffer.dev/proffer/controllers/placement"
	"proffer.dev/proffer/controllers/podsecurity"
	"proffer.dev/proffer/controllers/slice"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
)

// guards returns the writers that are switched on. The first answers of slices wait for the list of
// placements, which wakes the engine.
func (p *parts) guards(
	client dynamic.Interface, answers *slice.Writer, wake func(), restores restore.Restores, log logr.Logger,
) (on switchedOn, err error) {
	if p.servedClasses != "" || p.placements != "" {
		namespace, err := kube.LeaseNamespace(p.election)
		if err != nil {
			return on, err
		}
		if p.servedClasses != "" {
			list := classlist.NewReconciler(client, types.NamespacedName{Namespace: namespace, Name: p.servedClasses}, p.table,
				p.otherClasses, restores, log.WithName("classes"))
			on.work, on.published = append(on.work, list), append(on.published, onSnapshot(list.Wake))
		}
		if p.placements != "" {
			list := placement.NewReconciler(client, types.NamespacedName{Namespace: namespace, Name: p.placements}, p.table,
				wake, restores, log.WithName("placements"))
			answers.AwaitPlacement(list)
			on.work, on.collectors = append(on.work, list), append(on.collectors, list)
			on.published = append(on.published, onSnapshot(list.Wake))
		}
	}
	if p.podSecurity != "" {
		levels := podsecurity.NewController(client, p.podSecurity, restores, log.WithName("podsecurity"))
		on.work = append(on.work, levels)
	}
	return on, nil
}
