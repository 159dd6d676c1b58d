package operator

import (
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/orchestration"
	"proffer.dev/proffer/internal/source/federation"
)

// ofComponents returns the writers of the components that write objects, which are off by default.
func (h *house) ofComponents() (r room, err error) {
	var bindings []catalog.Binding
	if h.PublishOffers {
		bindings = append(bindings, catalog.OfferBinding)
	}
	if h.OrchestrateAs != "" {
		bindings = append(bindings, catalog.ChoiceBinding)
	}
	if len(bindings) > 0 {
		config := catalog.Config{
			Client: h.liqo, Table: h.table, Shapes: h.ledger.Shapes,
			Publish: h.PublishOffers, Bindings: bindings, Subjects: h.Tenants.Subjects, QPS: h.Tenants.QPS,
			Holding: h.tenure.Holds, Recorder: h.recorder, Restores: h.restores, Log: h.log.WithName("catalog"),
		}
		if h.providers != nil {
			config.Providers = h.providers
		}
		offers := catalog.NewWriter(config)
		r.leading, r.collectors = append(r.leading, offers), append(r.collectors, offers)
		r.published = append(r.published, onSnapshot(offers.Wake))
	}
	if h.OrchestrateAs != "" {
		config := orchestration.Config{
			ClusterID: h.OrchestrateAs, Client: h.liqo, Pods: h.mgr.GetAPIReader(), Consumers: h.clusters.List,
			Known: h.informers, Holding: h.tenure.Holds, Recorder: h.recorder, Restores: h.restores,
			Log: h.log.WithName("orchestrations"),
		}
		if h.providers != nil {
			config.Federation = h.providers
		}
		placing := orchestration.NewWriter(config)
		if h.providers != nil {
			h.providers.OnChange(placing.Wake)
		}
		r.leading, r.collectors = append(r.leading, placing), append(r.collectors, placing.Metrics()...)
	}
	return r, nil
}

// newFederation adds to the manager what reads the providers of this cluster.
func newFederation(mgr ctrl.Manager) (*federation.Source, error) {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	secrets, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	providers := federation.New(objects, secrets, mgr.GetLogger().WithName("federation"))
	return providers, mgr.Add(providers)
}
