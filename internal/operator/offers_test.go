package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

const gib = 1 << 30

func TestAnEditOfAPolicyReachesTheTable(t *testing.T) {
	o := startOperator(t)
	o.awaitNoOffers("rome")
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "2", "memory", "2G", "pods", "10")))
	o.awaitOffers("rome", capacity.Amounts{"cpu": 2000, "memory": 2e9, "pods": 10})

	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "3500m", "pods", "1e3")
	})
	// Memory was offered before, so it is withdrawn with an explicit 0.
	o.awaitOffers("rome", capacity.Amounts{"cpu": 3500, "memory": 0, "pods": 1000})

	kubetest.Remove(t, p)
	o.awaitNoOffers("rome")
}

func TestTheWorkedExampleHoldsEndToEnd(t *testing.T) {
	for _, name := range []string{"n1", "n2"} {
		kubetest.Create(t, nodestest.Node(name, nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	}
	kubetest.Create(t, nodestest.Pod("local", "n1", nodestest.List("cpu", "2")))
	kubetest.Create(t,
		nodestest.Pod("of-rome", "n1", nodestest.List("cpu", "3"), nodestest.PodLabel(originLabel, "rome")))
	kubetest.Create(t,
		nodestest.Pod("of-oslo", "n2", nodestest.List("cpu", "1"), nodestest.PodLabel(originLabelV0, "oslo")))
	kubetest.Create(t,
		kubetest.Policy("half", func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Percent = new(v1alpha1.Percent(50)) }))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 6000)
	o.awaitOfferOf("oslo", "cpu", 4000)
}

func TestOverlappingPoliciesAndOverridesComeFromObjects(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "10", "memory", "10Gi", "pods", "10")))
	kubetest.Create(t, kubetest.Policy("p", func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Reserve = kubetest.Quantities("cpu", "4")
		s.Offer.Max = kubetest.Quantities("memory", "2Gi")
		s.Overrides = []v1alpha1.Override{{
			Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
			Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "8")},
		}}
	}))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 8000, "memory": 2 * gib, "pods": 10})
	o.awaitOffers("oslo", capacity.Amounts{"cpu": 6000, "memory": 2 * gib, "pods": 10})
}

func TestOfTwoPoliciesOfEqualPriorityTheOldestThenTheFirstByNameDecides(t *testing.T) {
	o := startOperator(t)
	// Creation times have whole seconds: these two policies are most likely equally old; if not,
	// the first one is older.
	kubetest.Create(t, kubetest.Policy("b-older", kubetest.Fixed("cpu", "1")))
	test.Eventually(t, func() string { // Wait for the next second of the API server's clock.
		probe := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: metav1.NamespaceDefault},
		}
		var older v1alpha1.ResourcePolicy
		if err := kubetest.API(t).Create(t.Context(), probe); err != nil {
			return err.Error()
		}
		defer kubetest.Remove(t, probe)
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: "b-older"}, &older); err != nil {
			return err.Error()
		}
		if !older.CreationTimestamp.Before(&probe.CreationTimestamp) {
			return "still the same second"
		}
		return ""
	})
	first, second := kubetest.Policy("c-newer",
		kubetest.Fixed("cpu", "3")), kubetest.Policy("a-newer", kubetest.Fixed("cpu", "2"))
	kubetest.Create(t, first)
	kubetest.Create(t, second)
	o.awaitCaughtUp()
	o.awaitOfferOf("rome", "cpu", 1000)

	kubetest.Remove(t, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "b-older"}})
	if first.CreationTimestamp.Equal(&second.CreationTimestamp) {
		o.awaitOfferOf("rome", "cpu", 2000)
	} else {
		o.awaitOfferOf("rome", "cpu", 3000)
	}
}

func TestTheHighestPriorityDecidesWhateverItsAge(t *testing.T) {
	o := startOperator(t)
	kubetest.Create(t, kubetest.Policy("old", kubetest.Fixed("cpu", "1")))
	kubetest.Create(t,
		kubetest.Policy("new", kubetest.Fixed("cpu", "2"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	o.awaitOfferOf("rome", "cpu", 2000)
}

func TestADryRunIsNeverPublished(t *testing.T) {
	o := startOperator(t)
	kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "9", "memory", "1Gi", "pods", "1"), kubetest.ForIDs("rome"),
		func(s *v1alpha1.ResourcePolicySpec) {
			s.Mode, s.Priority = v1alpha1.ModeDryRun, 9
		}))
	awaitReason(t, "p", v1alpha1.ReasonDryRun)
	if diff := cmp.Diff(map[string]capacity.Amounts{}, o.offered("rome")); diff != "" {
		t.Error(diff)
	}
	status := statusOfPolicy(t, "p")
	if len(status.Offers) != 1 || status.Offers[0].ClusterID != "rome" || status.Offers[0].Offer.Cpu().Value() != 9 {
		t.Errorf("the status does not show what would be offered: %+v", status.Offers)
	}
	if len(status.OfferedResources) != 0 {
		t.Errorf("a dry run offered %v", status.OfferedResources)
	}
}

