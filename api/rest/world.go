package rest

import (
	"time"

	"proffer.dev/proffer/api/v1alpha1"
)

// World is the answer to GET /snapshot: everything that an evaluation depends on, to be rehearsed
// elsewhere. It is written and read as a stream: lists come in this order.
type World struct {
	// Version is WorldVersion.
	Version int `json:"version"`
	Evaluated
	// Proffer is the version of the operator.
	Proffer string `json:"proffer"`
	// Filters are the names of the filters in Go that the operator asks. They cannot be asked elsewhere.
	Filters  []string                  `json:"filters,omitempty"`
	Policies []v1alpha1.ResourcePolicy `json:"policies"`
	// Consumers lists the consumers that Liqo's objects describe.
	Consumers []WorldConsumer `json:"consumers"`
	// Offers are the published offers: what was offered before matters for what is held.
	Offers []WorldOffer `json:"offers"`
	// Levels are the amounts at which pools are given out, by policy, for policies that have levels.
	Levels map[string]Amounts `json:"levels,omitempty"`
	// Unavailable has, by policy, why its external source is unavailable.
	Unavailable map[string]string `json:"unavailable,omitempty"`
	// Answers holds the answers of external sources. They cannot be asked elsewhere.
	Answers []WorldAnswer `json:"answers,omitempty"`
	// Slices are the requests of all ResourceSlices with what counts as granted.
	Slices []WorldSlice `json:"slices"`
	// NodeGroups lists the groups of virtual nodes.
	NodeGroups []WorldNodeGroup `json:"nodeGroups,omitempty"`
	Nodes      []WorldNode      `json:"nodes"`
	Pods       []WorldPod       `json:"pods"`
}

// WorldVersion is the version of the format. A tool refuses other versions.
const WorldVersion = 1

