package rest

import (
	"time"

	"proffer.dev/proffer/api/v1alpha1"
)

// Change is the body of POST /simulate, at most MaxChange bytes: what to change of what was
// evaluated.
type Change struct {
	// Apply are ResourcePolicies as the API server would store them: with its defaults, by its rules.
	Apply []v1alpha1.ResourcePolicy `json:"apply,omitempty"`
	// Delete are names of ResourcePolicies.
	Delete []string `json:"delete,omitempty"`
	// Drain are names of nodes that leave all pools. Their pods count nowhere.
	Drain []string `json:"drain,omitempty"`
	// AddNodes are nodes that join.
	AddNodes []AddedNodes `json:"addNodes,omitempty"`
}

// SimulateTimeout bounds a simulation, and before that the time in which its body arrives.
const SimulateTimeout = 20 * time.Second

// The bounds of a Change. They bound the time of one evaluation, and its memory.
const (
	// MaxChange bounds the body of POST /simulate in bytes.
	MaxChange = 1 << 20
	// MaxApplied bounds Change.Apply, and MaxOverrides the overrides of all of its policies.
	MaxApplied   = 32
	MaxOverrides = 512
	// MaxNamedConsumers bounds the cluster IDs in all of Change.Apply.
	MaxNamedConsumers = 4096
	// MaxSelectorTerms bounds, in all of Change.Apply, the labels, expressions and values of selectors,
	// with the tolerations.
	MaxSelectorTerms = 4096
	// MaxFilters bounds the different filters in all of Change.Apply: each is evaluated on every node, slice or
	// consumer.
	MaxFilters = 3
	// MaxChangeResources bounds the different resources that a Change names.
	MaxChangeResources = 32
	// MaxAddedNodes bounds the sum of AddedNodes.Count, and MaxAddedKinds the length of Change.AddNodes.
	MaxAddedNodes = 10_000
	MaxAddedKinds = 64
)

// The bounds of a Simulation: Truncated names a list that was cut.
const (
	// MaxOfferChanges bounds Simulation.Offers.
	MaxOfferChanges = 10_000
	// MaxSliceChanges bounds Simulation.Slices.
	MaxSliceChanges = 10_000
	// MaxEvictions bounds Simulation.Evicted.
	MaxEvictions = 1_000
)

// AddedNodes are nodes that are alike, Ready and without taints.
type AddedNodes struct {
	Count       int                 `json:"count"`
	Allocatable v1alpha1.Quantities `json:"allocatable"`
	Labels      map[string]string   `json:"labels,omitempty"`
}

// Simulation is the outcome of a Change once everything that follows from it has happened.
type Simulation struct {
	// Evaluated identifies the evaluation of Now.
	Evaluated
	// Problems are why policies of Change.Apply are invalid, by name. An invalid policy takes no part.
	Problems map[string][]string `json:"problems,omitempty"`
	// Offers are the offers that would change, by consumer, class and resource. Anyone stands for the
	// default offer, and has no consumer.
	Offers []OfferChange `json:"offers,omitempty"`
	// Policies lists the policies whose condition Ready would have another reason.
	Policies []PolicyChange `json:"policies,omitempty"`
	// Slices lists the slices whose grants would change.
	Slices []SliceChange `json:"slices,omitempty"`
	// Evicted are consumers whose pods would be evicted, with the class and the cause.
	Evicted []Eviction `json:"evicted,omitempty"`
	// Unknown says what was not considered, because this world does not hold it or no policy selects it.
	Unknown []string `json:"unknown,omitempty"`
	// Truncated names lists that were cut.
	Truncated []string `json:"truncated,omitempty"`
}

// OfferChange is one amount that would change. Now or Then is absent for not offered.
type OfferChange struct {
	Consumer string `json:"consumer,omitempty"`
	Anyone   bool   `json:"anyone,omitempty"`
	Class    string `json:"class"`
	Resource string `json:"resource"`
	Now      string `json:"now,omitempty"`
	Then     string `json:"then,omitempty"`
	// Because explains Then.
	Because string `json:"because"`
}

// PolicyChange is a policy with another reason. Now is absent for a new policy, Then for a deleted
// one.
type PolicyChange struct {
	Policy  string `json:"policy"`
	Now     string `json:"now,omitempty"`
	Then    string `json:"then,omitempty"`
	Message string `json:"message,omitempty"`
}

// SliceChange is a ResourceSlice with another grant.
type SliceChange struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Consumer  string  `json:"consumer"`
	Class     string  `json:"class"`
	Now       Amounts `json:"now,omitempty"`
	Then      Amounts `json:"then,omitempty"`
	Because   string  `json:"because"`
}

// Eviction is a consumer whose pods would be evicted.
type Eviction struct {
	Consumer string `json:"consumer"`
	Class    string `json:"class"`
	// Pods is the number of its pods.
	Pods    int    `json:"pods"`
	Because string `json:"because"`
}
