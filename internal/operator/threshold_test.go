package operator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func withThreshold(s *v1alpha1.ResourcePolicySpec) { s.UpdateThresholdPercent = new(int32(5)) }

// Local pods come and go, each 1 % of a pool whose requests exceed it. Nothing is written until the
// dip exceeds the threshold.
func TestADipBelowTheThresholdChangesNoAnswerAndNoOffer(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "100", "memory", "100Gi", "pods", "500")
	kubetest.Create(t, classGold(withThreshold))
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	first := rome.ask("first", nodestest.List("cpu", "70"))
	awaitAnswer(t, first, "Accepted Incomplete cpu=70")
	last := rome.ask("last", nodestest.List("cpu", "50"))
	awaitAnswer(t, last, "Accepted Capped cpu=30")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(100_000), o.offered("rome")["gold"]["cpu"]) })
	version := func(s *unstructured.Unstructured) string {
		u := s.DeepCopy()
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(s), u))
		return u.GetResourceVersion()
	}
	before := []string{version(first), version(last)}

	for round := range 5 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			for i := range 4 { // The pods are deleted at the end of the round.
				kubetest.Create(t,
					nodestest.Pod(fmt.Sprintf("local-%d-%d", round, i), "gold-1", nodestest.List("cpu", "1")))
			}
			o.awaitCaughtUp()
			if got := o.offered("rome")["gold"]["cpu"]; got != 100_000 {
				t.Errorf("rome is offered %d in a small dip, want 100000", got)
			}
		})
	}
	o.awaitCaughtUp()
	if after := []string{version(first), version(last)}; !cmp.Equal(before, after) {
		t.Errorf("slices were written: versions %v, before %v", after, before)
	}

	kubetest.Create(t, nodestest.Pod("large", "gold-1", nodestest.List("cpu", "20")))
	awaitAnswer(t, last, "Accepted Capped cpu=10")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(80_000), o.offered("rome")["gold"]["cpu"]) })
}
