package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
)

// NodeFilter decides which nodes may be in the pools of policies. It is asked about nodes that the
// policy selects by label, and can only leave nodes out.
//
// Filter must be pure: its answer depends on nothing but its arguments and what the factory was
// given, and it changes neither. Answers are remembered: a node is asked about again when it or the
// policy changes. Filter must be safe for concurrent use: a simulation may call it while an evaluation
// does. Neither calls it twice at once. A node at which the filter panics is left out. One that it has
// not answered about in time keeps its last answer, is left out if it has none, and is asked about again
// a second later. A call that takes longer than 100 ms counts as not answered, and the filter is asked
// nothing else until it returns.
type NodeFilter interface {
	// Name is the name that the filter is registered by.
	Name() string
	// Filter reports whether the node may be in the pool of the policy. If not, why says so in a few
	// words, such as "too hot". It is shown to admins, up to 200 bytes.
	Filter(p *Policy, n *Node) (ok bool, why string)
}

// ConsumerFilter decides which consumers policies are for. It is asked about consumers that the policy
// selects by ID or by label, and can only leave consumers out. It is not asked about overrides. Filter
// must be pure, like NodeFilter's.
type ConsumerFilter interface {
	// Name is the name that the filter is registered by.
	Name() string
	// Filter reports whether the policy may be for the consumer. If not, why says so in a few words,
	// such as "its contract has ended". It is shown to admins, up to 200 bytes. All consumers that are
	// not known yet are asked about as one, which has an empty ClusterID and no labels.
	Filter(p *Policy, c *Consumer) (ok bool, why string)
}

// SliceFilter decides which requests of ResourceSlices policies grant. It can only refuse requests: one
// that it refuses is answered as if slices.filter of the policy were false. Filter must be pure, like
// NodeFilter's. Until it has answered about what a slice asks for now, the slice keeps what it has and is
// granted nothing more.
type SliceFilter interface {
	// Name is the name that the filter is registered by.
	Name() string
	// Filter reports whether the policy may grant the request. If not, why says so in a few words, such
	// as "its project has ended". It is shown to admins of the provider, up to 200 bytes. The consumer
	// reads slices.filterMessage of the policy.
	Filter(p *Policy, r *Request) (ok bool, why string)
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
	// Taints lists the taints that keep pods out, of the effects NoSchedule and NoExecute.
	Taints []corev1.Taint
	// Ready is false for a node that is cordoned too.
	Ready, Cordoned bool
	// Allocatable holds the amounts that the node lists, before anything is subtracted.
	Allocatable corev1.ResourceList
}

// Consumer is a peer. It is shared: a plugin must not change it.
type Consumer struct {
	ClusterID string
	Labels    map[string]string
}

// Request is the request of a ResourceSlice. It is shared: a plugin must not change it.
type Request struct {
	Consumer Consumer
	// Namespace and Name identify the slice.
	Namespace, Name string
	// Labels holds the labels of the slice. Its consumer writes them.
	Labels map[string]string
	// Resources holds the amounts that the slice asks for, and the defaults of the policy for what it
	// omits. For a slice whose request is no longer valid it holds the present grant.
	Resources corev1.ResourceList
	// Age is the time from the creation of the slice to the last full minute.
	Age time.Duration
}
