package helm

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/hack/controlplane"
)

const (
	root  = "../.."
	chart = root + "/charts/proffer"
	// namespace is that of config/default.
	namespace = "proffer-system"
)

// withImage sets the only value that is required.
var withImage = []string{"--set", "image.repository=registry.example.com/proffer"}

// runHelm runs a command of Helm and returns its output.
func runHelm(args ...string) (string, error) {
	var out bytes.Buffer
	command, err := helmcmd.NewRootCmd(&out, args, func(bool) {})
	if err != nil {
		return "", err
	}
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	err = command.Execute()
	return out.String(), err
}

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runHelm(args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// template renders the chart with an image and these arguments of `helm template`.
func template(t *testing.T, args ...string) objects {
	t.Helper()
	return decode(t, mustHelm(t, templateArgs(args...)...))
}

// templateArgs returns the arguments of `helm template` for the Kubernetes version of the tests.
// Without a version, Helm would use a fixed one of its own.
func templateArgs(args ...string) []string {
	return slices.Concat([]string{"template", "proffer", chart, "--namespace", namespace, "--kube-version", controlplane.KubernetesVersion}, withImage, args)
}

// objects maps KIND/NAMESPACE/NAME to the manifest.
type objects map[string]*unstructured.Unstructured

func decode(t *testing.T, text string) objects {
	t.Helper()
	parsed, err := controlplane.ParseObjects([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	all := objects{}
	for _, u := range parsed {
		k := key(u)
		if all[k] != nil {
			t.Fatalf("%s is rendered twice", k)
		}
		all[k] = u
	}
	return all
}

func key(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, "/")
}
