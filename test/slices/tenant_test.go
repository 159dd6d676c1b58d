package slices

import (
	"context"
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

func TestACordonKeepsGrantsAndPreventsNewOnes(t *testing.T) {
	const cordon = "the provider has cordoned this cluster and grants it nothing new"
	newPolicy(t, "cordoned", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	kept := newSlice(t, rome, "kept", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	kept.awaitGrant(t, granted("cordoned", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}))

	setCondition(t, rome, authv1beta1.TenantConditionCordoned)
	kept.awaitCordon(t, true)
	kept.ask(t, amounts{"cpu": "4", "memory": "1Gi", "pods": "5"})
	kept.awaitGrant(t, answer{
		authv1beta1.ResourceSliceConditionAccepted, "ProfferCordoned", "granted 2 of 4 cpu: " + cordon,
		amounts{"cpu": "2", "memory": "1Gi", "pods": "5"},
	})
	fresh := newSlice(t, rome, "fresh", "gold", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
	fresh.awaitAnswer(t, answer{
		authv1beta1.ResourceSliceConditionDenied, "ProfferCordoned",
		fmt.Sprintf("denied: 1 cpu asked, but %[1]s; 1Gi memory asked, but %[1]s; 5 pods asked, but %[1]s", cordon),
		amounts{},
	})
	fresh.requireNoUse(t)
	other := newSlice(t, oslo, "other", "gold", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
	other.awaitGrant(t, granted("cordoned", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}))

	setCondition(t, rome, authv1beta1.TenantConditionActive)
	kept.awaitGrant(t, granted("cordoned", amounts{"cpu": "4", "memory": "1Gi", "pods": "5"}))
	kept.awaitCordon(t, false)
	fresh.awaitGrant(t, granted("cordoned", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}))
}

// awaitCordon waits until Liqo has set or removed the mark of a cordon on the Quota.
func (s slice) awaitCordon(t *testing.T, want bool) {
	t.Helper()
	lab.Eventually(t, "Liqo marks the quota", func(ctx context.Context) error {
		quota := s.emptyQuota()
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		return differ("cordoned", want, ptr.Deref(quota.Spec.Cordoned, false))
	})
}

// After the drain the test also goes back. Liqo creates the replica again when the consumer changes
// its slice. The change must come after the consumer has its rights on the provider again, because
// Liqo does not retry rejected requests.
func TestADrainFreesGrants(t *testing.T) {
	newNode(t, "drained", amounts{"cpu": "6", "memory": "16Gi", "pods": "20"})
	newPolicy(t, "drained", "{class: gold, offer: {nodes: {selector: {matchLabels: {pool: drained}}}}}")
	leaving := newSlice(t, rome, "leaving", "gold", amounts{"cpu": "6", "memory": "1Gi", "pods": "5"})
	leaving.awaitGrant(t, granted("drained", amounts{"cpu": "6", "memory": "1Gi", "pods": "5"}))
	waiting := newSlice(t, oslo, "waiting", "gold", amounts{"cpu": "6", "memory": "1Gi", "pods": "5"})
	waiting.awaitAnswer(t, denied("denied: 6 cpu asked, but policy drained leaves 0 for this cluster"))

	setCondition(t, rome, authv1beta1.TenantConditionDrained)
	waiting.awaitGrant(t, granted("drained", amounts{"cpu": "6", "memory": "1Gi", "pods": "5"}))
	lab.Eventually(t, "Liqo deletes the replica and the quota", func(ctx context.Context) error {
		if err := isGone(ctx, provider, forge.ResourceSlice(leaving.name, lab.TenantNamespace(rome.ID))); err != nil {
			return err
		}
		return isGone(ctx, provider, leaving.emptyQuota())
	})

	setCondition(t, rome, authv1beta1.TenantConditionActive)
	awaitRights(t, rome)
	leaving.ask(t, amounts{"cpu": "5", "memory": "1Gi", "pods": "5"})
	leaving.awaitAnswer(t, denied("denied: 5 cpu asked, but policy drained leaves 0 for this cluster"))
	waiting.remove(t)
	leaving.awaitGrant(t, granted("drained", amounts{"cpu": "5", "memory": "1Gi", "pods": "5"}))
}

// awaitRights waits until the consumer has access to the provider again, which a drain suspends.
func awaitRights(t *testing.T, c *lab.Cluster) {
	t.Helper()
	consumer, err := c.At(t.Context(), provider)
	lab.Must(t, err)
	lab.Eventually(t, "the consumer has its rights again", func(ctx context.Context) error {
		return consumer.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(lab.TenantNamespace(c.ID)))
	})
}
