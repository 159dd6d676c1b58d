package slices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// withProviderGuard installs the component provider-guard on rome, which uses the provider.
func withProviderGuard(t *testing.T) {
	t.Helper()
	manifest, err := os.ReadFile("../../config/components/provider-guard/admissionpolicy.yaml")
	lab.Must(t, err)
	apply(t, rome, string(manifest))
	requireTypesOn(t, rome, "proffer-virtual-node-guard", "proffer-namespace-map-guard")
	probe := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: lab.TenantNamespace(provider.ID)},
		Spec:       offloadingv1beta1.VirtualNodeSpec{ClusterID: "none"},
	}
	lab.Eventually(t, "the guard is enforced", func(ctx context.Context) error {
		return refused(rome.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll), metav1.StatusReasonInvalid, "a provider with the cluster ID none")
	})
}

// apply applies a manifest to a cluster until the end of the test.
func apply(t *testing.T, c *lab.Cluster, manifest string) {
	t.Helper()
	_, err := c.Kubectl(t.Context(), manifest, "apply", "-f", "-")
	lab.Must(t, err)
	lab.Cleanup(t, func(ctx context.Context) error {
		_, err := c.Kubectl(ctx, manifest, "delete", "--ignore-not-found", "-f", "-")
		return err
	})
}

// logged returns an error unless one of rome's programs has logged this text.
func logged(program, text string) error {
	log, err := rome.Log(program)
	if err == nil && !strings.Contains(log, text) {
		err = fmt.Errorf("the log of %s does not have %q", program, text)
	}
	return err
}

const lyingPolicy = `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}, slices: {nodeLabels: {%s}}}`

// awaitNodeLabel waits until rome's VirtualNode of the slice has this label of its cluster.
func (s slice) awaitNodeLabel(t *testing.T, want string) {
	t.Helper()
	lab.Eventually(t, "Liqo makes the virtual node", func(ctx context.Context) error {
		node := s.emptyVirtualNode()
		if err := rome.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		return differ("the label", want, node.Spec.Labels[consts.RemoteClusterID])
	})
}

// TestLiqoRefusesAProviderThatLies has milan answer rome with labels of oslo. Everything on rome is
// Liqo's own.
func TestLiqoRefusesAProviderThatLies(t *testing.T) {
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	newPolicy(t, "lying", fmt.Sprintf(lyingPolicy, consts.RemoteClusterID+": oslo"))
	before := newSlice(t, rome, "before", "gold", small)
	before.awaitGrant(t, granted("lying", small))
	before.awaitNodeLabel(t, oslo.ID) // Otherwise the component is no longer needed.

	withProviderGuard(t)
	s := newSlice(t, rome, "lied-to", "gold", small)
	s.awaitAnswer(t, granted("lying", small))
	lab.Eventually(t, "Liqo on rome is refused", func(context.Context) error {
		return logged("liqo-controller-manager", "the label liqo.io/remote-cluster-id=oslo is not the ID of the cluster of this virtual node, milan")
	})
	if err := rome.Client.Get(t.Context(), client.ObjectKeyFromObject(s.emptyVirtualNode()), s.emptyVirtualNode()); !apierrors.IsNotFound(err) {
		t.Errorf("there is a virtual node: %v", err)
	}
	before.ask(t, amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}) // What exists is still updated.
	before.awaitUse(t, amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})

	editPolicy(t, "lying", fmt.Sprintf(lyingPolicy, "tier: gold"))
	s.awaitNodeLabel(t, provider.ID)
	s.awaitUse(t, small)
	before.awaitNodeLabel(t, provider.ID)
}

// holdsMaps has the provider's API server refuse what Liqo there writes, so that the provider can
// answer what it likes.
const holdsMaps = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: lying-provider}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [offloading.liqo.io], apiVersions: ["*"], operations: [UPDATE], resources: [namespacemaps/status]}
  validations:
  - expression: "!request.userInfo.username.startsWith('system:serviceaccount:')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: lying-provider}
