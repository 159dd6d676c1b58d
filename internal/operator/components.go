package operator

import (
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/orchestration"
)

// ofComponents returns the writers of the components that write objects, which are off by default.
func (h *house) ofComponents() (r room, err error) {
	if h.PublishOffers != nil {
		offers := catalog.NewWriter(catalog.Config{
			Client: h.liqo, Table: h.table, Largest: h.ledger.Largest,
			Subjects: h.PublishOffers.Subjects, QPS: h.PublishOffers.QPS,
			Holding: h.tenure.Holds, Recorder: h.recorder, Restores: h.restores, Log: h.log.WithName("catalog"),
		})
		r.leading, r.collectors = append(r.leading, offers), append(r.collectors, offers)
		r.published = append(r.published, onSnapshot(offers.Wake))
	}
	if h.OrchestrateAs != "" {
		placing := orchestration.NewWriter(orchestration.Config{
			ClusterID: h.OrchestrateAs, Client: h.liqo, Pods: h.mgr.GetAPIReader(), Consumers: h.clusters.List,
			Known: h.informers, Holding: h.tenure.Holds, Recorder: h.recorder, Restores: h.restores,
			Log: h.log.WithName("orchestrations"),
		})
		r.leading, r.collectors = append(r.leading, placing), append(r.collectors, placing.Metrics()...)
	}
	return r, nil
}
