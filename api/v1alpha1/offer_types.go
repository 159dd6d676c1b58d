package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyOffer defines what a policy offers to each of its consumers. Exactly one of fixed, nodes, peers
// and external is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.fixed), has(self.nodes), has(self.peers), has(self.external)].filter(set, set).size() == 1",message="set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)"
// +kubebuilder:validation:XValidation:rule="!(has(self.fixed) || has(self.external)) || !has(self.reserve)",message="reserve applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out"
// +kubebuilder:validation:XValidation:rule="!(has(self.fixed) || has(self.external)) || !has(self.percent)",message="percent applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out"
// +kubebuilder:validation:XValidation:rule="!(has(self.fixed) || has(self.external)) || !has(self.percentages)",message="percentages apply to nodes and peers: with fixed, leave them out and write the amounts to offer; with external, leave them out"
// +kubebuilder:validation:XValidation:rule="!(has(self.fixed) || has(self.external)) || !has(self.maxPercent)",message="maxPercent applies to nodes and peers: with fixed and external, use max"
// +kubebuilder:validation:XValidation:rule="!(has(self.fixed) || has(self.external)) || !has(self.maxPercentages)",message="maxPercentages apply to nodes and peers: with fixed and external, use max"
type PolicyOffer struct {
	// Fixed are the amounts that each consumer is offered, independent of the cluster's capacity.
	// Two consumers are offered twice as much.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Fixed Quantities `json:"fixed,omitempty"`

	// Nodes offers a share of the capacity of some nodes, as one pool for all consumers of the
	// policy. Each consumer is offered what it holds of the pool, plus what no consumer holds.
	// +optional
	Nodes *Nodes `json:"nodes,omitempty"`

	// Peers offers a share of what other clusters give to this one, as one pool for all consumers of the policy. The
	// rules of nodes apply to the virtual nodes of these clusters. What a consumer gives itself is never offered back
	// to it.
	// +optional
	Peers *Peers `json:"peers,omitempty"`

	// External offers each consumer what an existing resource monitor of Liqo v0.6 to v0.10 answers for it, such as
	// one of Liqo's resource plugins.
	// +optional
	External *External `json:"external,omitempty"`

	// Reserve is kept for the provider: it is subtracted from the sum over the nodes, before percent
	// is applied. Only with nodes and peers. Nothing is reserved of resources that it omits.
	// +optional
	Reserve Quantities `json:"reserve,omitempty"`

	// Percent is the share of the nodes' capacity, minus the reserve, that makes up the pool: 1 to
	// 1000. The result is rounded down. Above 100 it overcommits. Only with nodes and peers. Default: 100.
	// +optional
	Percent *Percent `json:"percent,omitempty"`

	// Percentages are shares by resource name, 1 to 1000, which replace percent for these names.
	// Only with nodes and peers.
	// +optional
	Percentages Percentages `json:"percentages,omitempty"`

	// Max limits the offer to each consumer, by resource. Resources that it omits have no limit.
	// +optional
	Max Quantities `json:"max,omitempty"`

	// MaxPercent limits the offer to each consumer to this share of the pool, in percent, 1 to 100. It follows the
	// pool, and is rounded down. If max has the resource too, the smaller one counts. Only with nodes and peers.
	// Default: no limit.
	// +optional
	MaxPercent *Share `json:"maxPercent,omitempty"`

	// MaxPercentages are shares by resource name, 1 to 100, which replace maxPercent for these names. Only
	// with nodes and peers.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	MaxPercentages Shares `json:"maxPercentages,omitempty"`

	// Resources restricts the offer to these resources, even if fixed, max or an override has others. A resource that
	// was offered before and is not in the list is offered as 0. Default: with fixed, the resources of fixed; with
	// nodes and peers, all that the nodes list, but those that no pod asks for, such as attachable-volumes-*, only if
	// the policy names them; with external, all that are answered.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceName `json:"resources,omitempty"`
}

// NodeCount defines which capacity of a node counts.
//
// +kubebuilder:validation:Enum=Free;Allocatable
type NodeCount string

const (
	// NodeCountFree counts what the requests of this cluster's own pods leave free on each node.
	// Pods of consumers are not subtracted: they are the consumers' use of the pool.
	NodeCountFree NodeCount = "Free"
	// NodeCountAllocatable counts all that the nodes can allocate, including what is in use. It is
	// meant for nodes that are dedicated to consumers.
	NodeCountAllocatable NodeCount = "Allocatable"
)

