package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Kubernetes defines these resource names without a domain, and the names with one of the prefixes.
// Its API server refuses pods that request another name without a domain.
var (
	standardNames = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceStorage,
		corev1.ResourceEphemeralStorage,
	}
	standardPrefixes = []string{corev1.ResourceHugePagesPrefix, corev1.ResourceAttachableVolumesPrefix}
)

// meantNames maps the prefixes of frequent misspellings to the correct name. No prefix is a prefix
// of another one.
var meantNames = map[string]string{
	"cp": "cpu", "core": "cpu", "vcpu": "cpu", "mem": "memory", "ram": "memory", "pod": "pods", "stor": "storage",
	"eph": "ephemeral-storage", "disk": "ephemeral-storage", "huge": "hugepages-2Mi", "gpu": "nvidia.com/gpu",
	"nvidia": "nvidia.com/gpu",
}

const anyStandardName = "cpu, memory, pods, storage, ephemeral-storage or hugepages-2Mi"

// NameProblem returns the message of config/admission for a resource name without a domain that
// Kubernetes does not define, and "" for every other name.
func NameProblem(name corev1.ResourceName) string {
	text := string(name)
	if strings.Contains(text, "/") || slices.Contains(standardNames, name) ||
		slices.ContainsFunc(standardPrefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
		return ""
	}
	meant := anyStandardName
	for start, name := range meantNames {
		if strings.HasPrefix(strings.ToLower(text), start) {
			meant = name
		}
	}
	return fmt.Sprintf("write %s; a resource of your own has a domain, such as example.com/%s", meant, text)
}
