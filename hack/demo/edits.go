package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
)

// edits finds the edits of policies that change no offer. The operator publishes offers before it writes the generation that it
// has processed into the status of a policy, so whatever an edit changes can be read by then.
type edits struct {
	// settled is the generation of each policy that has been processed and dealt with here.
	settled map[types.UID]int64
	// shown is the generation of each policy when an offer of it was last shown to change.
	shown map[types.UID]int64
}

func newEdits() *edits {
	return &edits{settled: map[types.UID]int64{}, shown: map[types.UID]int64{}}
}

// show records that changes of offers have been shown that these policies decide or decided. The policies are read after the offers,
// so that the generation that has caused a change is among them.
func (e *edits) show(read []v1alpha1.ResourcePolicy, deciding []string) {
	for i := range read {
		if p := &read[i]; slices.Contains(deciding, p.Name) {
			e.shown[p.UID] = p.Generation
		}
	}
}

// settle returns the policies of which an edit has been processed and has changed no offer, each once. The policies are read before the
// offers, and show has been called for the offers that have changed.
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

// seen says that a policy was seen and changes nothing, and what the operator says of it.
func seen(p *v1alpha1.ResourcePolicy) string {
	text := "policy " + p.Name + ": seen, changes nothing"
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		text += " (" + ready.Reason + ")"
	}
	return text
}
