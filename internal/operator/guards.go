package operator

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/controllers/classlist"
	"proffer.dev/proffer/controllers/placement"
	"proffer.dev/proffer/controllers/podsecurity"
	"proffer.dev/proffer/controllers/slice"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

// guards is what the operator keeps for admission policies, while it leads.
type guards struct {
	work []manager.Runnable
	// wake is called after each evaluation.
	wake       []func(*table.Snapshot)
	collectors []prometheus.Collector
}

// guards returns the writers that are switched on. The first answers of slices wait for the list of
// placements, which wakes the engine.
func (p *parts) guards(client dynamic.Interface, answers *slice.Writer, wake func(), log logr.Logger) (guards, error) {
	var g guards
	if p.servedClasses != "" || p.placements != "" {
		namespace, err := kube.LeaseNamespace(p.election)
		if err != nil {
			return g, err
		}
		if p.servedClasses != "" {
			list := classlist.NewWriter(client, types.NamespacedName{Namespace: namespace, Name: p.servedClasses}, p.table,
				log.WithName("classes"))
			g.work, g.wake = append(g.work, list), append(g.wake, onSnapshot(list.Wake))
		}
		if p.placements != "" {
			list := placement.NewWriter(client, types.NamespacedName{Namespace: namespace, Name: p.placements}, p.table, wake,
				log.WithName("placements"))
			answers.AwaitPlacement(list.Requires)
			g.work, g.wake, g.collectors = append(g.work, list), append(g.wake, onSnapshot(list.Wake)), append(g.collectors, list)
		}
	}
	if p.podSecurity != "" {
		g.work = append(g.work, podsecurity.NewWriter(client, p.podSecurity, log.WithName("podsecurity")))
	}
	return g, nil
}
