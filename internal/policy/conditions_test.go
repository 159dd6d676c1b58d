package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func TestEveryOutcomeHasAReasonAndAMessageThatSaysWhatToDo(t *testing.T) {
	valid := table.Policy{Generation: 3, Parsed: &offer.Policy{}}
	ofNodes := table.Policy{Generation: 3, Parsed: &offer.Policy{Nodes: &offer.Nodes{}}}
	ofPeers := table.Policy{Generation: 3, Parsed: &offer.Policy{Nodes: &offer.Nodes{Selection: capacity.Selection{Peers: &capacity.Peers{}}}}}
	away := capacity.Unusable{Count: 1, First: []capacity.UnusableNode{{Name: "n", Why: "cordoned"}}}
	for _, tc := range []struct {
		policy table.Policy
		report *offer.Report
		reason string
		says   []string
	}{
		{valid, &offer.Report{Count: 2}, v1alpha1.ReasonOffering, []string{"what 2 consumers are offered"}},
		{valid, &offer.Report{Count: 1}, v1alpha1.ReasonOffering, []string{"what 1 consumer is offered"}},
		{valid, &offer.Report{}, v1alpha1.ReasonOffering, []string{"No consumer is known yet"}},
		{valid, &offer.Report{Outcome: offer.DryRun}, v1alpha1.ReasonDryRun, []string{"not published"}},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a", "b")}, v1alpha1.ReasonShadowed,
			[]string{"a for oslo, rome; b for oslo, rome.", "spec.priority"}},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a", "b", "c", "d", "e", "f", "g")},
			v1alpha1.ReasonShadowed, []string{"e for oslo, rome; and 2 more policies"}},
		{ofNodes, &offer.Report{Outcome: offer.NoNodes}, v1alpha1.ReasonNoNodes,
			[]string{"No node is left to offer: this cluster has no nodes of its own for spec.offer.nodes.selector."}},
		{ofNodes, &offer.Report{Outcome: offer.NoNodes, Known: 1}, v1alpha1.ReasonNoNodes,
			[]string{"No node is left to offer: spec.offer.nodes.selector does not match the only node. Compare it with kubectl get nodes --show-labels."}},
		{ofNodes, &offer.Report{Outcome: offer.NoNodes, Known: 3}, v1alpha1.ReasonNoNodes,
			[]string{"spec.offer.nodes.selector matches none of the 3 nodes."}},
		{ofNodes, &offer.Report{Outcome: offer.NoNodes, Known: 3, Unusable: away}, v1alpha1.ReasonNoNodes,
			[]string{"No node is left to offer. The selector matches n (cordoned). Make one usable, or check spec.offer.nodes.tolerations."}},
		{ofPeers, &offer.Report{Outcome: offer.NoNodes}, v1alpha1.ReasonNoNodes,
			[]string{"No virtual node is left to resell: no peer gives this cluster any."}},
		{ofPeers, &offer.Report{Outcome: offer.NoNodes, Known: 2}, v1alpha1.ReasonNoNodes,
			[]string{"No virtual node is left to resell: spec.offer.peers matches none of the 2 virtual nodes. " +
				"Compare its clusterIDs with the label liqo.io/remote-cluster-id, and its selector with kubectl get nodes --show-labels."}},
		{ofPeers, &offer.Report{Outcome: offer.NoNodes, Known: 2, Unusable: away}, v1alpha1.ReasonNoNodes,
			[]string{"No virtual node is left to resell. spec.offer.peers matches n (cordoned). Make one usable, or check spec.offer.peers.depth."}},
		{pausedPolicy(0), &offer.Report{Outcome: offer.Paused, Count: 2}, v1alpha1.ReasonPaused,
			[]string{"2 consumers keep what they have until spec.mode is changed: nothing more is offered or granted, and nothing is taken back."}},
		{pausedPolicy(1_800_000_000), &offer.Report{Outcome: offer.Paused, Count: 1}, v1alpha1.ReasonPaused,
			[]string{"1 consumer keeps what it has until 2027-01-15T08:00:00Z: nothing more"}},
		{pausedPolicy(1_800_000_000), &offer.Report{Count: 1}, v1alpha1.ReasonOffering,
			[]string{"what 1 consumer is offered. spec.pausedUntil (2027-01-15T08:00:00Z) has passed: the policy is active although spec.mode is Paused."}},
		{pausedPolicy(0), &offer.Report{Outcome: offer.Paused}, v1alpha1.ReasonPaused, []string{"No consumer is known yet: nothing is offered or granted until spec.mode is changed."}},
		{valid, &offer.Report{Count: 2, Paused: []string{"oslo", "rome"}}, v1alpha1.ReasonOffering,
			[]string{"what 2 consumers are offered. Paused for oslo, rome, by spec.pausedConsumers: what they have stays as it is."}},
		{valid, &offer.Report{Count: 1, Paused: []string{"rome"}}, v1alpha1.ReasonOffering,
			[]string{"Paused for rome, by spec.pausedConsumers: what it has stays as it is."}},
		{stoppedPolicy(offer.Unused), &offer.Report{Outcome: offer.Stopped, Count: 2}, v1alpha1.ReasonStopped,
			[]string{"Nothing more is offered or granted until spec.mode is changed. 2 consumers keep only what their pods use, by spec.reclaim."}},
		{stoppedPolicy(offer.Evict), &offer.Report{Outcome: offer.Stopped, Count: 1}, v1alpha1.ReasonStopped,
			[]string{"1 consumer keeps nothing, by spec.reclaim: its pods are evicted."}},
		{stoppedPolicy(offer.Retain), &offer.Report{Outcome: offer.Stopped, Count: 1}, v1alpha1.ReasonStopped,
			[]string{"1 consumer keeps what was granted and what its pods use, by spec.reclaim."}},
		{stoppedPolicy(offer.Evict), &offer.Report{Outcome: offer.Stopped, Count: 1, Paused: []string{"rome"}}, v1alpha1.ReasonStopped,
			[]string{"until spec.mode is changed. Paused for rome, by spec.pausedConsumers: what it has stays as it is."}},
		{stoppedPolicy(offer.Evict), &offer.Report{Outcome: offer.Stopped}, v1alpha1.ReasonStopped,
			[]string{"Nothing more is offered or granted until spec.mode is changed. No consumer is known yet."}},
		{valid, &offer.Report{Outcome: offer.Incomplete, Missing: []string{"memory", "pods"}}, v1alpha1.ReasonIncomplete,
			[]string{"memory, pods", "spec.offer"}},
		{valid, &offer.Report{Outcome: offer.Exhausted, Exhausted: []string{"cpu"}}, v1alpha1.ReasonExhausted,
			[]string{"Nothing is left of cpu"}},
		{valid, &offer.Report{Count: 1, Unknown: []string{"roma"}}, v1alpha1.ReasonOffering,
			[]string{"what 1 consumer is offered. Unknown: roma."}},
		{table.Policy{Generation: 3, Problems: texts(field.ErrorList{
			field.Invalid(field.NewPath("spec", "class"), "default", "write another"),
			field.Required(field.NewPath("spec", "offer"), "write one"),
		})}, nil, v1alpha1.ReasonInvalid, []string{"spec.class", "write another", "spec.offer", "write one"}},
		{table.Policy{Deleting: true}, nil, v1alpha1.ReasonTerminating, []string{"being deleted", "finalizer"}},
	} {
		got := readyOf(tc.policy, tc.report, nil)
		wantStatus := metav1.ConditionTrue
		if slices.Contains([]string{
			v1alpha1.ReasonTerminating, v1alpha1.ReasonInvalid, v1alpha1.ReasonNoNodes, v1alpha1.ReasonIncomplete,
		}, tc.reason) {
			wantStatus = metav1.ConditionFalse
		}
		if got.Reason != tc.reason || got.Status != wantStatus || got.Type != v1alpha1.ConditionReady {
			t.Errorf("%s: got %+v", tc.reason, got)
		}
		for _, words := range tc.says {
			if !strings.Contains(got.Message, words) {
				t.Errorf("%s: message %q does not contain %q", tc.reason, got.Message, words)
			}
		}
	}
}

