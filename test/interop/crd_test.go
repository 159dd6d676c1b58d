package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// TestKubernetesOfLiqosTimeTakesTheCRD asks what kube-apiserver asks before it takes a CRD, in the version of Kubernetes that Liqo v0.9.4
// was built with.
func TestKubernetesOfLiqosTimeTakesTheCRD(t *testing.T) {
	if errs := validateCRD(t); len(errs) == 0 {
		t.Error("it is taken as it is: the component kubernetes-1.33 has lost its reason")
	}
	for _, err := range validateCRD(t, "kubernetes-1.33", "kubernetes-1.29") {
		t.Error(err)
	}
}

// validateCRD renders config/default with the components and validates its CRDs.
func validateCRD(t *testing.T, components ...string) field.ErrorList {
	t.Helper()
	// kustomize wants relative paths.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(dir, filepath.Dir(filepath.Dir(programs.crds)))
	if err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("resources: [%s/default]\ncomponents:\n", up)
	for _, c := range components {
		overlay += fmt.Sprintf("- %s/components/%s\n", up, c)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs field.ErrorList
	found := 0
	for object := range strings.SplitSeq(kubectl(t, "", "kustomize", dir), "\n---\n") {
		var v1 apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(object), &v1); err != nil {
			t.Fatal(err)
		}
		if v1.Kind != "CustomResourceDefinition" {
			continue
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
		v1.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
		var crd apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
			t.Fatal(err)
		}
		errs = append(errs, validation.ValidateCustomResourceDefinition(context.Background(), &crd)...)
		found++
	}
	if found != 2 {
		t.Fatalf("%d CRDs are rendered", found)
	}
	return errs
}
