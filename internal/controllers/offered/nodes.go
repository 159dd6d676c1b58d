package offered

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// maxNodesBytes bounds the selections of nodes in the record.
const maxNodesBytes = 60 << 10

// granterOffers holds the part of spec.offer that says which nodes a policy grants from, and what part of them, by the
// granter that records of grants name. A process that starts knows from it the nodes of a grant whose policy was edited
// or deleted meanwhile. Without it, such a grant counts on all nodes.
type granterOffers map[string]json.RawMessage

// granterOffersIn returns those of the former policies of a snapshot, as they were before, and of its policies. Full
// reports that there was no room for all. Former ones come first, because nothing else knows them.
func granterOffersIn(s *table.Snapshot, before granterOffers) (all granterOffers, full bool) {
	all, left := granterOffers{}, maxNodesBytes
	add := func(by string, of json.RawMessage) {
		size := len(by) + len(of) + len(`"":,`)
		if full = full || size > left; size <= left {
			all[by], left = of, left-size
		}
	}
	for i := range s.Input.Former {
		by := s.Input.Former[i].Granter()
		if of, known := before[by]; known {
			add(by, of)
		}
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.Object == nil || p.Parsed == nil || p.Parsed.Nodes == nil {
			continue
		}
		of := &p.Object.Spec.Offer
		text, _ := json.Marshal(v1alpha1.PolicyOffer{ // It was read from JSON.
			Nodes: of.Nodes, Peers: of.Peers, Reserve: of.Reserve, Percent: of.Percent, Percentages: of.Percentages,
		})
		add(p.Parsed.Granter(), text)
	}
	return all, full
}

// samePolicies reports whether two snapshots have the same policies and former ones.
func samePolicies(a, b *table.Snapshot) bool {
	same := func(a, b table.Policy) bool { return a.UID == b.UID && a.Generation == b.Generation }
	return slices.EqualFunc(a.Policies, b.Policies, same) &&
		slices.EqualFunc(a.Input.Former, b.Input.Former, func(a, b offer.Policy) bool { return a.Granter() == b.Granter() })
}

// policies parses those that records of grants name. What this version of the operator does not read as the same
// selection is left out, and so are nodes that filters in Go have chosen: these filters read the whole policy.
func (g granterOffers) policies(
	named map[string]struct{}, parse func(*v1alpha1.ResourcePolicy) *offer.Policy,
) (all []offer.Policy) {
	for _, by := range slices.Sorted(maps.Keys(g)) {
		if _, needed := named[by]; !needed {
			continue
		}
		object := &v1alpha1.ResourcePolicy{}
		if json.Unmarshal(g[by], &object.Spec.Offer) != nil {
			continue
		}
		object.Name = offer.PolicyOf(by)
		// It was in force, and stays valid when rules are added.
		object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonOffering}}
		if p := parse(object); p != nil && p.Nodes != nil && p.Granter() == by {
			all = append(all, *p)
		}
	}
	return all
}
