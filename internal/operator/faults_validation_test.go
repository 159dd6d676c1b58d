package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestFault_NegativeAmountsAreAccepted(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"fixed": kubetest.Fixed("cpu", "-5"),
		"max":   func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "-5") },
		"override": func(s *v1alpha1.ResourcePolicySpec) {
			s.Overrides = []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
				Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "-5")},
			}}
		},
	} {
		object := kubetest.Policy("negative", change)
		if err := kubetest.API(t).Create(t.Context(), object, client.DryRunAll); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), v1alpha1.AmountNegative) {
			t.Errorf("%s: the API server returns %v", name, err)
		}
		// Before Kubernetes 1.34, the operator may be the only one that checks.
		object.ObjectMeta = metav1.ObjectMeta{Name: "negative", UID: "1"}
		if _, _, problems := policy.Parse(object); len(problems) == 0 {
			t.Errorf("%s: the operator accepts it", name)
		}
	}
}

func TestFault_PercentagesByFloatMathsLoseDevices(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "1", "nvidia.com/gpu", "100")))
	kubetest.Create(t, kubetest.Policy("p", func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Percentages = map[corev1.ResourceName]v1alpha1.Percent{"nvidia.com/gpu": 29}
	}))
	// As floats, 0.29 x 100 is 28.999999999999996.
	startOperator(t).awaitOfferOf("rome", "nvidia.com/gpu", 29)
}
