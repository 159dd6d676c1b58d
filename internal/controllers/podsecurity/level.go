// Package podsecurity sets the pod-security level of the namespaces that Liqo creates for consumers.
package podsecurity

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube/liqo"
)

// enforceLabel is the label from which the API server takes the level that pods must have, see
// https://kubernetes.io/docs/concepts/security/pod-security-admission.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// levels lists the levels of Kubernetes that protect the node, the weaker first.
var levels = []string{"baseline", "restricted"}

// Level is a level of Kubernetes' pod security.
type Level string

// ParseLevel reads a level that protects the node.
func ParseLevel(text string) (Level, error) {
	if !slices.Contains(levels, text) {
		return "", fmt.Errorf("%q is not a level: write baseline or restricted", text)
	}
	return Level(text), nil
}

// lacks reports whether a namespace is one that Liqo created for a consumer, and its level is weaker
// than this one. A value that Kubernetes does not know is weaker: it enforces nothing.
func (l Level) lacks(namespace *unstructured.Unstructured) bool {
	labels := namespace.GetLabels()
	_, tenant := labels[liqo.TenantNamespaceLabel]
	_, created := namespace.GetAnnotations()[liqo.ManagedByMapAnnotation]
	return labels[liqo.RemoteClusterIDLabel] != "" && !tenant && created && namespace.GetDeletionTimestamp() == nil &&
		slices.Index(levels, labels[enforceLabel]) < slices.Index(levels, string(l))
}
