package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
)

// edits finds the edits of policies that change no offer. The operator publishes offers before it
// writes the processed generation into the status of a policy, so the effect of an edit can be read
// by then.
type edits struct {
	// settled is the last generation of each policy that was processed and handled here.
	settled map[types.UID]int64
	// shown is the generation that each policy had when a change of its offers was last shown.
	shown map[types.UID]int64
}

func newEdits() *edits {
	return &edits{settled: map[types.UID]int64{}, shown: map[types.UID]int64{}}
}

// show records that changes of offers of these policies were shown. The policies are read after the
// offers, so that the generation that caused a change is among them.
func (e *edits) show(read []v1alpha1.ResourcePolicy, deciding []string) {
	for i := range read {
		if p := &read[i]; slices.Contains(deciding, p.Name) {
			e.shown[p.UID] = p.Generation
		}
	}
}

// settle returns, each once, the policies with a processed edit that changed no offer. The policies
// are read before the offers, and show was called for the offers that changed.
func (e *edits) settle(read []v1alpha1.ResourcePolicy) (unchanged []v1alpha1.ResourcePolicy) {
	for i := range read {
		p := &read[i]
		if p.Status.ObservedGeneration < p.Generation || p.Generation <= e.settled[p.UID] {
			continue
		}
		e.settled[p.UID] = p.Generation
		if e.shown[p.UID] < p.Generation {
			unchanged = append(unchanged, *p)
		}
	}
	return unchanged
}

// seen returns the line for an edit that changes nothing, with the reason that the operator
// reports.
func seen(p *v1alpha1.ResourcePolicy) string {
	text := "policy " + p.Name + ": seen, changes nothing"
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		text += " (" + ready.Reason + ")"
	}
	return text
}
