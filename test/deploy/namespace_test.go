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
	"proffer.dev/proffer/test"
)

// TestAnOverlayCanChooseTheNamespace compares everything rendered as text, to find each mention of
// the namespace: in subjects, params, arguments and rules.
func TestAnOverlayCanChooseTheNamespace(t *testing.T) {
	monitoringCRDs(t) // IsObjectNamespaced needs the CRDs.
	text := func(objects rendered) string {
		var b strings.Builder
		for _, u := range objects {
			// kustomize sets a namespace on unknown cluster-scoped kinds. The API server drops it.
			if clusterScoped(t, u) {
				u.SetNamespace("")
			}
			y, err := u.MarshalJSON()
			test.Must(t, err)
			b.Write(y)
		}
		return b.String()
	}
	all := components(t)
	want := strings.ReplaceAll(text(render(t, all...)), namespace, "other")
	if n := strings.Count(want, `"namespace":"other"`); n < 15 {
		t.Fatalf("the namespace occurs only %d times in the manifests: the test checks the wrong text", n)
	}
	lines := "namespace: other\n"
	if diff := cmp.Diff(want, text(renderAt(t, overlayWith(t, lines, all...)))); diff != "" {
		t.Errorf("the manifests for another namespace differ (-want +got):\n%s", diff)
	}
}

// The permissions in the other namespace suffice, and the admission policies work there too.
func TestTheOperatorWorksInAnotherNamespace(t *testing.T) {
	const other = "deploy-test-other"
	p := newPeering(t)
	dir := overlayWith(t, "namespace: "+other+"\n", "served-classes", "slice-pod-guard")
	applyOverlay(t, dir)
	applyAgain(t, dir, len(render(t, "served-classes", "slice-pod-guard")))

	o := startIn(t, other, container(t, deployment(t, renderAt(t, dir))).Args)
	o.AwaitReady(t)
	applyPolicy(t, "gold", `{class: gold, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}}}`)

	// The operator and the admission policies use the list of classes in that namespace.
	test.Eventually(t, func() error { return createSlice(t, p.rome, aSlice("s", "gold")) })
	test.Check(t, notServed("platinum").of(tryCreate(t, p.rome, aSlice("another", "platinum"))))
	p.awaitGuards(t)

	// The guards permit the operator's answer to the slice, and its Grant is in that namespace.
	tenant(t)
	authenticate(t, p, "s")
	awaitGranted(t, p, "s", 4)
	var grants v1alpha1.GrantList
	test.Must(t, cluster.client.List(t.Context(), &grants))
	if len(grants.Items) != 1 || grants.Items[0].Namespace != other {
		t.Errorf("the grants are %+v, want one in %s", grants.Items, other)
	}
	for i := range grants.Items {
		remove(t, &grants.Items[i])
	}
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "proffer-offered"}})
	for _, list := range []string{"proffer-served-classes", "proffer-placements"} {
		remove(t, &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: list}})
	}
	o.requireAllowed(t)
}

// liqoCRD installs a CRD of Liqo v1 until the end of the test.
func liqoCRD(t *testing.T, file string) {
	t.Helper()
	installCRD(t, controlplane.LiqoCRD(t, file))
}

// tenant creates an active Tenant of rome.
func tenant(t *testing.T) {
	t.Helper()
	liqoCRD(t, "authentication.liqo.io_tenants.yaml")
	create(t, &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenantNamespace, Name: "rome", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"},
		},
		Spec: authv1beta1.TenantSpec{
			ClusterID: corev1beta1.ClusterID("rome"), TenantCondition: authv1beta1.TenantConditionActive,
		},
	})
}
