package peers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

const (
	// kubeconfigPrefix begins the name of the Secret with the identity of a ResourceSlice, whose name
	// follows: see github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge.
	kubeconfigPrefix = "kubeconfig-resourceslice-"
)

var (
	peerPath      = []string{"spec", "clusterID"}
	secretPath    = []string{"spec", "kubeconfigSecretRef", "name"}
	resourcesPath = []string{"status", "resources"}
)

// virtualNode is the name of a node, the cluster that gives it, and the group that it belongs to.
type virtualNode struct{ name, peer, group string }

// parseVirtualNode reads a VirtualNode. Its node has the same name. VirtualNodes that use one identity
// are under one Quota of the provider, so they are one group. The cluster comes from spec.clusterID,
// which this cluster writes: the provider chooses labels of the node, liqo.io/remote-cluster-id and
// liqo.io/type too, see MutateVirtualNode of
// github.com/liqotech/liqo/pkg/liqo-controller-manager/offloading/forge.
func parseVirtualNode(u *unstructured.Unstructured) virtualNode {
	n := virtualNode{name: u.GetName(), peer: kube.Text(u, peerPath...)}
	slice, secret := u.GetLabels()[liqo.ResourceSliceLabel], kube.Text(u, secretPath...)
	if of, is := strings.CutPrefix(secret, kubeconfigPrefix); is {
		slice = of
	}
	switch {
	case slice != "":
		n.group = u.GetNamespace() + "/" + slice
	case secret != "":
		n.group = u.GetNamespace() + "/Secret " + secret
	default:
		n.group = u.GetNamespace() + "/VirtualNode " + n.name
	}
	return n
}

// parseSlice reads what a ResourceSlice was given, nil if it has no answer yet. What is not a quantity
// counts as 0, and what is not the name of a resource not at all: a Node cannot have it.
func parseSlice(u *unstructured.Unstructured) capacity.Amounts {
	resources, found, err := unstructured.NestedMap(u.Object, resourcesPath...)
	if !found || err != nil {
		return nil
	}
	list := make(corev1.ResourceList, len(resources))
	for name, value := range resources {
		if len(validation.IsQualifiedName(name)) == 0 {
			list[corev1.ResourceName(name)], _ = quantityOf(value)
		}
	}
	return quantity.AmountsOf(list, quantity.Down).Bounded(capacity.MaxNodeResources, nil)
}

// quantityOf reads a quantity, which the schema allows to be an integer too, and reports whether the
// value is one. It is 0 if not.
func quantityOf(value any) (q resource.Quantity, ok bool) {
	switch value := value.(type) {
	case int64:
		return *resource.NewQuantity(value, resource.DecimalSI), true
	case string:
		if q, ok = quantity.Parse(value); ok {
			return q, true
		}
	}
	return resource.Quantity{}, false
}

var stripVirtualNode = kube.KeepFields(peerPath, secretPath)

// stripSlice keeps what parseSlice reads. The provider writes the status, so its size is bounded.
func stripSlice(obj any) (any, error) {
	kept, err := kube.KeepFields(resourcesPath)(obj)
	u, ok := kept.(*unstructured.Unstructured)
	if err != nil || !ok {
		return kept, err
	}
	resources, found, _ := unstructured.NestedMap(u.Object, resourcesPath...)
	if !found {
		return kept, nil
	}
	bounded := parseSlice(u)
	for name, value := range resources {
		_, valid := quantityOf(value)
		if _, keep := bounded[name]; !keep || !valid {
			delete(resources, name)
		}
	}
	return kept, unstructured.SetNestedMap(u.Object, resources, resourcesPath...)
}
