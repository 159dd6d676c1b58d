package policy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

const (
	// smallest is an amount of memory, in bytes, that no pod runs with: whoever writes less has forgotten the unit.
	smallest = 1 << 20
	// smallestCPU is an amount of cpu, in thousandths, that is too small to offer: whoever writes less has probably
	// meant cores, and added an m.
	smallestCPU = 10
)

// withSlips adds to the condition Ready what is valid in a spec and certainly not meant.
func withSlips(ready metav1.Condition, p table.Policy) metav1.Condition {
	if p.Parsed == nil || p.Object == nil {
		return ready
	}
	if slips := slipsIn(&p.Object.Spec); slips.count > 0 {
		ready.Message = kube.AppendNote(ready.Message, " "+v1alpha1.SlipNote+kube.FirstOf(slips.first, slips.count)+".")
	}
	return ready
}

// slips are texts about parts of a spec: the first ones that a message names, and how many there are.
type slips struct {
	first []string
	count int
}

func (s *slips) add(text func() string) {
	if s.count++; s.count <= kube.MaxNamed {
		s.first = append(s.first, text())
	}
}

func slipsIn(s *v1alpha1.ResourcePolicySpec) (found slips) {
	offer := field.NewPath("spec", "offer")
	found.tooSmall(s.Offer.Fixed, offer.Child("fixed"))
	found.noPods(s.Offer.Fixed, offer.Child("fixed"))
	found.tooSmall(s.Offer.Reserve, offer.Child("reserve"))
	found.tooSmall(s.Offer.Max, offer.Child("max"))
	found.noPods(s.Offer.Max, offer.Child("max"))
	if s.Slices != nil {
		found.tooSmall(s.Slices.Defaults, field.NewPath("spec", "slices", "defaults"))
	}
	selected := map[v1alpha1.ClusterID]struct{}{}
	if s.Consumers != nil {
		for _, id := range s.Consumers.ClusterIDs {
			selected[id] = struct{}{}
		}
	}
	unselected := func(at *field.Path, id v1alpha1.ClusterID) {
		if _, ok := selected[id]; !ok && len(selected) > 0 {
			found.add(func() string { return fmt.Sprintf("%s is for %s, which spec.consumers does not select", at, id) })
		}
	}
	for i, c := range s.PausedConsumers {
		unselected(field.NewPath("spec", "pausedConsumers").Index(i), c.ClusterID)
	}
	for i := range s.Overrides {
		o, at := &s.Overrides[i], field.NewPath("spec", "overrides").Index(i)
		found.tooSmall(o.Offer.Fixed, at.Child("offer", "fixed"))
		found.noPods(o.Offer.Fixed, at.Child("offer", "fixed"))
		found.tooSmall(o.Offer.Max, at.Child("offer", "max"))
		found.noPods(o.Offer.Max, at.Child("offer", "max"))
		for _, id := range o.Consumers.ClusterIDs {
			unselected(at, id)
		}
	}
	return found
}

// tooSmall adds the amounts of bytes that lack their unit, and amounts of cpu that nobody offers.
func (s *slips) tooSmall(q v1alpha1.Quantities, at *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		amount := q[name]
		switch {
		case amount.Sign() <= 0:
		case capacity.InBytes(string(name)) && amount.CmpInt64(smallest) < 0:
			s.add(func() string { return fmt.Sprintf("%s is %s bytes", at.Key(string(name)), amount.Text()) })
		case name == corev1.ResourceCPU && amount.MilliValue() < smallestCPU:
			s.add(func() string {
				return fmt.Sprintf("%s is %s, less than a hundredth of a CPU", at.Key(string(name)), amount.Text())
			})
		}
	}
}

// noPods adds an amount of no pods beside other amounts that are more than 0.
func (s *slips) noPods(q v1alpha1.Quantities, at *field.Path) {
	if pods, named := q[corev1.ResourcePods]; !named || pods.Sign() > 0 {
		return
	}
	for _, amount := range q {
		if amount.Sign() > 0 {
			s.add(func() string { return fmt.Sprintf("%s is 0, so that no pod can use the rest", at.Key("pods")) })
			return
		}
	}
}
