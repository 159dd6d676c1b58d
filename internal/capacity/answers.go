package capacity

import (
	"maps"
	"slices"
	"time"
)

// Monitor says how to reach an external resource monitor of Liqo v0.x, and which of its pools counts.
// Policies with equal Monitors share one source.
type Monitor struct {
	// Address is a host and a port.
	Address string
	// Flat selects the form of the protocol without pools.
	Flat bool
	// Timeout bounds the wait for an answer.
	Timeout time.Duration
	// CABundle is in PEM, empty for plaintext. ServerName is the name in the certificate, empty for the
	// host of Address.
	CABundle, ServerName string
	// Class chooses between several pools. It is empty in the flat form.
	Class string
}

// Answers holds the answers of a monitor. It is immutable.
type Answers struct {
	// Distinct are the different answers. Many consumers may have the same.
	Distinct []Answer
	// Of maps each consumer that was answered for to its answer. That of the empty ID is the default
	// answer, for consumers without one of their own.
	Of map[string]Answered
	// Asked is set once it is known whom to ask about. Awaited lists, sorted, the consumers among them
	// that the monitor has not answered for, with the empty ID for the default answer.
	Asked   bool
	Awaited []string
	// Problem is why the monitor is unavailable, empty if it is not.
	Problem string
}

// Answer holds the amounts that a monitor answers for some consumers. All amounts are at least 0.
type Answer struct {
	Amounts Amounts
	// Stale is set if reading it again has failed for too long.
	Stale bool
}

// Answered refers to an answer.
type Answered struct {
	// Index is the index in Answers.Distinct.
	Index int
	// At is the time of the last reading. It is zero for what the policy offered before this process
	// started.
	At time.Time
	// Kept is set for an answer from before the monitor was asked about the consumer.
	Kept bool
}

// For returns the answer for a consumer: its own, or the default answer, or neither.
func (a *Answers) For(id string) (Answered, bool) {
	if own, ok := a.Of[id]; ok {
		return own, true
	}
	of, ok := a.Of[""]
	return of, ok
}

// Names returns the resources, sorted, of all answers.
func (a *Answers) Names() []string {
	all := Amounts{}
	for _, d := range a.Distinct {
		maps.Copy(all, d.Amounts)
	}
	return slices.Sorted(maps.Keys(all))
}
