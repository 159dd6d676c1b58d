package deploy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
)

// TestAnOverlayCanChooseTheNamespace compares all that is rendered, as text, so that no mention of the namespace is left behind: in a
// subject, a param, an argument or a rule.
func TestAnOverlayCanChooseTheNamespace(t *testing.T) {
	mustKubectl(t, "apply", "-f", "testdata/servicemonitor-crd.yaml") // Whether a kind has a namespace is known of kinds that exist.
	mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/servicemonitors.monitoring.coreos.com")
	text := func(objects rendered) string {
		var b strings.Builder
		for _, u := range objects {
			// kustomize gives a namespace to kinds that it does not know to have none. The API server drops it.
			if clusterScoped(t, u) {
				u.SetNamespace("")
			}
			y, err := u.MarshalJSON()
			must(t, err)
			b.Write(y)
		}
		return b.String()
	}
	all := components(t)
	want := strings.ReplaceAll(text(render(t, all...)), namespace, "other")
	if n := strings.Count(want, `"namespace":"other"`); n < 15 {
		t.Fatalf("the namespace is named %d times in what config/default renders: the test looks at the wrong thing", n)
	}
	lines := "namespace: other\n"
	if diff := cmp.Diff(want, text(renderAt(t, overlayWith(t, lines, all...)))); diff != "" {
		t.Errorf("in another namespace this differs (-want +got):\n%s", diff)
	}
}

// TestTheOperatorWorksInAnotherNamespace with what its account is granted there, and so do the admission policies.
func TestTheOperatorWorksInAnotherNamespace(t *testing.T) {
	const other = "deploy-test-other"
	p := newPeering(t)
	dir := overlayWith(t, "namespace: "+other+"\n", "served-classes")
	withOverlay(t, dir)
	applyAgain(t, dir, len(render(t, "served-classes")))

	o := startIn(t, other, container(t, deployment(t, renderAt(t, dir))).Args)
	o.awaitReady(t)
	file := writeFixed(t, "gold", `cpu: 4, memory: 4Gi, pods: 10`)
	mustKubectl(t, "apply", "-f", file)
	t.Cleanup(func() { cleanup(t, "delete", "-f", file) })

	// The list of classes is written, and read, in the namespace.
	eventually(t, func() error { return makeSlice(t, p.rome, aSlice("s", "gold")) })
	if err := notServed("platinum").of(try(t, p.rome, aSlice("another", "platinum"))); err != nil {
		t.Error(err)
	}
	p.awaitGuards(t)

	// The slice is answered, which the guards let the operator do, and put on record.
	tenant(t)
	authenticate(t, p, "s")
	awaitGranted(t, p, "s", 4)
	var grants v1alpha1.GrantList
	must(t, cluster.client.List(t.Context(), &grants))
	if len(grants.Items) != 1 || grants.Items[0].Namespace != other {
		t.Errorf("the grants are %+v, want one in %s", grants.Items, other)
	}
	for i := range grants.Items {
		remove(t, &grants.Items[i])
	}
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "proffer-offered"}})
	o.requireAllowed(t)
}

// liqoCRD installs a CRD of Liqo v1 for the time of the test.
func liqoCRD(t *testing.T, file string) {
	t.Helper()
	crd := controlplane.LiqoCRD(t, file)
	mustKubectl(t, "apply", "-f", crd)
	mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "-f", crd)
	t.Cleanup(func() { cleanup(t, "delete", "-f", crd) })
}

// tenant makes the Tenant of rome, which is active.
func tenant(t *testing.T) {
	t.Helper()
	liqoCRD(t, "authentication.liqo.io_tenants.yaml")
	create(t, &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "rome", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"}},
		Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID("rome"), TenantCondition: authv1beta1.TenantConditionActive},
	})
}
