package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestLiqoFollowsAnOrchestration has the provider send the namespaces of rome on to oslo and bern. Liqo's
// own programs make the namespace that rome sends, map it, and place its pods. There are no kubelets:
// the test plays those of the virtual nodes, and Liqo on oslo and bern.
func TestLiqoFollowsAnOrchestration(t *testing.T) {
	withOrchestrator(t)
	for _, c := range []*lab.Cluster{oslo, bern} {
		newVirtualNode(t, c.ID)
	}
	// Rome's crd-replicator copies this one to the provider.
	sendNamespace(t, rome.Client, &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Name: provider.ID, Namespace: lab.TenantNamespace(provider.ID), Labels: map[string]string{
			consts.ReplicationRequestedLabel: "true", consts.ReplicationDestinationLabel: provider.ID, consts.RemoteClusterID: provider.ID,
		}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"team": "team-rome"}},
	}, "team-rome", rome.ID)
	// A consumer that does not use Liqo's crd-replicator can name another one in the label that Liqo on
	// the provider copies to the namespace.
	asRome, err := rome.At(t.Context(), provider)
	lab.Must(t, err)
	sendNamespace(t, asRome, &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Namespace: lab.TenantNamespace(rome.ID), Labels: map[string]string{
			consts.ReplicationOriginLabel: oslo.ID, consts.ReplicationStatusLabel: "true", consts.RemoteClusterID: rome.ID,
		}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"other": "other-oslo"}},
	}, "other-oslo", oslo.ID)

	orchestration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proffer.dev/v1alpha1", "kind": "Orchestration", "metadata": map[string]any{"name": "of-rome"},
		"spec": map[string]any{"consumers": map[string]any{"clusterIDs": []any{"rome", "oslo"}}, "count": int64(1)},
	}}
	create(t, orchestration)
	awaitMapped(t, "team-rome", bern.ID)
	t.Run("Liqo's webhook sends the pods to the chosen provider", func(t *testing.T) {
		lab.Eventually(t, "a new pod tolerates the virtual nodes", func(ctx context.Context) error { return placed(ctx, "team-rome", bern.ID) })
	})
	t.Run("a namespace with a forged label is not sent on", func(t *testing.T) {
		o := &offloadingv1beta1.NamespaceOffloading{}
		err := provider.Client.Get(t.Context(), client.ObjectKey{Namespace: "other-oslo", Name: consts.DefaultNamespaceOffloadingName}, o)
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("it has a NamespaceOffloading, or %v", err)
		}
	})
	t.Run("a change adds the new provider and drops the old one once the new one has the namespace", func(t *testing.T) {
		patch(t, provider, orchestration, "/spec/disabled", []any{map[string]any{"provider": bern.ID, "consumer": ""}})
		awaitMapped(t, "team-rome", bern.ID, oslo.ID)
		accept(t, oslo.ID, "team-rome")
		awaitMapped(t, "team-rome", oslo.ID)
	})
	t.Run("what a caller disables stays so after a restart, until a caller enables it", func(t *testing.T) {
		patch(t, provider, orchestration, "/spec/drainMinutes", 0)
		token := provider.NewToggler(t)
		provider.Toggle(t, token, oslo.ID, false)
		awaitMapped(t, "team-rome")
		lab.Must(t, provider.RestartOperator(t.Context(), "--cluster-id="+provider.ID))
		if all := provider.Toggle(t, token, bern.ID, false); !strings.Contains(all, `{"clusterID":"oslo","enabled":false`) {
			t.Errorf("after the restart: %s", all)
		}
		provider.Toggle(t, token, oslo.ID, true)
		awaitMapped(t, "team-rome", oslo.ID)
	})
	t.Run("with nothing chosen no cluster is selected", func(t *testing.T) {
		patch(t, provider, orchestration, "/spec/drainMinutes", 0)
		patch(t, provider, orchestration, "/spec/disabled", []any{
			map[string]any{"provider": bern.ID, "consumer": ""}, map[string]any{"provider": oslo.ID, "consumer": ""},
		})
		awaitMapped(t, "team-rome")
	})
	t.Run("a deleted Orchestration leaves no NamespaceOffloading", func(t *testing.T) {
		lab.Must(t, provider.Client.Delete(t.Context(), orchestration))
		accept(t, oslo.ID) // Oslo has deleted the namespace.
		lab.Eventually(t, "the NamespaceOffloading is gone", func(ctx context.Context) error {
			return isGone(ctx, provider, &offloadingv1beta1.NamespaceOffloading{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-rome", Name: consts.DefaultNamespaceOffloadingName},
			})
		})
	})
}

