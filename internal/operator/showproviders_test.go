package operator

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/providertest"
)

// Oslo and paris publish Offers to this cluster, lima does not. All three give to the class, and oslo is a consumer
// of it too.
func TestAConsumerSeesWhoStandsBehindAClass(t *testing.T) {
	installSliceCRDs(t)
	for _, file := range append(providertest.CRDs, "offloading.liqo.io_virtualnodes.yaml") {
		kubetest.Keep(t, controlplane.LiqoCRD(t, file))
	}
	config, err := kubetest.Cluster(t).UserConfig("operator-with-catalog")
	test.Must(t, err)
	installRoles(t, "../../config/rbac/role.yaml", "../../config/components/catalog/role.yaml", "../../config/components/federation/role.yaml")
	newTenant(t, "liqo-tenant-rome", "rome")
	tenancies := map[string]*tenancy{}
	for _, id := range []string{"lima", "oslo", "paris"} {
		y := newTenancy(t, id)
		tenancies[id] = y
		y.requested("from-"+id, "cpu", "5", "memory", "8Gi", "pods", "20")
		virtualNode(t, id+"-1", id, "cpu", "5", "memory", "8Gi", "pods", "20")
		y.given(id+"-1", "from-"+id)
		if id != "lima" {
			peerProvider(t, id, providertest.New(t, nil, goldAt("0.02", "EUR")))
		}
	}
	kubetest.Create(t, kubetest.Policy("resold", ofPeers(), func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Catalog = "resold", &v1alpha1.Catalog{ShowProviders: true}
	}))
	subject, err := catalog.ParseSubject(catalog.DefaultSubject)
	test.Must(t, err)
	launchOperator(t, config, func(p *parts) {
		p.PublishOffers, p.Federation = true, true
		p.Tenants = Tenants{Subjects: []catalog.Subject{subject}, QPS: catalog.DefaultQPS}
	})
	for namespace, want := range map[string]string{
		"liqo-tenant-rome": "oslo gold A100 nodes 0.02 EUR, paris gold A100 nodes 0.02 EUR", tenancies["oslo"].namespace.Name: "paris gold A100 nodes 0.02 EUR",
	} {
		test.Eventually(t, func() string {
			var o v1alpha1.Offer
			if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "resold"}, &o); err != nil {
				return err.Error()
			}
			var all []string
			for _, p := range o.Status.Providers {
				all = append(all, strings.Join([]string{p.ClusterID, p.Class, string(p.Title), string(p.Prices["cpu"]), p.Currency}, " "))
			}
			if got := strings.Join(all, ", "); got != want {
				return namespace + ": " + got
			}
			return ""
		})
	}
}
