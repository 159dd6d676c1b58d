package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// The API server evaluates the rules of the CRD and of config/admission, so every test of this
// package uses a real one.
var (
	cluster *controlplane.Cluster
	api     client.Client
)

var (
	crdDirectory = filepath.Join("..", "..", "config", "crd", "bases")
	// Those of the component orchestrator.
	orchestrationCRD  = filepath.Join("..", "..", "config", "components", "orchestrator", "crd.yaml")
	providerChoiceCRD = filepath.Join("..", "..", "config", "components", "orchestrator", "providerchoice_crd.yaml")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // Otherwise controller-runtime logs a warning.
	test.Main(m, startControlPlane)
}

func startControlPlane(ctx context.Context) (err error) {
	cluster, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs: []string{crdDirectory, orchestrationCRD, providerChoiceCRD}, Progress: os.Stderr,
	})
	if err != nil {
		return fmt.Errorf("start a control plane: %w", err)
	}
	test.AtEnd(cluster.Stop)
	if err := cluster.InstallPolicyRules(ctx); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	api, err = client.New(cluster.Config, client.Options{Scheme: scheme})
	return err
}

// policy returns a ResourcePolicy with the given spec, which is YAML.
func policy(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: %s}\nspec:\n  %s\n",
		name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
}

// object returns the object that the YAML describes. Like kubectl, it keeps integers as integers.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return u
}

// strict makes the API server refuse unknown keys, as kubectl does.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// create creates the object, with strict, and deletes it when the test ends.
func create(t *testing.T, obj client.Object) {
	t.Helper()
	test.Must(t, api.Create(t.Context(), obj, strict))
	nodestest.DeleteAfter(t, api, obj)
}
