package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
)

// at returns a policy at one generation whose status has another.
func at(name string, generation, processed int64) v1alpha1.ResourcePolicy {
	return v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), Generation: generation},
		Status: v1alpha1.ResourcePolicyStatus{ObservedGeneration: processed, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonShadowed},
		}},
	}
}

func TestAnEditWithoutEffectIsReportedOnceItIsProcessed(t *testing.T) {
	type step struct {
		read []v1alpha1.ResourcePolicy
		// changed lists the policies whose offers were then shown to change, while the policies
		// were as in now.
		changed []string
		now     []v1alpha1.ResourcePolicy
		want    []string
	}
	policies := func(all ...v1alpha1.ResourcePolicy) []v1alpha1.ResourcePolicy { return all }
	started := step{
		read: policies(at("a", 1, 1), at("b", 1, 1)), changed: []string{"a", "b"},
		now: policies(at("a", 1, 1), at("b", 1, 1)),
	}
	for name, steps := range map[string][]step{
		"an edit that is not processed yet is not reported": {
			started, {read: policies(at("a", 2, 1))}, {read: policies(at("a", 2, 2)), want: []string{"a"}},
			{read: policies(at("a", 2, 2))},
		},
		"an edit with an effect is not reported": {
			started, {read: policies(at("a", 2, 2)), changed: []string{"a"}, now: policies(at("a", 2, 2))},
			{read: policies(at("a", 2, 2))},
		},
		"an effect that was shown before the status counts": {
			started, {read: policies(at("a", 2, 1)), changed: []string{"a"}, now: policies(at("a", 2, 1))},
			{read: policies(at("a", 2, 2))},
		},
		"an edit during the read of offers is not reported": {
			started, {read: policies(at("a", 1, 1)), changed: []string{"a"}, now: policies(at("a", 2, 1))},
			{read: policies(at("a", 2, 2))},
		},
		"a change of another policy's offers is not an effect": {
			started,
			{read: policies(at("a", 2, 1)), changed: []string{"b"}, now: policies(at("a", 2, 1), at("b", 1, 1))},
			{read: policies(at("a", 2, 2)), want: []string{"a"}},
		},
		"an earlier change by pods is not an effect": {
			started, {read: policies(at("a", 1, 1)), changed: []string{"a"}, now: policies(at("a", 1, 1))},
			{read: policies(at("a", 2, 2)), want: []string{"a"}},
		},
		"a new policy without an effect is reported": {
			started, {read: policies(at("a", 1, 1), at("c", 1, 0))},
			{read: policies(at("a", 1, 1), at("c", 1, 1)), want: []string{"c"}},
		},
		"two edits at once are both reported": {started, {read: policies(at("a", 5, 5), at("b", 2, 2)), want: []string{"a", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdits()
			for i, s := range steps {
				e.show(s.now, s.changed)
				var got []string
				for _, p := range e.settle(s.read) {
					got = append(got, p.Name)
				}
				if diff := cmp.Diff(s.want, got); diff != "" {
					t.Errorf("step %d, -want +got:\n%s", i, diff)
				}
			}
		})
	}
}

func TestTheReportOfAnEditWithoutEffectNamesTheReason(t *testing.T) {
	p := at("a", 2, 2)
	if got, want := seen(&p), "policy a: seen, changes nothing (Shadowed)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.Status.Conditions = nil
	if got, want := seen(&p), "policy a: seen, changes nothing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
