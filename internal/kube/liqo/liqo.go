// Package liqo names the kinds of Liqo that the operator reads and writes, and what Liqo sets on
// objects. The operator uses none of Liqo's Go packages: the packages of v0 cannot be linked together
// with a current apimachinery.
package liqo

import "k8s.io/apimachinery/pkg/runtime/schema"

// What Liqo sets on objects, see github.com/liqotech/liqo/pkg/consts of v1.2.0.
const (
	// RemoteClusterIDLabel has the ID of another cluster: of the provider on a virtual node, of the
	// consumer on a tenant namespace and on a namespace that a consumer sent.
	RemoteClusterIDLabel = "liqo.io/remote-cluster-id"
	// TenantNamespaceLabel is on the namespace of a peer, in which Liqo replicates the peer's objects.
	TenantNamespaceLabel = "liqo.io/tenant-namespace"
	// RemoteTenantNamespaceAnnotation is on the Secret of an identity, and has the name of the tenant
	// namespace at the provider.
	RemoteTenantNamespaceAnnotation = "liqo.io/remote-tenant-namespace"

	// ManagedByMapAnnotation is on a namespace that a consumer sent, and has the NamespaceMap as
	// namespace/name. OriginalNameAnnotation has the namespace's name at the consumer.
	ManagedByMapAnnotation = "liqo.io/managed-by-namespace-map"
	OriginalNameAnnotation = "liqo.io/original-name"

	// NodeTypeLabel is VirtualNodeType on a virtual node, which has a taint with the key
	// VirtualNodeTaint. The pod webhook adds the toleration to the pods that may go there, see
	// github.com/liqotech/liqo/pkg/webhooks/pod.
	NodeTypeLabel    = "liqo.io/type"
	VirtualNodeType  = "virtual-node"
	VirtualNodeTaint = "virtual-node.liqo.io/not-allowed"
	// StorageProvisioner is the provisioner of the StorageClass whose volumes are on other clusters.
	StorageProvisioner = "liqo.io/storage"
	// ResourceSliceLabel is on a VirtualNode that Liqo made, and names the ResourceSlice.
	ResourceSliceLabel = "liqo.io/resourceslice-name"

	// ReplicatedLabel is on an object of another cluster, and OriginIDLabel has the ID of that cluster.
	// ReplicationLabel is on an object that is replicated to another cluster.
	ReplicatedLabel  = "liqo.io/replicated"
	OriginIDLabel    = "liqo.io/originID"
	ReplicationLabel = "liqo.io/replication"

	// OriginLabel, OriginLabelV0 up to v0.10, is on an offloaded pod, and has the ID of the consumer.
	OriginLabel   = "offloading.liqo.io/origin"
	OriginLabelV0 = "virtualkubelet.liqo.io/origin"
	// CreatorLabel is on an offloaded pod, and has the identity that created it. Liqo v1 has an identity
	// for each ResourceSlice, and its webhook sets the label.
	CreatorLabel = "liqo.io/creator-user"

	// ComponentLabel is VirtualKubelet on the Deployment of a virtual kubelet.
	ComponentLabel = "offloading.liqo.io/component"
	VirtualKubelet = "virtual-kubelet"
)

// Liqo's kinds.
var (
	ResourceSlices = v1beta1("authentication", "resourceslices")
	Tenants        = v1beta1("authentication", "tenants")
	Identities     = v1beta1("authentication", "identities")

	ForeignClusters = v1beta1("core", "foreignclusters")
	// ForeignClustersV0 is the resource of Liqo up to v0.10.
	ForeignClustersV0 = schema.GroupVersionResource{
		Group: "discovery.liqo.io", Version: "v1alpha1", Resource: "foreignclusters",
	}

	Connections = v1beta1("networking", "connections")

	VirtualNodes         = v1beta1("offloading", "virtualnodes")
	NamespaceMaps        = v1beta1("offloading", "namespacemaps")
	ShadowPods           = v1beta1("offloading", "shadowpods")
	Quotas               = v1beta1("offloading", "quotas")
	NamespaceOffloadings = v1beta1("offloading", "namespaceoffloadings")
)

// NamespaceOffloading is the kind of NamespaceOffloadings.
const NamespaceOffloading = "NamespaceOffloading"

func v1beta1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group + ".liqo.io", Version: "v1beta1", Resource: resource}
}
