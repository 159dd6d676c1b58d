package operator

import (
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/classlist"
	"proffer.dev/proffer/internal/controllers/placement"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/kept"
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
		params := func(name, log string) *kept.Object {
			return &kept.Object{
				Client: h.liqo, Resource: v1alpha1.GroupVersion.WithResource("admissionparams"), Kind: "AdmissionParams",
				Name: types.NamespacedName{Namespace: namespace, Name: name}, Pacer: pacer, Log: h.log.WithName(log),
			}
		}
		if h.ServedClasses != "" {
			list := classlist.NewReconciler(params(h.ServedClasses, "classes"), h.table, h.OtherClasses)
			r.leading, r.published = append(r.leading, list), append(r.published, onSnapshot(list.Wake))
		}
		if h.Placements != "" {
			list := placement.NewReconciler(params(h.Placements, "placements"), h.table, h.wake)
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
