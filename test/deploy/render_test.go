package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// rendered is the output of kubectl kustomize, object by object.
type rendered []*unstructured.Unstructured

// render renders config/default with these components.
func render(t *testing.T, components ...string) rendered {
	t.Helper()
	return renderAt(t, overlay(t, components...))
}

// renderBase renders config/base, which has no guards.
func renderBase(t *testing.T) rendered {
	t.Helper()
	return renderAt(t, filepath.Join(config, "base"))
}

// names returns the sorted kinds and names of the objects.
func names(objects rendered) []string {
	var all []string
	for _, u := range objects {
		all = append(all, u.GetKind()+"/"+u.GetName())
	}
	slices.Sort(all)
	return all
}

// renderedTexts are the outputs of kubectl kustomize by directory, because tests ask for the same ones
// many times. overlays are the directories that overlay has written, by their components.
var renderedTexts, overlays = map[string]string{}, map[string]string{}

// renderText renders a directory, which must not change after that.
func renderText(t *testing.T, dir string) string {
	t.Helper()
	if _, ok := renderedTexts[dir]; !ok {
		renderedTexts[dir] = mustKubectl(t, "kustomize", dir)
	}
	return renderedTexts[dir]
}

func renderAt(t *testing.T, dir string) rendered {
	t.Helper()
	objects, err := controlplane.ParseObjects([]byte(renderText(t, dir)))
	test.Must(t, err)
	return objects
}

// writeObjects writes the objects to a file in dir and returns its name. kubectl splits names at commas,
// which the directory of a subtest may have.
func writeObjects(t *testing.T, dir string, objects rendered) string {
	t.Helper()
	file := filepath.Join(dir, "list.yaml")
	var text strings.Builder
	for _, u := range objects {
		y, err := u.MarshalJSON()
		test.Must(t, err)
		text.WriteString(string(y) + "\n---\n")
	}
	test.Must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// overlay returns the directory of an overlay of config/default with these components, which is the same
// one in all tests.
func overlay(t *testing.T, components ...string) string {
	t.Helper()
	key := strings.Join(components, "+")
	if _, ok := overlays[key]; !ok {
		dir, err := os.MkdirTemp(cluster.dir, "overlay-") //nolint:usetesting // The next tests use it too.
		test.Must(t, err)
		overlays[key] = writeOverlay(t, dir, "", components...)
	}
	return overlays[key]
}

// overlayWith writes a new overlay with additional lines in the kustomization.
func overlayWith(t *testing.T, lines string, components ...string) string {
	t.Helper()
	return writeOverlay(t, t.TempDir(), lines, components...)
}

func writeOverlay(t *testing.T, dir, lines string, components ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	test.Must(t, err)
	root, err := filepath.Abs(config)
	test.Must(t, err)
	up, err := filepath.Rel(dir, root)
	test.Must(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%sresources:\n- %s/default\n", lines, up)
	if len(components) > 0 {
		b.WriteString("components:\n")
	}
	for _, c := range components {
		fmt.Fprintf(&b, "- %s/components/%s\n", up, c)
	}
	test.Must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(b.String()), 0o600))
	return dir
}

// components returns the names of all components.
func components(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(config, "components"))
	test.Must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// find decodes the object of this kind and name into a T.
func find[T any](t *testing.T, objects rendered, kind, name string) *T {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() != kind || u.GetName() != name {
			continue
		}
		into := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
		return into
	}
	t.Fatalf("no %s %s is rendered", kind, name)
	return nil
}

func deployment(t *testing.T, objects rendered) *appsv1.Deployment {
	t.Helper()
	return find[appsv1.Deployment](t, objects, "Deployment", "proffer")
}

// container returns the operator's container, which must be the pod's only one.
func container(t *testing.T, d *appsv1.Deployment) *corev1.Container {
	t.Helper()
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("the pod has %d containers, want 1", n)
	}
	return &d.Spec.Template.Spec.Containers[0]
}
