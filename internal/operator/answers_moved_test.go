package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/offered"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// A consumer must not keep a grant out of the reach of its policy by a move to a class that nobody serves.
func TestAGrantIsLoweredInAClassThatNobodyServes(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	policy := kubetest.Create(t, classGold())
	o := startOperator(t)
	rome, oslo := newTenancy(t, "rome"), newTenancy(t, "oslo")
	slice := rome.ask("s", nodestest.List("cpu", "6"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	other := oslo.ask("other", nodestest.List("cpu", "8"))
	awaitAnswer(t, other, "Accepted Capped cpu=2")
	move := func(class string) {
		t.Helper()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class, "spec", "class") }, kubetest.WriteSpec)
	}

	// The grant stays while its policy leaves it, and nothing more is granted.
	move("platinum")
	expectEvent(t, "s", "NotServed", "no policy serves the class platinum")
	changeRequest(t, slice, "cpu", "8")
	kubetest.Remove(t, other)
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	tail := rome.ask("tail", nodestest.List("cpu", "8"))
	awaitAnswer(t, tail, "Accepted Capped cpu=2")

	// It is lowered as in its class, where it counts as before.
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Max, s.Reclaim = kubetest.Quantities("cpu", "1"), v1alpha1.ReclaimEvict
	})
	awaitMessage(t, slice, "Accepted NotAnswered cpu=1",
		"nothing more is granted, and what is granted may be lowered: no policy serves the class platinum, to which it "+
			"has moved, and no other controller has answered it; what it was granted still counts in the class gold, and is "+
			"lowered as there")
	awaitAnswer(t, tail, "Accepted Capped cpu=0")
	other = oslo.ask("another", nodestest.List("cpu", "8"))
	awaitAnswer(t, other, "Accepted Capped cpu=1")
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = nil })
	awaitAnswer(t, tail, "Accepted Capped cpu=6")
	awaitAnswer(t, slice, "Accepted NotAnswered cpu=1")
	awaitAnswer(t, other, "Accepted Capped cpu=1")

	// Once another controller accepts it, the slice is that controller's, and holds nothing of gold.
	kubetest.Edit(t, slice, func(o client.Object) { overwrite(o, "Accepted", "OfPlatinum", map[string]any{"cpu": "3"}) },
		kubetest.WriteStatus)
	awaitAnswer(t, tail, "Accepted Capped cpu=7")
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Accepted OfPlatinum cpu=3")
	move("gold")
	awaitAnswer(t, slice, "Accepted Capped cpu=0,memory=0")
}

// After an edit of the nodes of its policy, a grant is recorded on the new ones, and others get what the former ones
// have.
func TestAGrantIsOnTheNodesThatItsPolicySelects(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, nodestest.Node("silver-1", nodestest.List("cpu", "8"), nodestest.NodeLabel("pool", "silver")))
	policy := kubetest.Create(t, classGold())
	beside := classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Class = "beside" })
	beside.Name = "beside"
	kubetest.Create(t, beside)
	startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "6"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	other := newTenancy(t, "oslo").ask(
		"other", nodestest.List("cpu", "8"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "beside" })
	awaitAnswer(t, other, "Accepted Capped cpu=2")
	former := grantOf(t, namespaceOf(nil), slice).Spec.Nodes

	editPolicy(t, policy, kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "silver"})))
	awaitAnswer(t, other, "Accepted Incomplete cpu=8")
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	test.Eventually(t, func() string {
		now := grantOf(t, namespaceOf(nil), slice).Spec
		if now.Policy != "standard" || now.Nodes == former || len(now.Nodes) != len(former) {
			return fmt.Sprintf("granted by %s from the nodes %s, before from %s", now.Policy, now.Nodes, former)
		}
		return ""
	})
}

// grantOf returns the Grant of a slice, which the operator of a namespace keeps.
func grantOf(t *testing.T, namespace string, slice client.Object) *v1alpha1.Grant {
	t.Helper()
	var all v1alpha1.GrantList
	test.Must(t, kubetest.API(t).List(t.Context(), &all, client.InNamespace(namespace)))
	i := slices.IndexFunc(all.Items, func(g v1alpha1.Grant) bool { return g.Spec.Slice.UID == string(slice.GetUID()) })
	if i < 0 {
		t.Fatal("the slice has no Grant")
	}
	return &all.Items[i]
}

// A denial leaves the Quota, and the answer of another controller is not replaced.
func TestWhatAnotherControllerDeniesCountsUntilItIsAccepted(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "6"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, "platinum", "spec", "class") }, kubetest.WriteSpec)
	kubetest.Edit(t, slice, func(o client.Object) { overwrite(o, "Denied", "OfPlatinum", nil) }, kubetest.WriteStatus)
	expectEvent(t, "s", "NotServed", "Another controller has denied the slice in the class platinum")
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Denied OfPlatinum")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(2000), o.offered("oslo")["gold"]["cpu"]) })
	kubetest.Edit(t, slice, func(o client.Object) {
		overwrite(o, "Accepted", "OfPlatinum", map[string]any{"cpu": "3"})
	}, kubetest.WriteStatus)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(8000), o.offered("oslo")["gold"]["cpu"]) })
	awaitAnswer(t, slice, "Accepted OfPlatinum cpu=3")
}

// The nodes of a policy are on record, so a grant takes nothing from other nodes after its policy was deleted while no
// operator ran.
func TestAGrantIsOnTheNodesThatItsDeletedPolicySelected(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, nodestest.Node("silver-1", nodestest.List("cpu", "8"), nodestest.NodeLabel("pool", "silver")))
	policy := kubetest.Create(t, classGold())
	silver := classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Class = "silver" },
		kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "silver"})))
	silver.Name = "silver"
	kubetest.Create(t, silver)
	first := startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "6"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
	nodes := grantOf(t, namespaceOf(nil), slice).Spec.Nodes
	test.Eventually(t, func() error {
		record := &corev1.ConfigMap{}
		err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: namespaceOf(nil), Name: offered.ConfigMap}, record)
		if err == nil && !strings.Contains(record.Data["nodes.json"], nodes) {
			err = fmt.Errorf("the record has no nodes %s: %v", nodes, record.Data)
		}
		return err
	})
	first.stop()
	kubetest.Remove(t, policy)

	startOperator(t)
	other := newTenancy(t, "oslo").ask(
		"other", nodestest.List("cpu", "8"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "silver" })
	awaitAnswer(t, other, "Accepted Incomplete cpu=8")
	awaitAnswer(t, slice, "Accepted Incomplete cpu=6")
}
