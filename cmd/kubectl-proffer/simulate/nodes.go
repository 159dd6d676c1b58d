package simulate

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// addNodesForm is the form of --add-nodes.
const addNodesForm = "COUNT=RESOURCE=AMOUNT[,RESOURCE=AMOUNT...][,label=KEY=VALUE...], " +
	"such as 3=cpu=8,memory=32Gi,pods=110,label=pool=gold"

// parseAddNodes parses a value of --add-nodes.
func parseAddNodes(text string) (rest.AddedNodes, error) {
	none := rest.AddedNodes{}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("--add-nodes=%s: %s: write %s", text, fmt.Sprintf(format, args...), addNodesForm)
	}
	count, list, _ := strings.Cut(text, "=")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > rest.MaxAddedNodes {
		return none, wrong("%q is not a number of nodes from 1 to %d", count, rest.MaxAddedNodes)
	}
	nodes := rest.AddedNodes{Count: n, Allocatable: v1alpha1.Quantities{}}
	for item := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(item, "=")
		switch {
		case !ok || name == "":
			return none, wrong("%q is neither an amount nor a label", item)
		case name == "label":
			key, label, ok := strings.Cut(value, "=")
			if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(label)) > 0 {
				return none, wrong("%q is not a label", value)
			}
			if nodes.Labels == nil {
				nodes.Labels = map[string]string{}
			}
			nodes.Labels[key] = label
		default:
			amount := v1alpha1.ParseQuantity(value)
			if amount.Problem(corev1.ResourceName(name)) != "" {
				return none, wrong("%q is not an amount of %s", value, name)
			}
			nodes.Allocatable[corev1.ResourceName(name)] = amount
		}
	}
	if len(nodes.Allocatable) == 0 {
		return none, wrong("nodes without an amount change nothing")
	}
	return nodes, nil
}