// WorldConsumer is a consumer.
type WorldConsumer struct {
	ClusterID string            `json:"clusterID"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// WorldOffer holds the amounts offered to one consumer in a class.
type WorldOffer struct {
	ClusterID string `json:"clusterID"`
	// Anyone is set for the default offer, which has no ClusterID.
	Anyone bool `json:"anyone,omitempty"`
	// Departed is the time at which a consumer was last known that is still owed zeros, absent for a
	// known one.
	Departed *time.Time `json:"departed,omitempty"`
	// None is set for a consumer that is known and offered nothing: the other fields are absent.
	None      bool    `json:"none,omitempty"`
	Class     string  `json:"class"`
	Policy    string  `json:"policy"`
	Override  *int    `json:"override,omitempty"`
	Resources Amounts `json:"resources,omitempty"`
	// LastPolicy is the policy that decided last, and Reclaim its reclaim.
	LastPolicy string           `json:"lastPolicy,omitempty"`
	Reclaim    v1alpha1.Reclaim `json:"reclaim,omitempty"`
	// Moved is the time of the last change to the amounts of a withdrawn offer, absent for one in
	// force.
	Moved *time.Time `json:"moved,omitempty"`
}

// WorldAnswer is the answer of a policy's external source for a consumer.
type WorldAnswer struct {
	Policy    string `json:"policy"`
	ClusterID string `json:"clusterID"`
	// Anyone is set for the answer that is for consumers without one of their own, which has no ClusterID.
	Anyone    bool    `json:"anyone,omitempty"`
	Resources Amounts `json:"resources"`
	// Stale is set if reading it again has failed for too long.
	Stale bool `json:"stale,omitempty"`
	// Kept is set for an answer from before the source was asked about the consumer.
	Kept bool `json:"kept,omitempty"`
	// Time is the time of the last reading, absent for what the policy offered before the operator
	// started.
	Time *time.Time `json:"time,omitempty"`
}

// WorldSlice is a ResourceSlice as decided on.
type WorldSlice struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID tells apart slices of one name, and what one slice holds in several classes.
	UID      string    `json:"uid"`
	Consumer string    `json:"consumer"`
	Class    string    `json:"class"`
	Created  time.Time `json:"created"`
	Asked    Amounts   `json:"asked,omitempty"`
	// Labels holds the labels of the slice, which its consumer writes.
	Labels map[string]string `json:"labels,omitempty"`
	// Accepted reports whether the slice is accepted. Granted may be empty then, too.
	Accepted bool    `json:"accepted,omitempty"`
	Granted  Amounts `json:"granted,omitempty"`
	// Used is the use of the slice's pods at any time since the grant.
	Used Amounts `json:"used,omitempty"`
	// Recorded holds the amounts on record in the class, if they differ from Granted. They count until an answer
	// is written.
	Recorded Amounts `json:"recorded,omitempty"`
	// Falling is the part of a fixed grant that counts until the next answer is written, and is gone then.
	Falling Amounts `json:"falling,omitempty"`
	// Nodes holds the labels by which the request narrows the nodes of its seat. Creator is the name by which pods refer
	// to the slice.
	Nodes   map[string]string `json:"nodes,omitempty"`
	Creator string            `json:"creator,omitempty"`
	// GrantedBy is the policy that Granted came from, or several of which it may have come, with a comma between
	// them. Seat is the node from which each of them granted it, with commas likewise, empty if none granted it from
	// one node. GrantedIn is the class at that time, and Reclaim the policy's reclaim.
	GrantedBy string           `json:"grantedBy,omitempty"`
	Seat      string           `json:"seat,omitempty"`
	GrantedIn string           `json:"grantedIn,omitempty"`
	Reclaim   v1alpha1.Reclaim `json:"reclaim,omitempty"`
	// Fixed is set if the grant cannot change, Frozen if nothing new is granted, Invalid if the request
	// is not valid.
	Fixed   bool `json:"fixed,omitempty"`
	Frozen  bool `json:"frozen,omitempty"`
	Invalid bool `json:"invalid,omitempty"`
	// Problem says what is wrong with a request that is not valid.
	Problem string `json:"problem,omitempty"`
}

// WorldNode is a node.
type WorldNode struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []string          `json:"taints,omitempty"`
	State  string            `json:"state"`
	// Deleted is set for a node that is being deleted.
	Deleted     bool    `json:"deleted,omitempty"`
	Allocatable Amounts `json:"allocatable"`
	// Grace says what the node has lost that still counts in the fields above, and until when, absent for
	// a node that counts as it is.
	Grace string `json:"grace,omitempty"`
	// Peer describes the cluster behind a virtual node, absent for a node of this cluster's own.
	Peer *WorldPeer `json:"peer,omitempty"`
}

// WorldPeer is the cluster that a virtual node stands for.
type WorldPeer struct {
	// ClusterID is empty if it is not known.
	ClusterID string `json:"clusterID"`
	// Depth is 0 for the cluster's own capacity; for resold capacity it is the depth of the reseller.
	// It is absent if it cannot be read.
	Depth *int `json:"depth,omitempty"`
}

// WorldNodeGroup is virtual nodes that have together what one ResourceSlice was given.
type WorldNodeGroup struct {
	// Name is the name of the ResourceSlice, with its namespace.
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"`
	// ClusterID is the ID of the cluster that gives it, absent if it is not known.
	ClusterID string `json:"clusterID,omitempty"`
	// Given is absent if it is not known.
	Given *Amounts `json:"given,omitempty"`
}

// WorldPod is a pod that is not finished.
type WorldPod struct {
	UID string `json:"uid"`
	// Node is empty for a consumer's pod that is not bound yet.
	Node string `json:"node"`
	// Consumer is empty for a pod of the provider's own.
	Consumer string  `json:"consumer,omitempty"`
	Creator  string  `json:"creator,omitempty"`
	Requests Amounts `json:"requests"`
	// Claim is set for the devices that are allocated to a ResourceClaim: this is no pod, and counts as none.
	Claim bool `json:"claim,omitempty"`
}
