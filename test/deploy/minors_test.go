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
	"proffer.dev/proffer/test"
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

// check returns the problems that the code of a minor version of Kubernetes finds in manifests.
func check(t *testing.T, minor uint, manifests string) ([]string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "-modfile="+minorFile(minor), ".")
	cmd.Dir, cmd.Stdin = filepath.Join("..", "kubernetes"), strings.NewReader(manifests)
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return nil, err
	case exit.ExitCode() == 1 && len(out) > 0: // go run exits with 1 whatever the status of the program.
		return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
	default:
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, exit.Stderr)
	}
}

// problemsOn returns the problems of the manifests of an overlay.
func problemsOn(t *testing.T, minor uint, overlay string) []string {
	t.Helper()
	problems, err := check(t, minor, renderText(t, overlay))
	test.Must(t, err)
	return problems
}

// minors returns the versions to check. The code of each takes minutes to compile. Always checked are
// 1.25 and 1.30, the first that must accept what is for them and their successors, and 1.29, the last
// that refuses the default manifests. What an API server accepts, its successors accept too, unless they
// remove it, and then the test's control plane, the newest, refuses it. PROFFER_ALL_MINORS=1, which
// `make test-old-kubernetes` sets, adds the versions between.
func minors() []uint {
	if os.Getenv("PROFFER_ALL_MINORS") == "" {
		return []uint{25, 29, 30}
	}
	var all []uint
	for minor := uint(25); minor < version.MustParseGeneric(controlplane.KubernetesVersion).Minor(); minor++ {
		all = append(all, minor)
	}
	return all
}

// TestEveryKubernetesAcceptsTheManifests uses the code of minor versions from 1.25 to the one before
// the test's control plane. The manifests have all components that the version supports, except those
// with kinds of the Prometheus operator, which that code does not know.
func TestEveryKubernetesAcceptsTheManifests(t *testing.T) {
	without := func(excluded ...string) []string {
		excluded = append(excluded, "alerts", "servicemonitor")
		return slices.DeleteFunc(components(t), func(c string) bool { return slices.Contains(excluded, c) })
	}
	plain, newer := overlay(t), overlay(t, without(withoutAdmissionPolicies)...)
	older := overlay(t, without("provider-guard", "served-classes", "slice-pod-guard")...)
	for _, minor := range minors() {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			file := minorFile(minor)
			text := test.Read(t, filepath.Join("..", "kubernetes", file))
			if want := fmt.Sprintf("k8s.io/apiextensions-apiserver v0.%d.", minor); !strings.Contains(text, want) {
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

// widgets is a CRD with a place for another line of the items' schema.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          names:
            type: array
            items:
              type: string
              %s
              x-kubernetes-validations: [{rule: "self.matches('^a+$')", message: only a}]
`

func TestTheCodeOfAMinorVersionFindsEachKindOfProblem(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{
			"a field of a later version",
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {unhealthyPodEvictionPolicy: AlwaysAllow}",
			`unknown field "spec.unhealthyPodEvictionPolicy"`,
		},
		{
			"a kind of a later version",
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy",
			`no kind "ValidatingAdmissionPolicy"`,
		},
		{
			"a rule that may cost too much", fmt.Sprintf(widgets, ""),
			"widgets.example.com: spec.validation.openAPIV3Schema.properties[names].items." +
				"x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget",
		},
		{
			"no problem",
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {maxUnavailable: 1}\n---" + strings.Replace(
				fmt.Sprintf(widgets, "maxLength: 10"), "type: array", "type: array\n            maxItems: 10", 1),
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems, err := check(t, 25, tc.text)
			test.Must(t, err)
			if got := strings.Join(problems, "\n"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInputWithoutObjectsIsAnError(t *testing.T) {
	if _, err := check(t, 25, ""); err == nil || !strings.Contains(err.Error(), "reading object 1: EOF") {
		t.Errorf("got %v", err)
	}
}
