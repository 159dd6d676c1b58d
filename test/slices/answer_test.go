package slices

import (
	"context"
	"errors"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// The pool is one node that no other consumer uses.
func TestAConsumerGetsWhatThePolicyOffers(t *testing.T) {
	newNode(t, "plain", amounts{"cpu": "8", "memory": "16Gi", "pods": "20"})
	newPolicy(t, "standard",
		`{class: gold, offer: {nodes: {selector: {matchLabels: {pool: plain}}}}, slices: {defaults: {pods: "10"}}}`)
	newPolicy(t, "strict",
		`{class: silver, offer: {nodes: {selector: {matchLabels: {pool: plain}}}}, slices: {onExcess: Deny}}`)

	t.Run("a request in full, and defaults for the rest", func(t *testing.T) {
		s := newSlice(t, rome, "whole", "gold", amounts{"cpu": "4", "memory": "8Gi"})
		s.awaitGrant(t, granted("standard", amounts{"cpu": "4", "memory": "8Gi", "pods": "10"}))
	})
	t.Run("no request, and Liqo's defaults within the offer", func(t *testing.T) {
		newPolicy(t, "roomy", `{class: bronze, offer: {fixed: {cpu: "8", memory: 16Gi, pods: "200", ephemeral-storage: 30Gi}}}`)
		defaults := amounts{"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi"}
		s, ofLiqo := newSlice(t, rome, "empty", "bronze", amounts{}), newSlice(t, rome, "empty-of-liqo", "default", amounts{})
		s.awaitGrant(t, answer{
			Status: authv1beta1.ResourceSliceConditionAccepted, Reason: "ProfferGranted", Message: "granted the defaults of policy roomy",
			Granted: defaults,
		})
		ofLiqo.awaitUse(t, defaults)
	})
	t.Run("a request capped at the pool", func(t *testing.T) {
		s := newSlice(t, rome, "capped", "gold", amounts{"cpu": "12", "memory": "8Gi", "pods": "5"})
		s.awaitGrant(t, capped("granted 8 of 12 cpu: policy standard leaves 8 for this cluster",
			amounts{"cpu": "8", "memory": "8Gi", "pods": "5"}))
	})
	t.Run("a request that grows and shrinks", func(t *testing.T) {
		s := newSlice(t, rome, "changing", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
		s.awaitGrant(t, granted("standard", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}))
		s.ask(t, amounts{"cpu": "7500m", "memory": "1Gi", "pods": "5"})
		s.awaitGrant(t, granted("standard", amounts{"cpu": "7500m", "memory": "1Gi", "pods": "5"}))
		s.ask(t, amounts{"cpu": "9", "memory": "1Gi", "pods": "5"})
		s.awaitGrant(t, capped("granted 8 of 9 cpu: policy standard leaves 8 for this cluster",
			amounts{"cpu": "8", "memory": "1Gi", "pods": "5"}))
		s.ask(t, amounts{"cpu": "1", "memory": "512Mi", "pods": "5"})
		s.awaitGrant(t, granted("standard", amounts{"cpu": "1", "memory": "512Mi", "pods": "5"}))
	})
	t.Run("a denial with its reason under onExcess Deny", func(t *testing.T) {
		s := newSlice(t, rome, "denied", "silver", amounts{"cpu": "12", "memory": "8Gi", "pods": "5"})
		s.awaitAnswer(t,
			denied("denied: 12 cpu asked, but policy strict leaves 8 for this cluster; it grants all or nothing"))
		s.requireNoUse(t)
		s.ask(t, amounts{"cpu": "8", "memory": "8Gi", "pods": "5"})
		s.awaitGrant(t, granted("strict", amounts{"cpu": "8", "memory": "8Gi", "pods": "5"}))
	})
	t.Run("a dropped resource as an explicit 0", func(t *testing.T) {
		s := newSlice(t, rome, "dropped", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
		s.awaitGrant(t, granted("standard", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}))
		editPolicy(t, "standard",
			`{class: gold, offer: {nodes: {selector: {matchLabels: {pool: plain}}}, resources: [cpu, memory]}}`)
		s.awaitGrant(t, capped("granted 0 of 5 pods: policy standard does not offer it",
			amounts{"cpu": "2", "memory": "1Gi", "pods": "0"}))
	})
}

// requireNoUse fails the test if the slice has a virtual node or a Quota.
func (s slice) requireNoUse(t *testing.T) {
	t.Helper()
	err := errors.Join(
		isGone(t.Context(), s.consumer, s.emptyVirtualNode()), isGone(t.Context(), provider, s.emptyQuota()))
	if err != nil {
		t.Error(err)
	}
}

func TestTheVirtualNodeHasWhatThePolicyDescribes(t *testing.T) {
	newPolicy(t, "described", `
class: gold
offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}
slices:
  nodeLabels: {tier: gold}
  nodeSelector: {dedicated: liqo}
  storageClasses: [fast, slow]
  ingressClasses: [nginx]
  loadBalancerClasses: [metallb]
`)
	s := newSlice(t, rome, "described", "gold", amounts{"cpu": "4", "memory": "4Gi", "pods": "10"})
	s.awaitGrant(t, granted("described", amounts{"cpu": "4", "memory": "4Gi", "pods": "10"}))
	lab.Eventually(t, "the virtual node is described", func(ctx context.Context) error {
		node := s.emptyVirtualNode()
		if err := rome.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		type description struct {
			Tier          string
			Selector      map[string]string
			Storage       []liqov1beta1.StorageType
			Ingress       []liqov1beta1.IngressType
			LoadBalancers []liqov1beta1.LoadBalancerType
		}
		patch := node.Spec.OffloadingPatch
		if patch == nil {
			patch = &offloadingv1beta1.OffloadingPatch{}
		}
		want := description{
			"gold", map[string]string{"dedicated": "liqo"},
			[]liqov1beta1.StorageType{{StorageClassName: "fast", Default: true}, {StorageClassName: "slow"}},
			[]liqov1beta1.IngressType{{IngressClassName: "nginx", Default: true}},
			[]liqov1beta1.LoadBalancerType{{LoadBalancerClassName: "metallb", Default: true}},
		}
		got := description{
			node.Spec.Labels["tier"], patch.NodeSelector, node.Spec.StorageClasses, node.Spec.IngressClasses,
			node.Spec.LoadBalancerClasses,
		}
		return differ("the description", want, got)
	})
}

// A slice may be older than the first policy for its class.
func TestASliceIsAnsweredOnceAPolicyServesItsClass(t *testing.T) {
	s := newSlice(t, rome, "early", "later", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
	s.awaitAuthentication(t)
	s.requireNoUse(t)
	newPolicy(t, "late", `{class: later, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	s.awaitGrant(t, granted("late", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}))
}