// Nodes defines the nodes of a pool, and which of their capacity counts. A node that is not Ready,
// is cordoned, or is virtual (a node of Liqo that represents another cluster) never counts.
type Nodes struct {
	// Selector selects nodes by their labels. Omitted or empty: every node. A selector that does not
	// parse makes the policy Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Filter is an expression in CEL that is true for the nodes to offer. It is evaluated on usable nodes that the
	// selector matches, when the policy or the node changes. Its variable is node, with name, labels (texts by key)
	// and allocatable (quantities by resource name). A node that it fails on, such as one without the label, is left
	// out. Omitted: every such node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Filter string `json:"filter,omitempty" text:"node filter"`

	// Count defines which capacity of the nodes counts. Free (default): what this cluster's own pods leave free, less
	// what is left on nodes that take no more pods. Allocatable: all of it, also what is in use.
	// +optional
	// +kubebuilder:default=Free
	Count NodeCount `json:"count,omitempty"`

	// Tolerations admit nodes with taints. A node counts only if they tolerate all of its NoSchedule and NoExecute
	// taints; PreferNoSchedule taints have no effect. The consumer's pods need their own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Peers defines the virtual nodes of a pool, and which of their capacity counts. A virtual node that is
// not Ready or is cordoned never counts, nor does one with a NoSchedule or NoExecute taint besides
// Liqo's own. Liqo cordons the node of a VirtualNode that it drains. The virtual nodes of one
// ResourceSlice together count no more than the slice was given.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterIDs) || !has(self.selector)",message="set clusterIDs or selector, not both"
type Peers struct {
	// Selector selects virtual nodes by their labels. Omitted or empty: every virtual node. A selector
	// that does not parse makes the policy Invalid.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.size() <= 64",message="a selector has at most 64 matchLabels: write fewer"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.size() <= 64",message="a selector has at most 64 matchExpressions: write fewer"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// ClusterIDs are the IDs of the clusters whose virtual nodes count; at most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	ClusterIDs []ClusterID `json:"clusterIDs,omitempty"`

	// Count defines which capacity of the virtual nodes counts. Free (default): what this cluster's own pods leave
	// free. Allocatable: all of it, also what is in use.
	// +optional
	// +kubebuilder:default=Free
	Count NodeCount `json:"count,omitempty"`

	// Depth is how far from its owner capacity may be resold. A virtual node counts if its label proffer.dev/depth is
	// below it. A node without the label has depth 0: the peer owns it. Answers to ResourceSlices of the class carry
	// the label, with this depth, so that clusters that resell to each other in a circle do not count the same
	// capacity again. 1 to 8. Default: 1, only what peers have themselves.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Depth *int32 `json:"depth,omitempty"`
}

// ExternalForm is a form of the protocol between Liqo v0.x and an external resource monitor.
//
// +kubebuilder:validation:Enum=Pools;Flat
type ExternalForm string

const (
	// ExternalFormPools is the form of Liqo v0.9 and v0.10: an answer has pools.
	ExternalFormPools ExternalForm = "Pools"
	// ExternalFormFlat is the form of Liqo v0.6 to v0.8: an answer has amounts.
	ExternalFormFlat ExternalForm = "Flat"
)

// OnFailure defines what is offered while an external source is unavailable.
//
// +kubebuilder:validation:Enum=Keep;Zero
type OnFailure string

const (
	// OnFailureKeep keeps offering what the source answered last.
	OnFailureKeep OnFailure = "Keep"
	// OnFailureZero offers 0 of what the source answered last.
	OnFailureZero OnFailure = "Zero"
)

// External is an external resource monitor of Liqo v0.6 to v0.10: a gRPC server that answers how much
// of this cluster a consumer may use. Each replica of the operator connects to it, as Liqo would, and
// reads what it answers for each known consumer that the policy applies to, and for the empty cluster
// ID. The answer for the empty ID is offered to consumers without an answer of their own. An answer
// with an amount that is negative or not an amount, without any amount, or with more than 64 names is
// refused. Before its first answer nothing is offered.
type External struct {
	// Address is where the monitor listens: a host name or IP address, and a port. The operator's pod connects to it.
	// +required
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$')",message="an address is a host and a port: write it as in liqo-fixed-resources-plugin.liqo:6001, 10.0.0.7:6001 or [fd00::7]:6001"
	Address string `json:"address" text:"host"`

	// Form is the form of the protocol that the monitor serves: Pools (default), of Liqo v0.9 and
	// v0.10, or Flat, of Liqo v0.6 to v0.8. A monitor cannot tell them apart, and neither can Proffer.
	// Of an answer with several pools, the one whose pool_prefix or pool_name is the class of the
	// policy counts.
	// +optional
	// +kubebuilder:default=Pools
	Form ExternalForm `json:"form,omitempty"`

	// TimeoutSeconds is how long the operator waits for each answer: 1 to 30. Default: 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// OnFailure defines what is offered while the monitor is unavailable: reading from it has failed for 10 seconds.
	// Keep (default): what it answered last. Zero: 0 of that, within reclaim.
	// +optional
	// +kubebuilder:default=Keep
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// TLS makes the operator connect with TLS. Omitted: plaintext, as Liqo does.
	// +optional
	TLS *ExternalTLS `json:"tls,omitempty"`
}

// ExternalTLS defines how the certificate of an external resource monitor is verified.
type ExternalTLS struct {
	// CABundle holds, in PEM, the certificates of the authorities that sign the monitor's.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle is certificates in PEM: write them from -----BEGIN CERTIFICATE----- on"
	CABundle string `json:"caBundle"`

	// ServerName is the DNS name or IP address that the certificate must be for. Default: the host of
	// address.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9:]([-A-Za-z0-9.:]*[A-Za-z0-9:])?$')",message="serverName is a DNS name or an IP address: write the one in the certificate, such as plugin.example.com"
	ServerName string `json:"serverName,omitempty"`
}
