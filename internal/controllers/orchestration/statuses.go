package orchestration

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

// statusKind is how the statuses of a kind are compared.
type statusKind[S any] struct {
	// lasting returns a copy without what changes all the time. untimed removes the times from such a copy.
	lasting func(*S) *S
	untimed func(*S)
	// observed returns when the measurements were made, zero for never.
	observed func(*S) time.Time
}

var (
	ofOrchestrations = statusKind[v1alpha1.OrchestrationStatus]{lasting, untimed, latest}
	ofChoices        = statusKind[v1alpha1.ProviderChoiceStatus]{lastingChoice, untimedChoice, observedChoice}
)

// due reports whether a status has to be written: something changed that does not change all the
// time, or its measurements are old.
func (k statusKind[S]) due(before, now *S) bool {
	return !k.same(before, now) || k.observed(now).Sub(k.observed(before)) >= statusInterval
}

// same reports whether the statuses differ in nothing but what changes all the time.
func (k statusKind[S]) same(before, now *S) bool {
	return equality.Semantic.DeepEqual(k.lasting(before), k.lasting(now))
}

// content renders what lasts in the status of an object, without its times, for the pacer. An object that is created
// again is another one.
func (k statusKind[S]) content(uid types.UID, s *S) string {
	out := k.lasting(s)
	k.untimed(out)
	text, _ := json.Marshal(out) // A status can always be encoded.
	return string(uid) + string(text)
}

// readyIs returns the condition Ready.
func readyIs(ready metav1.ConditionStatus, reason, message string, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: readyCondition, Status: ready, Reason: reason, Message: kube.Shorten(message, kube.MaxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
}

func untimedConditions(all []metav1.Condition) {
	for i := range all {
		all[i].LastTransitionTime = metav1.Time{}
	}
}

func untimedNotes(all []v1alpha1.NamespaceNote) {
	for i := range all {
		all[i].Until = nil
	}
}

// lasting returns what does not change all the time: without times, amounts and their reasons.
func lasting(s *v1alpha1.OrchestrationStatus) *v1alpha1.OrchestrationStatus {
	out := s.DeepCopy()
	for i := range out.Providers {
		p := &out.Providers[i]
		*p = v1alpha1.ProviderStatus{ClusterID: p.ClusterID, Ready: p.Ready}
	}
	for i := range out.Choices {
		c := &out.Choices[i]
		for j := range c.Chosen {
			c.Chosen[j].Score, c.Chosen[j].Because = 0, ""
		}
		slices.SortFunc(c.Chosen, func(a, b v1alpha1.ChosenProvider) int {
			return strings.Compare(string(a.ClusterID), string(b.ClusterID))
		})
		for j := range c.Rejected {
			c.Rejected[j].Because = ""
		}
	}
	return out
}

func untimed(s *v1alpha1.OrchestrationStatus) {
	untimedConditions(s.Conditions)
	for i := range s.Choices {
		c := &s.Choices[i]
		for j := range c.Chosen {
			c.Chosen[j].Since = metav1.Time{}
		}
		for j := range c.Rejected {
			c.Rejected[j].Left = nil
		}
		untimedNotes(c.Notes)
	}
}

func latest(s *v1alpha1.OrchestrationStatus) (at time.Time) {
	for i := range s.Providers {
		if t := s.Providers[i].LastObservedTime; t != nil && t.After(at) {
			at = t.Time
		}
	}
	return at
}

// lastingChoice returns what does not change all the time: without the time, the measurements and reasons.
func lastingChoice(s *v1alpha1.ProviderChoiceStatus) *v1alpha1.ProviderChoiceStatus {
	out := s.DeepCopy()
	out.ObservedTime = nil
	for i := range out.Providers {
		p := &out.Providers[i]
		*p = v1alpha1.ChoiceOfProvider{ClusterID: p.ClusterID, Chosen: p.Chosen, RejectedBy: p.RejectedBy}
	}
	return out
}

func untimedChoice(s *v1alpha1.ProviderChoiceStatus) {
	untimedConditions(s.Conditions)
	untimedNotes(s.Draining)
}

func observedChoice(s *v1alpha1.ProviderChoiceStatus) time.Time {
	if s.ObservedTime == nil {
		return time.Time{}
	}
	return s.ObservedTime.Time
}