func TestAPolicyWithAnInvalidSelectorDoesNotAffectOthers(t *testing.T) {
	o := startOperator(t)
	bad := kubetest.Create(t, kubetest.Policy("bad", func(s *v1alpha1.ResourcePolicySpec) {
		s.Priority = 9
		s.Offer.Nodes.Selector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}},
		}
	}))
	kubetest.Create(t, kubetest.Policy("good", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	c := awaitReason(t, "bad", v1alpha1.ReasonInvalid)
	if c.Status != metav1.ConditionFalse || !contains(c.Message, "spec.offer.nodes.selector") ||
		!contains(c.Message, `"Near" is not a valid label selector operator`) {
		t.Errorf("got the condition %+v", c)
	}
	o.awaitOfferOf("rome", "cpu", 1000)
	expectEvent(t, "bad", v1alpha1.ReasonInvalid, "spec.offer.nodes.selector")

	kubetest.Create(t,
		nodestest.Node("n", nodestest.List("cpu", "4", "memory", "4Gi", "pods", "4"), nodestest.NodeLabel("zone", "a")))
	editPolicy(t, bad, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Nodes.Selector.MatchExpressions[0].Operator = metav1.LabelSelectorOpIn
	})
	o.awaitOfferOf("rome", "cpu", 4000)
	awaitReason(t, "bad", v1alpha1.ReasonOffering)
}

func TestAReadCreatesNoConsumer(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1")))
	kubetest.Create(t, kubetest.Policy("one", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1"),
		kubetest.ForIDs("rome"), func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }))
	registry := prometheus.NewRegistry()
	o := startOperator(t, func(p *parts) { p.metrics = registry })
	o.awaitOfferOf("rome", "cpu", 1000)
	caller := o.table.NewCaller()
	for i := range 2200 {
		if _, err := caller.Lookup(t.Context(), fmt.Sprintf("made-up-%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	// After two evaluations and a status write, the reads still have no effect.
	for _, cpu := range []string{"2", "3"} {
		editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Fixed = kubetest.Quantities("cpu", cpu, "memory", "1Gi", "pods", "1")
		})
		test.Eventually(o.t, func() string {
			want := resource.MustParse(cpu)
			return cmp.Diff(want.MilliValue(), o.offered("made-up-0000")[""]["cpu"])
		})
		test.Eventually(o.t, func() string {
			return cmp.Diff(p.Generation, statusOfPolicy(t, "p").ObservedGeneration)
		})
	}
	if diff := cmp.Diff([]string{"rome"}, consumerIDs(o.table.Current())); diff != "" {
		t.Errorf("consumers (-want +got):\n%s", diff)
	}
	families, err := registry.Gather()
	test.Must(t, err)
	if strings.Contains(fmt.Sprint(families), "made-up") {
		t.Error("a metric names a made-up ID")
	}
	if status := fmt.Sprint(statusOfPolicy(t, "p"), statusOfPolicy(t, "one")); strings.Contains(status, "made-up") {
		t.Errorf("a status names a made-up ID: %s", status)
	}
}

func TestHeartbeatsCauseNoEvaluation(t *testing.T) {
	n := kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "4", "memory", "4Gi", "pods", "4")))
	p := kubetest.Create(t, nodestest.Pod("p", "n", nodestest.List("cpu", "1")))
	o := startOperator(t)
	o.awaitCaughtUp()
	before := o.table.Revision()
	for range 20 {
		editNodeStatus(t, n, func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })
		editPodStatus(t, p, func(p *corev1.Pod) { p.Status.Message += "." })
	}
	// The same watches deliver these in order, so by then the heartbeats have arrived too.
	editNodeStatus(t, n,
		func(n *corev1.Node) { n.Status.Allocatable = nodestest.List("cpu", "5", "memory", "4Gi", "pods", "4") })
	kubetest.Remove(t, p)
	kubetest.Create(t, kubetest.Policy("all"))
	o.awaitOfferOf("rome", "cpu", 5000+750)
	if after := o.table.Revision(); after > before+5 {
		t.Errorf("three changes cause %d evaluations, want at most 5", after-before)
	}
}

func TestAConsumerThatNoPolicyNamesAnyMoreIsOfferedZeros(t *testing.T) {
	p := kubetest.Create(t,
		kubetest.Policy("p", kubetest.Fixed("cpu", "4", "memory", "4Gi", "pods", "5"), kubetest.ForIDs("oslo", "rome")))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 4000)
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Consumers.ClusterIDs = []v1alpha1.ClusterID{"oslo"} })
	zeros := capacity.Amounts{"cpu": 0, "memory": 0, "pods": 0}
	o.awaitOffers("rome", zeros)
	kubetest.Remove(t, p)
	o.awaitOffers("oslo", zeros)
	o.awaitOffers("rome", zeros)
}
