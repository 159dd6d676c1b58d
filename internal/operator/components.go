package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/controllers/catalog"
	"proffer.dev/proffer/controllers/orchestration"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
)

// switchedOn are parts of the operator that are off by default.
type switchedOn struct {
	// work runs while this replica leads, and published after each evaluation.
	work       []manager.Runnable
	published  []func(*table.Snapshot)
	collectors []prometheus.Collector
}

// components makes the writers of the components that write objects.
func (p *parts) components(
	mgr ctrl.Manager, liqo dynamic.Interface, clusters *consumers.Cache, known kube.CRDInformers,
	restores restore.Restores, holds func() bool,
) (on switchedOn) {
	log, recorder := mgr.GetLogger().WithName("controllers"), mgr.GetEventRecorder(eventSource)
	if p.publish != nil {
		offers := catalog.NewWriter(catalog.Config{
			Client: liqo, Table: p.table, Largest: p.ledger.Largest, Subjects: p.publish.Subjects, QPS: p.publish.QPS,
			Holding: holds, Recorder: recorder, Restores: restores, Log: log.WithName("catalog"),
		})
		on.work, on.collectors = append(on.work, offers), append(on.collectors, offers)
		on.published = append(on.published, onSnapshot(offers.Wake))
	}
	if p.orchestrateAs != "" {
		placing := orchestration.NewWriter(orchestration.Config{
			ClusterID: p.orchestrateAs, Client: liqo, Pods: mgr.GetAPIReader(), Consumers: clusters.List,
			Known: known, Holding: holds, Recorder: recorder, Restores: restores, Log: log.WithName("orchestrations"),
		})
		on.work, on.collectors = append(on.work, placing), append(on.collectors, placing)
	}
	return on
}
