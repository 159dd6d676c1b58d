package deploy

import (
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// The test follows the restore of etcd that docs/how-to/restore.md describes. Since the backup, one slice
// was granted more and another was created.
func TestARestoredBackupGrantsNothingTwice(t *testing.T) {
	p := newPeering(t)
	test.Must(t, cluster.client.Delete(t.Context(), aSlice("probe", "gold")))
	deleteGrants(t)
	tenant(t)
	node(t) // 6 of its 8 cpu are free
	applyPolicy(t, "gold",
		`{class: gold, offer: {nodes: {selector: {matchLabels: {pool: deploy-test}}}}, updateThresholdPercent: 0, slices: {defaults: {}}}`)
	args := container(t, deployment(t, render(t))).Args
	o := start(t, args)
	o.AwaitReady(t)

	early, late := aSlice("early", "gold"), aSlice("late", "gold")
	requestCPU("2")(early)
	requestCPU("2")(late)
	createAuthenticated(t, p, early)
	awaitGranted(t, p, "early", 2)
	var backup v1alpha1.GrantList
	test.Must(t, cluster.client.List(t.Context(), &backup, client.InNamespace(namespace)))
	if len(backup.Items) != 1 {
		t.Fatalf("there are %d grants, want 1", len(backup.Items))
	}
	test.Must(t, edit(t, p.rome, "early", requestCPU("4")))
	awaitGranted(t, p, "early", 4)
	createAuthenticated(t, p, late)
	awaitGranted(t, p, "late", 2)

	test.Must(t, o.Stop(gracefulStop))
	restore(t, p, &backup.Items[0], late)
	o = start(t, args)
	o.AwaitReady(t)
	// The recorded Grant holds, and the rest of the pool is free.
	test.Eventually(t, func() error {
		var policy v1alpha1.ResourcePolicy
		test.Must(t, cluster.client.Get(t.Context(), client.ObjectKey{Name: "gold"}, &policy))
		if got := policy.Status.Remaining["cpu"]; got.Value() != 4 {
			return fmt.Errorf("%v remain of %v, want 4 of 6 cpu", policy.Status.Remaining, policy.Status.Capacity)
		}
		return nil
	})
	awaitGranted(t, p, "early", 2)

	// Liqo replicates the consumer's slice again. Here the younger slice comes first, and gets its
	// 2 cpu and 1 more.
	again := aSlice("late", "gold")
	requestCPU("3")(again)
	createAuthenticated(t, p, again)
	awaitGranted(t, p, "late", 3)
	test.Must(t, edit(t, p.rome, "early", requestCPU("4")))
	awaitGranted(t, p, "early", 3)
	o.requireAllowed(t)
}

// restore resets the API server to the state in which only the slice of this Grant existed.
func restore(t *testing.T, p *peering, grant *v1alpha1.Grant, made *authv1beta1.ResourceSlice) {
	t.Helper()
	test.Must(t, p.admin.Delete(t.Context(), made))
	var grants v1alpha1.GrantList
	test.Must(t, cluster.client.List(t.Context(), &grants, client.InNamespace(namespace)))
	for i := range grants.Items {
		g := &grants.Items[i]
		if g.Name != grant.Name {
			test.Must(t, cluster.client.Delete(t.Context(), g))
			continue
		}
		g.Spec = grant.Spec
		test.Must(t, cluster.client.Update(t.Context(), g))
	}
	test.Must(t, edit(t, p.admin, grant.Spec.Slice.Name, requestCPU("2")))
	test.Must(t, editStatus(t, p.admin, grant.Spec.Slice.Name, func(s *authv1beta1.ResourceSlice) {
		s.Status.Resources["cpu"] = grant.Spec.Resources["cpu"]
	}))
}

// awaitGranted waits until the answer to the slice has this much cpu.
func awaitGranted(t *testing.T, p *peering, name string, cpu int64) {
	t.Helper()
	test.Eventually(t, func() error {
		var s authv1beta1.ResourceSlice
		if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: tenantNamespace, Name: name}, &s); err != nil {
			return err
		}
		if got := s.Status.Resources["cpu"]; got.Value() != cpu {
			return fmt.Errorf("slice %s has %s cpu, want %d: %+v", name, got.String(), cpu, s.Status.Conditions)
		}
		return nil
	})
}
