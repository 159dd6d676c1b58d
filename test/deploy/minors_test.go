package deploy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"proffer.dev/proffer/hack/controlplane"
)

// withoutAdmissionPolicies is the component for Kubernetes before 1.30.
const withoutAdmissionPolicies = "kubernetes-1.25-to-1.29"

// minorFile returns the go.mod file in test/kubernetes for a minor version.
func minorFile(minor uint) string {
	if minor == 25 {
		return "go.mod"
	}
	return filepath.Join("minors", fmt.Sprintf("1.%d.mod", minor))
}

// problemsOn returns the problems that the code of a minor version of Kubernetes finds in the
// manifests of an overlay.
func problemsOn(t *testing.T, minor uint, overlay string) []string {
	t.Helper()
	manifests := mustKubectl(t, "kustomize", overlay)
	cmd := exec.CommandContext(t.Context(), "go", "run", "-modfile="+minorFile(minor), ".")
	cmd.Dir, cmd.Stdin = filepath.Join("..", "kubernetes"), strings.NewReader(manifests)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) > 0 {
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, exit.Stderr)
	}
	return nil
}

// TestEveryKubernetesAcceptsTheManifests uses the code of each minor version from 1.25 to the one
// before the test's control plane. The manifests have all components that the version supports,
// except those with kinds of the Prometheus operator, which that code does not know.
func TestEveryKubernetesAcceptsTheManifests(t *testing.T) {
	without := func(excluded ...string) []string {
		excluded = append(excluded, "alerts", "servicemonitor")
		return slices.DeleteFunc(components(t), func(c string) bool { return slices.Contains(excluded, c) })
	}
	plain, newer := overlay(t), overlay(t, without(withoutAdmissionPolicies)...)
	older := overlay(t, without("provider-guard", "served-classes", "slice-pod-guard")...)
	for minor := uint(25); minor < version.MustParseGeneric(controlplane.KubernetesVersion).Minor(); minor++ {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			file := minorFile(minor)
			text, err := os.ReadFile(filepath.Join("..", "kubernetes", file))
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("k8s.io/apiextensions-apiserver v0.%d.", minor); !strings.Contains(string(text), want) {
				t.Fatalf("%s does not require %s", file, want)
			}
			if minor >= 30 {
				for _, problem := range problemsOn(t, minor, newer) {
					t.Error(problem)
				}
				return
			}
			for _, problem := range problemsOn(t, minor, older) {
				t.Error(problem)
			}
			if got := problemsOn(t, minor, plain); len(got) == 0 {
				t.Error("the default manifests are accepted: the component is no longer needed")
			}
		})
	}
}