// withOrchestrator installs the component, with an operator that puts Orchestrations into force.
func withOrchestrator(t *testing.T) {
	t.Helper()
	// As the component says: first the operator without it, then its objects.
	lab.Cleanup(t, func(ctx context.Context) error {
		return errors.Join(provider.RestartOperator(ctx),
			provider.Do(ctx, "delete", "--ignore-not-found", "crd/orchestrations.proffer.dev", "crd/providerchoices.proffer.dev",
				"clusterrolebinding/proffer-orchestrator", "clusterrolebinding/proffer-plugin-toggle",
				"clusterrole/proffer-orchestrator", "clusterrole/proffer-provider-choice", "clusterrole/proffer-toggle", "clusterrole/proffer-toggle-reader",
				"clusterrole/proffer-orchestration-viewer", "clusterrole/proffer-orchestration-editor"))
	})
	withComponent(t, "orchestrator")
	lab.Must(t, provider.RestartOperator(t.Context(), "--cluster-id="+provider.ID))
}

// newVirtualNode makes a peer a provider of the provider: a VirtualNode, and the Node that its kubelet
// would make.
func newVirtualNode(t *testing.T, id string) {
	t.Helper()
	create(t, &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: "virtual-" + id, Namespace: lab.TenantNamespace(id), Labels: map[string]string{consts.RemoteClusterID: id}},
		Spec: offloadingv1beta1.VirtualNodeSpec{
			ClusterID: liqov1beta1.ClusterID(id), Labels: map[string]string{consts.RemoteClusterID: id},
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "none"},
		},
	})
	newNode(t, "virtual-"+id, amounts{"cpu": "8"})
	patch(t, provider, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "virtual-" + id}}, "/metadata/labels", map[string]string{
		consts.TypeLabel: consts.TypeNode, consts.RemoteClusterID: id,
	})
}

// sendNamespace creates a NamespaceMap until the end of the test, and waits for its namespace on the
// provider.
func sendNamespace(t *testing.T, as client.Client, m *offloadingv1beta1.NamespaceMap, remote, origin string) {
	t.Helper()
	lab.Must(t, as.Create(t.Context(), m))
	lab.Cleanup(t, func(ctx context.Context) error { return client.IgnoreNotFound(as.Delete(ctx, m)) })
	lab.Eventually(t, "Liqo makes the namespace "+remote, func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := provider.Client.Get(ctx, client.ObjectKey{Name: remote}, ns); err != nil {
			return err
		}
		return differ("its label", origin, ns.Labels[consts.RemoteClusterID])
	})
}

// mapOf returns Liqo's NamespaceMap of the provider for a peer.
func mapOf(ctx context.Context, id string) (*offloadingv1beta1.NamespaceMap, error) {
	m := &offloadingv1beta1.NamespaceMap{}
	return m, provider.Client.Get(ctx, client.ObjectKey{Namespace: lab.TenantNamespace(id), Name: id}, m)
}

// awaitMapped waits until Liqo maps a namespace to exactly these peers.
func awaitMapped(t *testing.T, namespace string, want ...string) {
	t.Helper()
	slices.Sort(want)
	lab.Eventually(t, fmt.Sprintf("Liqo maps %s to %v", namespace, want), func(ctx context.Context) error {
		var got []string
		for _, id := range []string{bern.ID, oslo.ID} {
			m, err := mapOf(ctx, id)
			if err != nil {
				return err
			}
			if remote, mapped := m.Spec.DesiredMapping[namespace]; mapped {
				if remote != namespace+"-"+provider.ID {
					return fmt.Errorf("it is called %s", remote)
				}
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it maps it to %v", got)
		}
		return nil
	})
}

// accept plays Liqo on a peer, and its crd-replicator: the peer has exactly these namespaces.
func accept(t *testing.T, id string, namespaces ...string) {
	t.Helper()
	lab.Eventually(t, id+" has the namespaces", func(ctx context.Context) error {
		m, err := mapOf(ctx, id)
		if err != nil {
			return err
		}
		m.Status.CurrentMapping = map[string]offloadingv1beta1.RemoteNamespaceStatus{}
		for _, name := range namespaces {
			m.Status.CurrentMapping[name] = offloadingv1beta1.RemoteNamespaceStatus{
				RemoteNamespace: name + "-" + provider.ID, Phase: offloadingv1beta1.MappingAccepted,
			}
		}
		return provider.Client.Status().Update(ctx, m)
	})
}

// placed creates a pod without storing it, and returns an error unless it has to run on this peer.
func placed(ctx context.Context, namespace, id string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause"}}},
	}
	if err := provider.Client.Create(ctx, pod, client.DryRunAll); err != nil {
		return err
	}
	tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(o corev1.Toleration) bool { return o.Key == consts.VirtualNodeTolerationKey })
	if !tolerates || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return errors.New("it stays on real nodes")
	}
	got := map[string]string{}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			got[e.Key] = string(e.Operator) + " " + strings.Join(e.Values, "+")
		}
	}
	want := map[string]string{consts.RemoteClusterID: "In " + id, consts.TypeLabel: "In " + consts.TypeNode}
	if !maps.Equal(got, want) {
		return fmt.Errorf("its affinity is %v", got)
	}
	return nil
}