spec: {policyName: lying-provider, validationActions: [Deny]}
`

// TestLiqoReflectsNoNamespaceThatItDidNotSend has milan answer that it has a namespace that rome did
// not send.
func TestLiqoReflectsNoNamespaceThatItDidNotSend(t *testing.T) {
	newPolicy(t, "reflecting", fmt.Sprintf(lyingPolicy, "tier: gold"))
	small := amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}
	s := newSlice(t, rome, "reflecting", "gold", small)
	s.awaitGrant(t, granted("reflecting", small))
	offload(t, rome, "reflected")
	accepted := func(ctx context.Context, c *lab.Cluster, peer string) (*offloadingv1beta1.NamespaceMap, error) {
		var maps offloadingv1beta1.NamespaceMapList
		if err := c.Client.List(ctx, &maps, client.InNamespace(lab.TenantNamespace(peer))); err != nil {
			return nil, err
		}
		for i := range maps.Items {
			if maps.Items[i].Status.CurrentMapping["reflected"].Phase == offloadingv1beta1.MappingAccepted {
				return &maps.Items[i], nil
			}
		}
		return nil, errors.New("the namespace is not accepted")
	}
	lab.Eventually(t, "rome knows that the namespace is accepted", func(ctx context.Context) error {
		_, err := accepted(ctx, rome, provider.ID)
		return err
	})

	apply(t, provider, holdsMaps)
	lie := func(ctx context.Context, change func(map[string]offloadingv1beta1.RemoteNamespaceStatus)) error {
		m, err := accepted(ctx, provider, rome.ID)
		if err != nil {
			return err
		}
		change(m.Status.CurrentMapping)
		return provider.Client.Status().Update(ctx, m)
	}
	const secret = "kube-system"
	forge := func(current map[string]offloadingv1beta1.RemoteNamespaceStatus) {
		current[secret] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: "elsewhere", Phase: offloadingv1beta1.MappingAccepted}
	}
	tell := func(current map[string]offloadingv1beta1.RemoteNamespaceStatus) { delete(current, secret) }
	reflects := func(ctx context.Context) (bool, error) {
		m, err := accepted(ctx, rome, provider.ID)
		return err == nil && m.Status.CurrentMapping[secret].Phase == offloadingv1beta1.MappingAccepted, err
	}
	// Otherwise the component is no longer needed.
	lab.Eventually(t, "without the guard, rome reflects what milan answers", func(ctx context.Context) error {
		err := lie(ctx, forge)
		if got, failed := reflects(ctx); err == nil && !got {
			err = errors.Join(failed, errors.New("not yet"))
		}
		return err
	})
	lab.Eventually(t, "milan answers the truth", func(ctx context.Context) error {
		err := lie(ctx, tell)
		if got, failed := reflects(ctx); err == nil && (got || failed != nil) {
			err = errors.Join(failed, errors.New("not yet"))
		}
		return err
	})

	withProviderGuard(t)
	lab.Eventually(t, "milan answers that it has another namespace, and Liqo on rome is refused", func(ctx context.Context) error {
		// Before the API server enforces the guard, a lie gets through. It is taken back, and told again: what is
		// written already is not refused.
		if got, err := reflects(ctx); got || err != nil {
			return errors.Join(err, lie(ctx, tell), errors.New("rome still reflects kube-system"))
		}
		return errors.Join(lie(ctx, forge), logged("crd-replicator", "status.currentMapping has kube-system, which spec.desiredMapping does not send to this provider"))
	})
	if got, err := reflects(t.Context()); got || err != nil {
		t.Errorf("rome reflects kube-system: %t, %v", got, err)
	}
	// The end of the test waits until the namespace is gone: the guard lets that pass.
	lab.Eventually(t, "milan answers the truth again", func(ctx context.Context) error { return lie(ctx, tell) })
}
