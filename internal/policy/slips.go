package policy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

// smallest is an amount of memory that no pod runs with: whoever writes less has forgotten the unit.
const smallest = 1 << 20

// withSlips adds to the condition Ready what is valid in a spec and certainly not meant.
func withSlips(ready metav1.Condition, p table.Policy) metav1.Condition {
	if p.Parsed == nil || p.Object == nil {
		return ready
	}
	if slips := slipsIn(&p.Object.Spec); len(slips) > 0 {
		ready.Message = kube.AppendNote(ready.Message, " Probably a slip: "+kube.First(slips)+".")
	}
	return ready
}

func slipsIn(s *v1alpha1.ResourcePolicySpec) []string {
	offer := field.NewPath("spec", "offer")
	slips := slices.Concat(tooSmall(s.Offer.Fixed, offer.Child("fixed")),
		tooSmall(s.Offer.Reserve, offer.Child("reserve")), tooSmall(s.Offer.Max, offer.Child("max")))
	if s.Slices != nil {
		slips = append(slips, tooSmall(s.Slices.Defaults, field.NewPath("spec", "slices", "defaults"))...)
	}
	for i := range s.Overrides {
		o, at := &s.Overrides[i], field.NewPath("spec", "overrides").Index(i)
		slips = append(slips, tooSmall(o.Offer.Fixed, at.Child("offer", "fixed"))...)
		slips = append(slips, tooSmall(o.Offer.Max, at.Child("offer", "max"))...)
		if s.Consumers == nil || len(s.Consumers.ClusterIDs) == 0 {
			continue
		}
		for _, id := range o.Consumers.ClusterIDs {
			if !slices.Contains(s.Consumers.ClusterIDs, id) {
				slips = append(slips, fmt.Sprintf("%s is for %s, which spec.consumers does not select", at, id))
			}
		}
	}
	return slips
}

// tooSmall returns the amounts of bytes that lack their unit.
func tooSmall(q v1alpha1.Quantities, at *field.Path) (slips []string) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		amount := q[name]
		switch name {
		case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
			if amount.Sign() > 0 && amount.CmpInt64(smallest) < 0 {
				slips = append(slips, fmt.Sprintf("%s is %s bytes", at.Key(string(name)), amount.Text()))
			}
		}
	}
	return slips
}
