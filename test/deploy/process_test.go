package deploy

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test/process"
)

// operator is a process that runs the built operator.
type operator struct{ *process.Process }

// start runs the operator as the ServiceAccount of config/default. It ends with the test.
func start(t *testing.T, args []string) *operator {
	t.Helper()
	return startIn(t, namespace, args)
}

// startIn runs the operator in the namespace that an overlay installs into.
func startIn(t *testing.T, namespace string, args []string) *operator {
	t.Helper()
	return startProgram(t, process.Program(t), namespace, args)
}

// startProgram is startIn with another build of the operator.
func startProgram(t *testing.T, program, namespace string, args []string) *operator {
	t.Helper()
	// The next test has another cluster, so it must not find the record of this one.
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "proffer-offered"}})
	// A pod reads its own namespace from a file; a process needs the flag.
	args = append(slices.Clone(args), "--leader-election-namespace="+namespace)
	kubeconfig := controlplane.KubeconfigFileOf(t, controlplane.AccountConfig(t, cluster.rest, namespace, "proffer"))
	return &operator{process.StartTest(t, program, args, "KUBECONFIG="+kubeconfig)}
}

// requireAllowed fails the test if the API server rejected a request of the operator for lack of
// permission.
func (o *operator) requireAllowed(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(o.Log()) {
		lower := strings.ToLower(line)
		if strings.Contains(lower, "forbidden") || strings.Contains(lower, "unauthorized") {
			t.Errorf("the API server rejected a request of the operator: %s", line)
		}
	}
}

// tokenOf returns a token of the service account, as a pod would get it.
func tokenOf(t *testing.T, namespace, account string) string {
	t.Helper()
	return controlplane.AccountConfig(t, cluster.rest, namespace, account).BearerToken
}
