package operator

import (
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/controllers/classlist"
	"proffer.dev/proffer/internal/controllers/placement"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/internal/kube"
)

// ofGuards returns the writers that are switched on. The first answers of slices wait for the list of
// placements, which wakes the engine.
func (h *house) ofGuards() (r room, err error) {
	if h.ServedClasses != "" || h.Placements != "" {
		namespace, err := kube.LeaseNamespace(h.LeaderElection)
		if err != nil {
			return r, err
		}
		pacer := h.restores.Pacer("AdmissionParams", h.log.WithName("lists")) // One logs at most one line a minute.
		if h.ServedClasses != "" {
			list := classlist.NewReconciler(h.liqo, types.NamespacedName{Namespace: namespace, Name: h.ServedClasses}, h.table,
				h.OtherClasses, pacer, h.log.WithName("classes"))
			r.leading, r.published = append(r.leading, list), append(r.published, onSnapshot(list.Wake))
		}
		if h.Placements != "" {
			list := placement.NewReconciler(h.liqo, types.NamespacedName{Namespace: namespace, Name: h.Placements}, h.table,
				h.wake, pacer, h.log.WithName("placements"))
			h.answers.Placements = list
			r.leading, r.collectors = append(r.leading, list), append(r.collectors, list.Left)
			r.published = append(r.published, onSnapshot(list.Wake))
		}
	}
	if h.OffloadedPodSecurity != "" {
		levels := podsecurity.NewController(h.liqo, h.OffloadedPodSecurity, h.restores, h.log.WithName("podsecurity"))
		r.leading = append(r.leading, levels)
	}
	return r, nil
}
