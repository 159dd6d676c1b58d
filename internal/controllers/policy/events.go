package policy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Reasons of Events, in addition to the reasons of the condition Ready.
const (
	eventEvicting = "Evicting"
	eventHeld     = "Held"
	eventExceeded = v1alpha1.ReasonExceeded
	actionOffer   = "Offer"
)

// eventWriter emits an Event for everything that an admin must know, once each time it happens.
type eventWriter struct{ kube.EventEmitter }

// reported holds what has already been emitted about a policy.
type reported struct {
	zeroed, held, exceeding []string
}

// emit compares the outcome of a policy with its status before, and with what was already emitted. It returns
// what has been emitted then.
func (w eventWriter) emit(
	object *v1alpha1.ResourcePolicy, f finding, before *metav1.Condition, known reported,
) reported {
	report := f.report
	now := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	if before == nil || before.Reason != now.Reason ||
		(now.Reason == v1alpha1.ReasonInvalid && before.Message != now.Message) {
		w.transition(object, now, before)
	}
	if report == nil {
		return reported{}
	}
	// A dry run affects no consumer, but what the policy offered before is withdrawn.
	zeroed, held := report.Withdrawn, []string(nil)
	if report.Outcome != offer.DryRun {
		zeroed = slices.Concat(zeroed, report.Zeroed)
		for _, c := range report.Consumers {
			if c.Held {
				held = append(held, c.ID)
			}
		}
	}
	if news := without(zeroed, known.zeroed); len(news) > 0 {
		keep := "raise the offer"
		if report.Outcome == offer.Stopped {
			keep = "set spec.mode to Active"
		}
		w.Emit(object, corev1.EventTypeWarning, eventEvicting, fmt.Sprintf(
			"These consumers are offered no cpu or no memory: %s. Their virtual nodes become NotReady, and their pods "+
				"here are evicted in about 5 minutes. To keep the pods, %s.", kube.First(news), keep))
	}
	if news := without(held, known.held); len(news) > 0 {
		w.Emit(object, corev1.EventTypeNormal, eventHeld, fmt.Sprintf(
			"spec.reclaim holds the offers to these consumers above the policy's amounts until they use less: %s.",
			kube.First(news)))
	}
	news, exceeding := newExcesses(f.excesses, known.exceeding)
	if len(news) > 0 {
		w.Emit(object, corev1.EventTypeWarning, eventExceeded, exceeded(news))
	}
	return reported{zeroed: zeroed, held: held, exceeding: exceeding}
}

// newExcesses returns the slices that are not among the known ones, and the names of all.
func newExcesses(excesses []table.Excess, known []string) (news []table.Excess, names []string) {
	for _, e := range excesses {
		name := e.Consumer + "/" + e.Slice
		if names = append(names, name); !slices.Contains(known, name) {
			news = append(news, e)
		}
	}
	return news, names
}

func (w eventWriter) transition(object *v1alpha1.ResourcePolicy, now, before *metav1.Condition) {
	switch now.Reason {
	case v1alpha1.ReasonInvalid, v1alpha1.ReasonNoNodes, v1alpha1.ReasonSourceUnavailable, v1alpha1.ReasonIncomplete,
		v1alpha1.ReasonUnknownResources:
		w.Emit(object, corev1.EventTypeWarning, now.Reason, now.Message)
	case v1alpha1.ReasonShadowed, v1alpha1.ReasonExhausted, v1alpha1.ReasonPaused,
		v1alpha1.ReasonStopped:
		w.Emit(object, corev1.EventTypeNormal, now.Reason, now.Message)
	case v1alpha1.ReasonOffering:
		if before != nil {
			w.Emit(object, corev1.EventTypeNormal, now.Reason, now.Message)
		}
	}
}

// without returns the names that are not among the known ones.
func without(names, known []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) })
}

// withinGrantsOf returns the condition WithinGrants: whether pods request more than was granted.
func withinGrantsOf(excesses []table.Excess) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionWithinGrants, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWithin,
		Message: "The pods of each ResourceSlice request no more than it was granted.",
	}
	if len(excesses) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonExceeded
		c.Message = kube.Shorten(exceeded(excesses), kube.MaxMessage)
	}
	return c
}

// exceeded lists what pods request beyond their grants, such as "mine of rome: cpu 2 more".
func exceeded(excesses []table.Excess) string {
	var all []string
	for _, e := range excesses {
		var amounts []string
		for _, name := range slices.Sorted(maps.Keys(e.Amounts)) {
			amounts = append(amounts, fmt.Sprintf("%s %s more", name, capacity.Canonical(name, e.Amounts[name])))
		}
		all = append(all, fmt.Sprintf("%s of %s (%s)", e.Slice, e.Consumer, kube.First(amounts)))
	}
	return fmt.Sprintf("Pods request more than their ResourceSlices were granted: %s. "+
		"Either a grant was lowered below what its pods use, or Liqo's Quota does not count all that they request: "+
		"see the component slice-pod-guard.", kube.First(all))
}
