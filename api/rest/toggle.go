package rest

import "time"

// TogglePath is the path to list, disable and enable providers of a broker.
const TogglePath = "/api/toggle"

// ConsumerTogglePath is the path to list, disable and enable providers for one consumer, so that RBAC can
// give a caller one consumer. It takes the parameters of TogglePath, except ToggleConsumer.
const ConsumerTogglePath = "/api/consumers/{clusterID}/toggle"

// Parameters of a change at TogglePath.
const (
	ToggleID            = "id"
	ToggleEnable        = "enable"
	ToggleConsumer      = "consumer"
	ToggleOrchestration = "orchestration"
)

// Toggle is a change of which providers Orchestrations may choose.
type Toggle struct {
	// ID is the cluster ID of the provider.
	ID string
	// Enable removes the entry from spec.disabled, otherwise it is added. With spec.defaultDisabled, it also
	// adds an entry to spec.enabled, which otherwise is removed.
	Enable bool
	// Consumer is the cluster ID of the consumer that the change is for, empty for every consumer.
	Consumer string
	// Orchestration is the name of the Orchestration to change, empty for all.
	Orchestration string
}

// Provider is a provider that an Orchestration names, lists in its status, or disables.
type Provider struct {
	ClusterID string `json:"clusterID"`
	// Enabled is false if at least one Orchestration disables the provider by default or for every consumer. It says
	// nothing about single consumers, nor about whether the provider qualifies.
	Enabled bool `json:"enabled"`
	// Orchestrations lists the Orchestrations that know the provider, by name.
	Orchestrations []ProviderIn `json:"orchestrations"`
}

// ProviderIn is a provider as one Orchestration has it.
type ProviderIn struct {
	Name string `json:"name"`
	// Mode is Active or DryRun.
	Mode string `json:"mode"`
	// Enabled is false if the Orchestration disables the provider for every consumer, or by default.
	Enabled bool `json:"enabled"`
	// DefaultDisabled is spec.defaultDisabled.
	DefaultDisabled bool `json:"defaultDisabled,omitempty"`
	// Disabled are the entries of spec.disabled for the provider, that for every consumer first.
	Disabled []Disabled `json:"disabled,omitempty"`
	// EnabledFor are the entries of spec.enabled for the provider, that for every consumer first.
	EnabledFor []Disabled `json:"enabledFor,omitempty"`
	// Chosen and Rejected are the consumers for which the provider is chosen, or not, by the latest
	// status. It may be older than Disabled.
	Chosen   []ChosenFor   `json:"chosen,omitempty"`
	Rejected []RejectedFor `json:"rejected,omitempty"`
	// Notes say what namespaces wait for at the provider.
	Notes []ProviderNote `json:"notes,omitempty"`
}

// Disabled is an entry of spec.disabled or spec.enabled.
type Disabled struct {
	// Consumer is the consumer that the entry is for. Absent: every consumer.
	Consumer string `json:"consumer,omitempty"`
	// Toggle is set if TogglePath has made the entry, and can remove it.
	Toggle bool `json:"toggle"`
	// Managers are the field managers of others that have written the entry, such as kubectl. Who wrote
	// it has to remove it.
	Managers []string `json:"managers,omitempty"`
}

// ChosenFor is a consumer for which the provider is chosen.
type ChosenFor struct {
	Consumer string `json:"consumer"`
	// ConsumerChose is set if a ProviderChoice of the consumer counts.
	ConsumerChose bool `json:"consumerChose,omitempty"`
	// Score is that among the providers that qualify, 0 to 1000.
	Score int32 `json:"score"`
	// Since is the time at which the provider was chosen.
	Since time.Time `json:"since"`
	// Because has the score by KPI.
	Because string `json:"because,omitempty"`
}

// RejectedFor is a consumer for which the provider is not chosen, with the first reason that applies.
type RejectedFor struct {
	Consumer string `json:"consumer"`
	// ConsumerChose is set if a ProviderChoice of the consumer counts.
	ConsumerChose bool `json:"consumerChose,omitempty"`
	// By is who rejects it: Admin, Orchestration, Consumer or Rank.
	By      string `json:"by,omitempty"`
	Because string `json:"because"`
}

// ProviderNote says what a namespace waits for.
type ProviderNote struct {
	Consumer  string `json:"consumer"`
	Namespace string `json:"namespace"`
	// Until is the latest end of the wait.
	Until   *time.Time `json:"until,omitempty"`
	Because string     `json:"because"`
}
