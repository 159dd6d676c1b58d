package podsecurity

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube/liqo"
)

func namespace(labels, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName("n")
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u
}

func TestOnlyNamespacesOfConsumersAreRaised(t *testing.T) {
	created := map[string]string{liqo.ManagedByMapAnnotation: "liqo-tenant-rome/milan"}
	with := func(level string) map[string]string {
		labels := map[string]string{liqo.RemoteClusterIDLabel: "rome"}
		if level != "" {
			labels[enforceLabel] = level
		}
		return labels
	}
	tenant := with("")
	tenant[liqo.TenantNamespaceLabel] = "true"
	for name, tc := range map[string]struct {
		labels, annotations  map[string]string
		baseline, restricted bool
	}{
		"without a level":              {with(""), created, true, true},
		"privileged":                   {with("privileged"), created, true, true},
		"a level that does not exist":  {with("Restricted"), created, true, true},
		"baseline":                     {with("baseline"), created, false, true},
		"restricted":                   {with("restricted"), created, false, false},
		"a tenant namespace":           {tenant, created, false, false},
		"not created by Liqo":          {with(""), nil, false, false},
		"without the ID of a consumer": {nil, created, false, false},
	} {
		for level, want := range map[Level]bool{"baseline": tc.baseline, "restricted": tc.restricted} {
			if got := level.lacks(namespace(tc.labels, tc.annotations)); got != want {
				t.Errorf("%s: raised to %s: %t, want %t", name, level, got, want)
			}
		}
	}
}

func TestOnlyLevelsThatProtectAreAccepted(t *testing.T) {
	for _, text := range []string{"privileged", "", "Baseline"} {
		if _, err := ParseLevel(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
