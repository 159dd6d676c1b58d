package operator

import (
	"testing"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// The operator has only the rights of the default manifests and of the component.
func TestTheOperatorSendsPodsOnWithTheComponent(t *testing.T) {
	withLiqo(t)
	for _, name := range []string{"namespaceoffloadings", "virtualnodes"} {
		kubetest.Keep(t, controlplane.LiqoCRD(t, "offloading.liqo.io_"+name+".yaml"))
	}
	config, err := kubetest.Cluster(t).UserConfig("operator-with-catalog")
	test.Must(t, err)
	installRoles(t, "../../config/rbac/role.yaml", "../../config/components/orchestrator/role.yaml")
	for name, labels := range map[string]map[string]string{
		"liqo-tenant-lima": {"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "lima"},
		"team-lima":        {"liqo.io/remote-cluster-id": "lima"},
	} {
		kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{
			"liqo.io/managed-by-namespace-map": "liqo-tenant-lima/turin", "liqo.io/original-name": "team",
		}}})
	}
	kubetest.Create(t, kubetest.OfLiqo(t, "offloading.liqo.io/v1beta1", "VirtualNode", &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: "milan", Namespace: metav1.NamespaceDefault}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"},
	}))
	kubetest.Create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	kubetest.Create(t, &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	launchOperator(t, config, func(p *parts) { p.OrchestrateAs = "turin" })

	u := &unstructured.Unstructured{}
	u.SetAPIVersion("offloading.liqo.io/v1beta1")
	u.SetKind("NamespaceOffloading")
	test.Eventually(t, func() string {
		err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "team-lima", Name: "offloading"}, u)
		if err != nil {
			return err.Error()
		}
		return ""
	})
	if owner := u.GetAnnotations()["proffer.dev/orchestration"]; owner != "all" {
		t.Errorf("it is of %q", owner)
	}
}
