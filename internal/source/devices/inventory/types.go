package inventory

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Bounds of what is counted. An API server accepts at most 128 devices in a slice.
const (
	// MaxSlices is the number of slices of a pool.
	MaxSlices = 1024
	// MaxNodePools is the number of pools on a node, the first ones by name.
	MaxNodePools = 64
	// MaxClasses is the number of classes, the oldest ones.
	MaxClasses = 256
	// maxWhy bounds a reason, in bytes.
	maxWhy = 256
)

// PoolID identifies a pool of devices.
type PoolID struct{ Driver, Name string }

// String returns the identity as text.
func (p PoolID) String() string { return p.Driver + "/" + p.Name }

// Slice is a part of a pool.
type Slice struct {
	Name string
	Pool PoolID
	// Node is the node of all of its devices, empty if they may be of others.
	Node string
	// Generation is that of the pool, Slices the number of its slices in this generation.
	Generation, Slices int64
	// Grouped is set if a device consumes counters by compatibility groups.
	Grouped  bool
	Counters []CounterSet
	Devices  []Device
}

// CounterSet has what some devices share, by the name of the counter.
type CounterSet struct {
	Name   string
	Values Counters
}

// Counters are amounts in thousandths.
type Counters map[string]int64

// Device is one device of a slice.
type Device struct {
	Name string
	// Node is the only node that can use it, empty if there are others, or none.
	Node string
	// Resources are those whose class selects it, sorted. Failed are those whose selector fails on it.
	Resources, Failed []string
	// Tainted is set for a taint of the device that no pod tolerates.
	Tainted bool
	// Shareable is set if it can be allocated to several claims at once.
	Shareable bool
	Consumes  []CounterSet
}

// Implicit reports whether a resource is that of a class without an extendedResourceName.
func Implicit(resource string) bool {
	return strings.HasPrefix(resource, resourcev1.ResourceDeviceClassPrefix)
}

// Node holds what a pool has on one node.
type Node struct {
	// Amounts are the numbers of devices by resource.
	Amounts map[string]int64
	// Failed are the resources of which the node has nothing, whatever other pools have.
	Failed []string
}

// Place is a resource on a node. The node is empty for devices that are not of one.
type Place struct{ Node, Resource string }

// Uncounted says why a resource is not counted.
type Uncounted struct {
	Place
	Why string
}

// State is what claims and DeviceTaintRules say of the devices of a pool, by their name.
type State struct {
	// Allocated reports whether a device is allocated, other than for administrative access.
	Allocated func(device string) bool
	// Tainted reports whether a rule keeps pods from a device; nil for none.
	Tainted func(device string) bool
}

// Pool is a counted pool.
type Pool struct {
	// Incomplete says why nothing is allocated from the pool at the moment, empty for a complete pool.
	Incomplete string
	Nodes      map[string]Node
	// Places maps each device that counts, or could, to where and for what it does.
	Places map[string]Place
	// Uncounted is sorted by node and resource.
	Uncounted []Uncounted
}
