package operator

import (
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/controllers/classlist"
	"proffer.dev/proffer/controllers/placement"
	"proffer.dev/proffer/controllers/podsecurity"
	"proffer.dev/proffer/internal/kube"
)

// ofGuards returns the writers that are switched on. The first answers of slices wait for the list of
// placements, which wakes the engine.
func (h *house) ofGuards() (r room, err error) {
	if h.servedClasses != "" || h.placements != "" {
		namespace, err := kube.LeaseNamespace(h.election)
		if err != nil {
			return r, err
		}
		if h.servedClasses != "" {
			list := classlist.NewReconciler(h.liqo, types.NamespacedName{Namespace: namespace, Name: h.servedClasses}, h.table,
				h.otherClasses, h.restores, h.log.WithName("classes"))
			r.leading, r.published = append(r.leading, list), append(r.published, onSnapshot(list.Wake))
		}
		if h.placements != "" {
			list := placement.NewReconciler(h.liqo, types.NamespacedName{Namespace: namespace, Name: h.placements}, h.table,
				h.wake, h.restores, h.log.WithName("placements"))
			h.answers.AwaitPlacement(list)
			r.leading, r.collectors = append(r.leading, list), append(r.collectors, list)
			r.published = append(r.published, onSnapshot(list.Wake))
		}
	}
	if h.podSecurity != "" {
		levels := podsecurity.NewController(h.liqo, h.podSecurity, h.restores, h.log.WithName("podsecurity"))
		r.leading = append(r.leading, levels)
	}
	return r, nil
}
