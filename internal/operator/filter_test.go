package operator

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

func TestAFilterChoosesNodes(t *testing.T) {
	filtered := func(expression string) func(*v1alpha1.ResourcePolicySpec) {
		return func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Nodes.Filter = expression
			s.UpdateThresholdPercent = new(int32(0))
		}
	}
	big := kubetest.Create(t, nodestest.Node("big", nodestest.List("cpu", "16", "memory", "16Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Node("small", nodestest.List("cpu", "4", "memory", "16Gi", "pods", "10")))
	p := kubetest.Create(t, kubetest.Policy("p", filtered(
		"node.allocatable['cpu'].isGreaterThan(quantity('8')) && !('maintenance' in node.labels)")))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 16_000, "memory": 16 * gib, "pods": 10})

	kubetest.Edit(t, big, func(o client.Object) { o.SetLabels(map[string]string{"maintenance": ""}) }, kubetest.WriteSpec)
	o.awaitOfferOf("rome", "cpu", 0)
	c := awaitReason(t, "p", v1alpha1.ReasonNoNodes)
	if want := "The selector matches big (left out by the filter), small (left out by the filter). " +
		"Make one usable, or check spec.offer.nodes.filter and tolerations."; !contains(c.Message, want) {
		t.Errorf("got the message %q, want %q", c.Message, want)
	}

	editPolicy(t, p, filtered("node.labels.pool == 'gold'"))
	kubetest.Eventually(t, func() string {
		c := awaitReason(t, "p", v1alpha1.ReasonNoNodes)
		if want := "big (left out by the filter, which fails on it: no such key: pool)"; !contains(c.Message, want) {
			return c.Message
		}
		return ""
	})

	editPolicy(t, p, filtered("node.label.pool == 'gold'"))
	c = awaitReason(t, "p", v1alpha1.ReasonInvalid)
	if want := `The policy is ignored until this is corrected: spec.offer.nodes.filter: Invalid value: "node.label.pool == 'gold'": 1:5: undefined field 'label': this filter reads node.name, node.labels and node.allocatable`; c.Message != want {
		t.Errorf("got the message %q, want %q", c.Message, want)
	}
}

func TestAFilterChoosesConsumers(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	rome := kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", map[string]string{"tier": "gold"}))
	kubetest.Create(t, kubetest.ForeignCluster(t, "oslo", "oslo", map[string]string{"tier": "bronze"}))
	const precious = "consumer.labels[?'tier'].orValue('') in ['gold', 'silver']"
	kubetest.Create(t, kubetest.Policy("precious", kubetest.Fixed("cpu", "8"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Priority, s.Consumers = 1, &v1alpha1.Consumers{Filter: precious}
	}))
	kubetest.Create(t, kubetest.Policy("others", kubetest.Fixed("cpu", "1"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Overrides = []v1alpha1.Override{{
			Consumers: v1alpha1.Consumers{Filter: "consumer.labels.tier == 'bronze'"},
			Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "2")},
		}}
	}))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 8000)
	o.awaitOfferOf("oslo", "cpu", 2000)
	o.awaitOfferOf("nobody", "cpu", 1000)
	kubetest.Edit(t, rome, func(o client.Object) { o.SetLabels(map[string]string{"tier": "bronze"}) }, kubetest.WriteSpec)
	o.awaitOfferOf("rome", "cpu", 2000)
}
