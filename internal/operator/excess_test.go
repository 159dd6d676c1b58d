package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestPodsBeyondAGrantAreAConditionAnEventAndAMetric(t *testing.T) {
	installSliceCRDs(t)
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "16", "memory", "16Gi", "pods", "10")))
	kubetest.Create(t, kubetest.Policy("gold", inClass("gold")))
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "4", "memory", "1Gi", "pods", "5"))
	list, listing := newPlacements(t)
	o := startOperator(t, listing)
	awaitAnswer(t, slice, "Accepted Granted cpu=4,memory=1Gi,pods=5")
	awaitReason(t, "gold", v1alpha1.ReasonOffering)
	if c := meta.FindStatusCondition(statusOfPolicy(t, "gold").Conditions, v1alpha1.ConditionWithinGrants); c != nil {
		t.Errorf("the condition is there without a reason: %s", c.Message)
	}
	within := func(reason, words string) {
		t.Helper()
		test.Eventually(t, func() string {
			c := meta.FindStatusCondition(statusOfPolicy(t, "gold").Conditions, v1alpha1.ConditionWithinGrants)
			if c == nil || c.Reason != reason || !strings.Contains(c.Message, words) {
				return cmp.Diff(reason+": "+words, c)
			}
			return ""
		})
	}
	pod := kubetest.Create(t, nodestest.Pod("big", "n", nodestest.List("cpu", "6", "memory", "1Gi"),
		nodestest.PodLabel(originLabel, "rome"), nodestest.PodLabel("liqo.io/creator-user", creatorOf("s", "rome"))))
	within(v1alpha1.ReasonExceeded, "s of rome (cpu 2 more)")
	expectEvent(t, "gold", v1alpha1.ReasonExceeded, "s of rome (cpu 2 more)")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&collector{table: o.table})
	test.Check(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP proffer_grant_excess Amount that the pods of a consumer request beyond what their ResourceSlices are granted, in the units of proffer_offer. Covers the first 1000 ResourceSlices whose pods do.
# TYPE proffer_grant_excess gauge
proffer_grant_excess{class="gold",consumer="rome",policy="gold",resource="cpu"} 2
`), "proffer_grant_excess"))
	// The admission policy refuses more of them, also while nobody leads and after the next leader has come.
	beyond := map[string]string{"!" + creatorOf("s", "rome"): ""}
	awaitPlacements(t, list, beyond)
	o.stop()
	startOperator(t, listing)
	awaitPlacements(t, list, beyond)
	kubetest.Remove(t, pod)
	within(v1alpha1.ReasonWithin, "no more than it was granted")
	awaitPlacements(t, list, nil)
	// A LimitRange adds requests to a Pod that Liqo's Quota has counted without any.
	kubetest.Create(t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "six", Namespace: metav1.NamespaceDefault},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: nodestest.List("cpu", "6")},
		}},
	})
	added := nodestest.Pod("added", "n", nil,
		nodestest.PodLabel(originLabel, "rome"), nodestest.PodLabel("liqo.io/creator-user", creatorOf("s", "rome")))
	test.Eventually(t, func() string { // The API server learns of a LimitRange by a watch.
		tried := added.DeepCopy()
		test.Must(t, kubetest.API(t).Create(t.Context(), tried, client.DryRunAll))
		return cmp.Diff(int64(6), tried.Spec.Containers[0].Resources.Requests.Cpu().Value())
	})
	kubetest.Create(t, added)
	within(v1alpha1.ReasonExceeded, "s of rome (cpu 2 more)")
	awaitPlacements(t, list, beyond)
}

// The pods of a slice that has moved request what another controller granted, beside the rest of the earlier grant.
func TestASliceThatAnotherControllerHasAcceptedIsNotMarked(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	kubetest.Create(t, classGold())
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "4", "memory", "1Gi", "pods", "5"))
	list, listing := newPlacements(t)
	o := startOperator(t, listing)
	awaitAnswer(t, slice, "Accepted Granted cpu=4,memory=1Gi,pods=5")
	pod := func(name, cpu string) {
		kubetest.Create(t, nodestest.Pod(name, "gold-1", nodestest.List("cpu", cpu),
			nodestest.PodLabel(originLabel, "rome"), nodestest.PodLabel("liqo.io/creator-user", creatorOf("s", "rome"))))
	}
	pod("before", "2")
	move := func(class string) {
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class, "spec", "class") }, kubetest.WriteSpec)
	}
	move("platinum")
	kubetest.Edit(t, slice, func(o client.Object) { overwrite(o, "Accepted", "OfPlatinum", map[string]any{"cpu": "9"}) },
		kubetest.WriteStatus)
	pod("since", "4")
	// Once the operator has seen both pods, the node has 2 cpu for others.
	test.Eventually(o.t, func() string { return cmp.Diff(int64(2000), o.offered("oslo")["gold"]["cpu"]) })
	pod("more", "500m")
	o.awaitCaughtUp()
	if all := o.table.Current().Excesses(); len(all) > 0 {
		t.Errorf("excesses %+v", all)
	}
	awaitPlacements(t, list, nil)

	// A deleted one is not, and one of Proffer is again.
	kubetest.Remove(t, slice)
	o.awaitCaughtUp()
	if all := o.table.Current().Excesses(); len(all) > 0 {
		t.Errorf("excesses %+v of a slice that is gone", all)
	}
	awaitAnswer(t, rome.ask("s", nodestest.List("cpu", "1", "memory", "1Gi", "pods", "5")), "Accepted Granted cpu=1,memory=1Gi,pods=5")
	awaitPlacements(t, list, map[string]string{"!" + creatorOf("s", "rome"): ""})
}
