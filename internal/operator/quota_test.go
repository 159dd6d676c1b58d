package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// quota creates the Quota that Liqo makes from an answer.
func (y *tenancy) quota(slice, cpu string) *unstructured.Unstructured {
	y.t.Helper()
	user := liqo.SliceUser(slice, y.id)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"user": user, "limitsEnforcement": "None", "resources": map[string]any{"cpu": cpu, "memory": "8Gi"},
	}}}
	u.SetGroupVersionKind(liqo.Quotas.GroupVersion().WithKind("Quota"))
	u.SetNamespace(y.namespace.Name)
	u.SetName(user)
	return kubetest.Create(y.t, u)
}

// Liqo accepts pods up to the Quota, which follows an answer when Liqo has read it.
func TestNobodyIsGrantedWhatAQuotaStillAllows(t *testing.T) {
	installSliceCRDs(t)
	kubetest.Keep(t, controlplane.LiqoCRD(t, "offloading.liqo.io_quotas.yaml"))
	goldNode(t, "gold-1", "cpu", "8", "memory", "64Gi")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome, oslo := newTenancy(t, "rome"), newTenancy(t, "oslo")
	mine := rome.ask("mine", nodestest.List("cpu", "8", "memory", "8Gi"))
	awaitAnswer(t, mine, "Accepted Incomplete cpu=8,memory=8Gi")
	quota := rome.quota("mine", "8")
	changeRequest(t, mine, "cpu", "1", "memory", "8Gi")
	awaitAnswer(t, mine, "Accepted Incomplete cpu=1,memory=8Gi")
	own := oslo.ask("own", nodestest.List("cpu", "7", "memory", "8Gi"))
	awaitAnswer(t, own, "Denied Denied")
	o.awaitCaughtUp()
	awaitAnswer(t, own, "Denied Denied")

	kubetest.Edit(t, quota, func(o client.Object) { kubetest.SetField(o, "1", "spec", "resources", "cpu") }, kubetest.WriteSpec)
	awaitAnswer(t, own, "Accepted Incomplete cpu=7,memory=8Gi")
}
