package plugin

import (
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
)

// NodeFilter decides which nodes may be in the pools of policies. It is asked about nodes that the
// policy selects by label, and can only leave nodes out.
//
// Filter must be pure: its answer depends on nothing but its arguments and what the factory was
// given, and it changes neither. Answers are remembered, and asked for again from time to time: an
// answer that differs is reported, and leaves the node out. Calls never overlap. A node of which the
// filter does not answer, or at which it panics, is left out.
type NodeFilter interface {
	// Name is the name that the filter is registered by.
	Name() string
	// Filter reports whether the node may be in the pool of the policy. If not, why says so in a few
	// words that continue "NODE is", such as "too hot". It is shown to admins, up to 200 bytes.
	Filter(p *Policy, n *Node) (ok bool, why string)
}

// ConsumerFilter decides which consumers policies are for. It is asked about consumers that the
// policy selects by ID or by label, and can only leave consumers out. It is not asked about
// overrides. Filter must be pure in the way of NodeFilter.
type ConsumerFilter interface {
	// Name is the name that the filter is registered by.
	Name() string
	// Filter reports whether the policy may be for the consumer. If not, why says so in a few words
	// that stand alone, such as "its contract has ended". It is shown to admins, up to 200 bytes. A
	// consumer of which Liqo has no object yet has no labels, and the ID that it claims.
	Filter(p *Policy, c *Consumer) (ok bool, why string)
}

// Policy is a valid ResourcePolicy. It is shared: a plugin must not change it.
type Policy struct {
	Name, UID  string
	Generation int64
	Spec       v1alpha1.ResourcePolicySpec
}

// Node is a Node of this cluster that is not virtual. It is shared: a plugin must not change it.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints are those that keep pods out, of the effects NoSchedule and NoExecute.
	Taints []corev1.Taint
	// Ready is false for a node that is cordoned too.
	Ready, Cordoned bool
	// Allocatable is what the node lists, before anything is subtracted.
	Allocatable corev1.ResourceList
}

// Consumer is a peer. It is shared: a plugin must not change it.
type Consumer struct {
	ClusterID string
	Labels    map[string]string
}
