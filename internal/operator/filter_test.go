package operator

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
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
	test.Eventually(t, func() string {
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

func TestAFilterOfSlicesSeesTheRequest(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "16")
	policy := kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices = &v1alpha1.Slices{
			Defaults: v1alpha1.Quantities{}, Filter: "request.resources['cpu'].isLessThan(quantity('4')) && !('hold' in request.labels)",
			FilterMessage: "ask for less than 4 cpu",
		}
	}))
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	large, small := rome.ask("large", nodestest.List("cpu", "6")), rome.ask("small", nodestest.List("cpu", "2"))
	awaitMessage(t, large, "Denied Filtered", "denied: ask for less than 4 cpu")
	awaitAnswer(t, small, "Accepted Incomplete cpu=2")
	changeRequest(t, large, "cpu", "3")
	awaitAnswer(t, large, "Accepted Incomplete cpu=3")

	kubetest.Edit(t, small, func(o client.Object) {
		labels := o.GetLabels()
		labels["hold"] = ""
		o.SetLabels(labels)
	}, kubetest.WriteSpec)
	awaitMessage(t, small, "Accepted Filtered cpu=0", "granted 0 of 2 cpu; nothing more is granted: ask for less than 4 cpu")

	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.Filter, s.Slices.FilterMessage = "request.labels.project == 'x' || request.age < duration('1s')", ""
	})
	// What fails is shown to the admin of the provider alone. A moment before, the grant may be pinned.
	awaitMessage(t, large, "Accepted Filtered cpu=0", "granted 0 of 3 cpu; nothing more is granted: policy standard refuses this request")
	test.Eventually(t, func() string {
		for s := range o.table.Current().Slices.All {
			if want := " (slices.filter fails on it: no such key: project)"; s.Name == "large" && !strings.HasSuffix(s.Because(), want) {
				return fmt.Sprintf("%s, want %s", s.Because(), want)
			}
		}
		return ""
	})

	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.Filter = "request.cpu" })
	c := awaitReason(t, "standard", v1alpha1.ReasonInvalid)
	if want := "undefined field 'cpu': this filter reads request.resources, request.labels, request.age and consumer.labels"; !contains(c.Message, want) {
		t.Errorf("got the message %q, want %q", c.Message, want)
	}
}
