package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// An admin's upgrade: a policy is stored and in force under older rules, the operator is replaced,
// and the policy is corrected.
func TestAnUpgradeLeavesAPolicyWithAMisspeltNameInForce(t *testing.T) {
	withoutPolicyRules(t, func() {
		p := kubetest.Create(t, kubetest.Policy("p",
			func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Reserve = kubetest.Quantities("cpus", "4") }))
		kubetest.Edit(t, p, func(o client.Object) {
			o.(*v1alpha1.ResourcePolicy).Status = v1alpha1.ResourcePolicyStatus{Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering,
				ObservedGeneration: p.Generation, LastTransitionTime: metav1.Now(),
			}}}
		}, kubetest.WriteStatus)
		kubetest.Create(t, kubetest.Policy("new", kubetest.ForIDs("oslo"), func(s *v1alpha1.ResourcePolicySpec) {
			s.Priority, s.Offer.Reserve = 1, kubetest.Quantities("cpus", "4")
		}))
	})
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	for range 2 { // The second time is another restart.
		o := startOperator(t)
		o.awaitOffers("rome", capacity.Amounts{"cpu": 8000, "memory": 8 * gib, "pods": 10})
		// The new policy is ignored.
		o.awaitOffers("oslo", capacity.Amounts{"cpu": 8000, "memory": 8 * gib, "pods": 10})
		if c := awaitReason(t, "p", v1alpha1.ReasonUnknownResources); !strings.Contains(c.Message, "stays in force") ||
			!strings.Contains(c.Message, v1alpha1.NameProblem("cpus")) {
			t.Errorf("got the message %q", c.Message)
		}
		if c := awaitReason(t, "new",
			v1alpha1.ReasonInvalid); !strings.Contains(c.Message, v1alpha1.NameProblem("cpus")) {
			t.Errorf("got the message %q", c.Message)
		}
		o.stop()
	}
	o := startOperator(t)
	var p v1alpha1.ResourcePolicy
	p.Name = "p"
	editPolicy(t, &p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Reserve = kubetest.Quantities("cpu", "4") })
	o.awaitOffers("rome", capacity.Amounts{"cpu": 4000, "memory": 8 * gib, "pods": 10})
	awaitReason(t, "p", v1alpha1.ReasonOffering)
}

// withoutPolicyRules calls f while the API server does not apply config/admission, as before the
// upgrade.
func withoutPolicyRules(t *testing.T, f func()) {
	t.Helper()
	objects, err := controlplane.ReadObjects("../../config/admission/resourcepolicy.yaml")
	test.Must(t, err)
	for _, object := range objects {
		test.Must(t, kubetest.API(t).Delete(t.Context(), object))
	}
	defer func() {
		test.Must(t, kubetest.Cluster(t).InstallPolicyRules(context.WithoutCancel(t.Context())))
	}()
	test.Eventually(t, func() error { // The API server goes on to apply them for a moment.
		return kubetest.API(t).Create(t.Context(), kubetest.Policy("refused", kubetest.Fixed("memory", "100m")), client.DryRunAll)
	})
	f()
}

// An edit of the policy is all that it takes.
func TestAMisspeltNameIsForgotten(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "2", "example.com/gpuu", "1"), kubetest.ForIDs("rome")))
	metrics := prometheus.NewPedanticRegistry()
	withMetrics := func(p *parts) { p.metrics = metrics }
	o := startOperator(t, withMetrics)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 2000, "example.com/gpuu": 1})
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Fixed = kubetest.Quantities("cpu", "2", "example.com/gpu", "1")
	})
	offered := capacity.Amounts{"cpu": 2000, "example.com/gpu": 1, "example.com/gpuu": 0}
	o.awaitOffers("rome", offered)
	all := []string{"cpu", "example.com/gpu", "example.com/gpuu"}
	awaitRecord(t, map[string][]string{"": all})
	test.Eventually(t, func() string {
		return cmp.Diff([]v1alpha1.ResourceName{"cpu", "example.com/gpu", "example.com/gpuu"},
			statusOfPolicy(t, "p").OfferedResources)
	})
	for range 2 { // The second time is after a restart.
		o.awaitOffers("rome", offered)
		families, err := metrics.Gather()
		test.Must(t, err)
		shown := fmt.Sprint(families, offer.Shown(o.table.Current().Explainer().Of("rome"))[0].Amounts)
		if strings.Contains(shown, "gpuu") || !strings.Contains(shown, "example.com/gpu") {
			t.Errorf("metrics and tables show:\n%s", shown)
		}
		o.stop()
		metrics = prometheus.NewPedanticRegistry()
		o = startOperator(t, withMetrics)
	}
}