func pausedPolicy(until int64) table.Policy {
	return table.Policy{Generation: 3, Parsed: &offer.Policy{Paused: true, PausedUntil: until}}
}

func stoppedPolicy(reclaim offer.Reclaim) table.Policy {
	return table.Policy{Generation: 3, Parsed: &offer.Policy{Stopped: true, Reclaim: reclaim}}
}

// losses returns a loss of the consumers oslo and rome to each of these policies.
func losses(to ...string) []offer.Loss {
	var all []offer.Loss
	for _, policy := range to {
		all = append(all, offer.Loss{Policy: policy, Count: 2, Consumers: []string{"oslo", "rome"}})
	}
	return all
}

func TestInForceSaysWhetherThePolicyDecidesAndWhichOnesDecideInstead(t *testing.T) {
	valid := table.Policy{Generation: 3, Parsed: &offer.Policy{}}
	more := losses("a")
	more[0].Count = 9
	for _, tc := range []struct {
		policy table.Policy
		report *offer.Report
		want   string
	}{
		{valid, &offer.Report{Count: 2}, "True Deciding: The policy decides for all of its consumers."},
		{valid, &offer.Report{Outcome: offer.NoNodes}, "True Deciding: The policy decides for all of its consumers."},
		{valid, &offer.Report{Count: 2, Losses: more},
			"True PartlyShadowed: Other policies decide for some of its consumers: a for oslo, rome and 7 more."},
		{valid, &offer.Report{Outcome: offer.Shadowed, Losses: losses("a")},
			"False Shadowed: Other policies decide for each of its consumers: a for oslo, rome."},
		{valid, &offer.Report{Outcome: offer.DryRun},
			"False DryRun: spec.mode is DryRun: other policies decide as if this one did not exist."},
		{table.Policy{}, nil, "False Invalid: The policy is ignored: see the condition Ready."},
	} {
		c := inForceOf(tc.policy, tc.report)
		got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		if got != tc.want || c.Type != v1alpha1.ConditionInForce {
			t.Errorf("got %s %s, want %s", c.Type, got, tc.want)
		}
	}
}
