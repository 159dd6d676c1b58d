package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func equalLists(a, b corev1.ResourceList) bool { return equality.Semantic.DeepEqual(a, b) }

// For each consumer, the status of the dry run is compared with the status after the policy is put
// in force.
func TestADryRunPredictsWhatThePolicyThenDoes(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"a max that takes back unused amounts": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Max = kubetest.Quantities("cpu", "4")
		},
		"a max below the use of pods": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Max = kubetest.Quantities("cpu", "1")
		},
		"a max that evicts": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Max, s.Reclaim = kubetest.Quantities("cpu", "0"), v1alpha1.ReclaimEvict
		},
		"a reserve that leaves less than the grants": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Reserve = kubetest.Quantities("cpu", "15")
		},
	} {
		t.Run(name, func(t *testing.T) {
			installSliceCRDs(t)
			goldNode(t, "gold-1", "cpu", "20", "memory", "100Gi", "pods", "500")
			kubetest.Create(t, classGold())
			o := startOperator(t)
			rome, oslo := newTenancy(t, "rome"), newTenancy(t, "oslo")
			awaitAnswer(t, rome.ask("a", nodestest.List("cpu", "12")), "Accepted Incomplete cpu=12")
			kubetest.Create(t,
				nodestest.Pod("of-rome", "gold-1", nodestest.List("cpu", "2"), nodestest.PodLabel(originLabel, "rome")))
			waiting := oslo.ask("b", nodestest.List("cpu", "10"))
			awaitAnswer(t, waiting, "Accepted Capped cpu=8")
			o.awaitCaughtUp()

			next := classGold(edit)
			next.Name, next.Spec.Priority, next.Spec.Mode = "gold-next", 9, v1alpha1.ModeDryRun
			kubetest.Create(t, next)
			awaitReason(t, "gold-next", v1alpha1.ReasonDryRun)
			rehearsed := statusOfPolicy(t, "gold-next")
			if len(rehearsed.Offers) != 2 || *rehearsed.Consumers != 2 || rehearsed.Slices == nil {
				t.Fatalf("the status of the dry run: %+v", rehearsed)
			}
			test.Eventually(t, func() (diff string) { // A status is written at most once in 10 s.
				for _, now := range statusOfPolicy(t, "standard").Offers {
					want := &v1alpha1.PresentOffer{Policy: "standard", Offer: now.Offer, Granted: now.Granted}
					diff += cmp.Diff(want, offerFor(rehearsed, now.ClusterID).Now, cmp.Comparer(equalLists))
				}
				return diff
			})
			for _, o := range rehearsed.Offers {
				if !strings.Contains(o.Message, "would be") {
					t.Errorf("%s: %q", o.ClusterID, o.Message)
				}
			}

			editPolicy(t, next, func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeActive })
			test.Eventually(t, func() string {
				s := statusOfPolicy(t, "gold-next")
				if s.ObservedGeneration != 2 {
					return "the edit has not been seen"
				}
				var diff string
				for _, would := range rehearsed.Offers {
					is := offerFor(s, would.ClusterID)
					would.Message, would.Now, is.Message = "", nil, ""
					diff += cmp.Diff(would, is, cmp.Comparer(equalLists))
				}
				return diff
			})
		})
	}
}

// offerFor returns the offer to one consumer in a status.
func offerFor(s v1alpha1.ResourcePolicyStatus, id string) v1alpha1.ConsumerOffer {
	for _, o := range s.Offers {
		if o.ClusterID == id {
			return o
		}
	}
	return v1alpha1.ConsumerOffer{}
}

func TestADryRunReportsThatItCouldOfferNothing(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10"), nodestest.NodeLabel("dedicated", "liqo"),
		func(n *corev1.Node) {
			n.Spec.Unschedulable = true
		}))
	kubetest.Create(t, kubetest.Policy("p",
		kubetest.Selecting(kubetest.Matching(map[string]string{"dedicated": "liqo"})),
		func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	startOperator(t)
	c := awaitReason(t, "p", v1alpha1.ReasonDryRun)
	if want := "It would be NoNodes. No node is left to offer. The selector matches n (cordoned)."; !strings.Contains(c.Message, want) {
		t.Errorf("%q does not say %q", c.Message, want)
	}
}

func TestADryRunNamesOnlyConsumersWhoseOtherOffersWouldChange(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10")))
	kubetest.Create(t,
		nodestest.Pod("of-rome", "n", nodestest.List("cpu", "2"), nodestest.PodLabel(originLabel, "rome")))
	kubetest.Create(t, kubetest.Policy("all", kubetest.Selecting(kubetest.Matching(nil)),
		kubetest.ForIDs("oslo", "rome"),
		func(s *v1alpha1.ResourcePolicySpec) { s.UpdateThresholdPercent = new(int32(0)) }))
	kubetest.Create(t, kubetest.Policy("one", kubetest.Fixed("cpu", "1", "memory", "1Gi", "pods", "1"), kubetest.ForIDs("rome"),
		func(s *v1alpha1.ResourcePolicySpec) {
			s.Mode, s.Priority = v1alpha1.ModeDryRun, 9
		}))
	startOperator(t)
	awaitReason(t, "one", v1alpha1.ReasonDryRun)
	if c := awaitReason(t, "one", v1alpha1.ReasonDryRun); strings.Contains(c.Message, "other offers") {
		t.Errorf("%q names consumers whose other offers stay", c.Message)
	}
}
