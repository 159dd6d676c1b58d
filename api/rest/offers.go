// Package rest is the JSON that the operator serves over HTTPS, on the port of its metrics. The
// operator and kubectl-proffer share it.
//
//	GET  /offers             Offers: every known consumer, and the default offer
//	GET  /offers/{clusterID} Consumer: one consumer, in detail
//	GET  /overview           Overview: what needs somebody
//	GET  /snapshot           World: everything that was evaluated
//	POST /simulate           Change in, Simulation out; nothing is written
//
// Before the first evaluation every answer is 503. An error is a Kubernetes Status.
//
// The JSON is stable: fields are added, never renamed or removed within v1alpha1. Amounts are
// Kubernetes quantities in canonical form.
package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/v1alpha1"
)

// The paths that the operator serves.
const (
	OffersPath   = "/offers"
	SnapshotPath = "/snapshot"
	SimulatePath = "/simulate"
)

// TokenHeader may carry the bearer token instead of Authorization, which the API server removes from
// requests that it proxies to a Service.
const TokenHeader = "X-Proffer-Token"

// VersionHeader has the version of the operator, also in answers before the first evaluation.
const VersionHeader = "X-Proffer-Version"

// Amounts are quantities by resource.
type Amounts map[string]resource.Quantity

// Of returns the amount of a resource, nil if it is absent.
func (a Amounts) Of(name string) *resource.Quantity {
	if q, ok := a[name]; ok {
		return &q
	}
	return nil
}

// OrZero is Of for amounts that are left out if they are 0.
func (a Amounts) OrZero(name string) *resource.Quantity {
	return new(a[name])
}

// UnmarshalJSON implements json.Unmarshaler. It refuses texts that Kubernetes would take hours to
// parse, such as 1e-999999999: whoever sent them could stop the reader.
func (a *Amounts) UnmarshalJSON(text []byte) error {
	var checked map[string]v1alpha1.Quantity
	if err := json.Unmarshal(text, &checked); err != nil {
		return err
	}
	*a = nil
	if checked != nil {
		*a = make(Amounts, len(checked))
	}
	for name, q := range checked {
		if q.Written != "" {
			return fmt.Errorf("%.64q of %.64q is not an amount: %s", q.Written, name, v1alpha1.AmountNotAQuantity)
		}
		(*a)[name] = q.Quantity
	}
	return nil
}

// Evaluated identifies the evaluation of an answer.
type Evaluated struct {
	// Revision counts the evaluations of the answering replica since it started.
	Revision uint64 `json:"revision"`
	// Time is the start of the evaluation.
	Time time.Time `json:"time"`
}

// Offers is the answer to GET /offers.
type Offers struct {
	Evaluated
	Consumers []Consumer `json:"consumers"`
	// Anyone is the default offer: what any other consumer is offered.
	Anyone []Offer `json:"anyone"`
	// Policies are all ResourcePolicies, by name.
	Policies []Policy `json:"policies"`
}

// Consumer is the answer to GET /offers/{clusterID}, and one of the consumers of Offers.
type Consumer struct {
	ClusterID string `json:"clusterID"`
	// Known is false for a consumer that gets the default offer because no object describes or names it.
	Known  bool    `json:"known"`
	Offers []Offer `json:"offers"`
	// Because says why there are no offers. It is absent if there are offers.
	Because string `json:"because,omitempty"`
	// Details are set in the answer to GET /offers/{clusterID}.
	Details *Details `json:"details,omitempty"`
}

// Offer holds the amounts offered in one class.
type Offer struct {
	// Class is empty for the unnamed pool.
	Class string `json:"class"`
	// Policy is the policy that decides, empty for a withdrawn offer.
	Policy string `json:"policy"`
	// Override is the index of the override that matched, absent for none.
	Override *int `json:"override,omitempty"`
	// Resources are the published amounts.
	Resources Amounts `json:"resources"`
	// Granted is the sum of the grants of the consumer's ResourceSlices of the class, absent for
	// nothing.
	Granted Amounts `json:"granted,omitempty"`
	// Used holds the requests of the consumer's pods: on the nodes of the policy, or on all nodes if no
	// policy of nodes decides. It is absent for a consumer without pods.
	Used Amounts `json:"used,omitempty"`
	// Because explains each amount by the latest evaluation, a line for each resource, in the order of
	// resource names. If the published amount is older, within the policy's threshold, the line says so.
	Because []string `json:"because"`
}

// Narrow keeps what is about one resource, and reports whether the offer lists it.
func (o *Offer) Narrow(resource string) bool {
	for _, amounts := range []Amounts{o.Resources, o.Granted, o.Used} {
		for name := range amounts {
			if name != resource {
				delete(amounts, name)
			}
		}
	}
	o.Because = slices.DeleteFunc(o.Because, func(line string) bool { return !strings.HasPrefix(line, resource+" ") })
	return len(o.Resources) > 0
}

// Policy reports the effect of one ResourcePolicy.
type Policy struct {
	Name string `json:"name"`
	// Generation is the generation of the policy that was evaluated.
	Generation int64 `json:"generation"`
	// Class and Source are absent for a policy that is invalid.
	Class  string `json:"class,omitempty"`
	Source string `json:"source,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Reason is the reason of the policy's condition Ready.
	Reason string `json:"reason"`
	// Conditions holds the conditions of the policy's status.
	Conditions []Condition `json:"conditions,omitempty"`
	// Consumers is the number of consumers for which the policy decides; for a dry run, would decide.
	Consumers int `json:"consumers"`
	// Slices is the number of ResourceSlices that it grants something.
	Slices int32 `json:"slices"`
	// SeatsLost is the number of ResourceSlices whose node is not usable any longer, and that wait for another one. It
	// is absent for none.
	SeatsLost int32 `json:"seatsLost,omitempty"`
	// Nodes is the number of nodes in its pool, absent for fixed amounts, as are the three amounts.
	Nodes     *int    `json:"nodes,omitempty"`
	Capacity  Amounts `json:"capacity,omitempty"`
	Committed Amounts `json:"committed,omitempty"`
	Remaining Amounts `json:"remaining,omitempty"`
}

// LostSeats says how many ResourceSlices wait for a node, empty for none.
func (p Policy) LostSeats() string {
	switch p.SeatsLost {
	case 0:
		return ""
	case 1:
		return "1 ResourceSlice has lost its node and waits for another one."
	}
	return fmt.Sprintf("%d ResourceSlices have lost their node and wait for another one.", p.SeatsLost)
}

// Condition is one condition of a policy, without its generation and times.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Details explain everything about one consumer. Each list is bounded; Truncated names those that
// were cut.
type Details struct {
	Evaluated
	// Policies lists the policies that are for the consumer, or would be without their filter of
	// consumers, by class, then in the order of precedence.
	Policies []Candidate `json:"policies"`
	// InGrace are the nodes of the cluster that have lost something which still counts for a while, by
	// name, absent for none.
	InGrace []LeftOutNode `json:"inGrace,omitempty"`
	// Uncounted are the resources of whose devices some or all are not offered to anybody, by resource and node,
	// absent for none.
	Uncounted []Uncounted `json:"uncounted,omitempty"`
	// Slices are the consumer's ResourceSlices, by namespace and name.
	Slices []Slice `json:"slices"`
	// Pods are the pods that count as the consumer's, by node, namespace and name.
	Pods      []Pod    `json:"pods"`
	Truncated []string `json:"truncated,omitempty"`
}

// Uncounted is a resource of whose devices on a node some or all are not counted.
type Uncounted struct {
	Resource string `json:"resource"`
	// Node is absent for devices that are not of one node.
	Node string `json:"node,omitempty"`
	Why  string `json:"why"`
}

// Candidate is a policy that is for a consumer, or would be without its filter of consumers.
type Candidate struct {
	Class  string `json:"class"`
	Policy string `json:"policy"`
	// Decides is true for the one policy of the class that decides.
	Decides bool `json:"decides"`
	// Because says why the policy does not decide, absent for the one that does.
	Because string `json:"because,omitempty"`
	// LeftOut are the nodes that the policy selects by label and does not offer, or that are full, absent for none.
	LeftOut *LeftOut `json:"leftOut,omitempty"`
}

// LeftOut are nodes that a policy selects by label and does not offer, or that are full: what is left on a node that
// takes no more pods does not count.
type LeftOut struct {
	// Nodes is their number, Filtered the number of those that only the policy's filter leaves out.
	Nodes    int `json:"nodes"`
	Filtered int `json:"filtered"`
	// First are the first five, by name.
	First []LeftOutNode `json:"first"`
}

// LeftOutNode is a node and why it is left out, or will be, as in "NAME is WHY".
type LeftOutNode struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// String lists the nodes as in "n1 is cordoned, n2 is not Ready, and 3 more".
func (l *LeftOut) String() string {
	var parts []string
	for _, n := range l.First {
		parts = append(parts, n.Name+" is "+n.Why)
	}
	if more := l.Nodes - len(l.First); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// Slice is a ResourceSlice.
type Slice struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"class"`
	// Policy names the policy that decides. It is absent if none does.
	Policy string `json:"policy,omitempty"`
	// Asked holds the valid amounts of the request, rounded up to the units in which they are granted.
	Asked Amounts `json:"asked,omitempty"`
	// Written holds the request as its consumer wrote it, valid or not: at most 64 amounts, the first by name,
	// each cut to 64 bytes.
	Written map[string]string `json:"written,omitempty"`
	Granted Amounts           `json:"granted,omitempty"`
	// Accepted reports whether the slice is, or is about to be, accepted.
	Accepted bool `json:"accepted"`
	// Seat is the name of the node that it is granted from, or was if that is not usable any longer. It is absent for a
	// slice that is granted from a pool.
	Seat string `json:"seat,omitempty"`
	// SeatState is SeatCordoned or SeatLost, absent for a node that is usable.
	SeatState string `json:"seatState,omitempty"`
	// Because is the message of the answer.
	Because string `json:"because,omitempty"`
}

// The states of a node that is not usable.
const (
	// SeatCordoned: the node is cordoned. The slice keeps what it has, and is granted nothing more.
	SeatCordoned = "Cordoned"
	// SeatLost: the node is gone or not usable. The slice waits for another one.
	SeatLost = "Lost"
)

// On says where the slice is, as in "on n1" or "on n1, which is cordoned". It is empty without a seat.
func (s *Slice) On() string {
	switch {
	case s.Seat == "":
		return ""
	case s.SeatState == SeatCordoned:
		return "on " + s.Seat + ", which is cordoned"
	case s.SeatState == SeatLost:
		return "was on " + s.Seat + ", which is gone or not usable"
	}
	return "on " + s.Seat
}

// Pod is a pod that counts as a consumer's.
type Pod struct {
	// UID is the pod's; the operator keeps no names of pods. One that is accepted and not created has the UID,
	// namespace and name of its ShadowPod, as uid/namespace/name.
	UID string `json:"uid"`
	// Node is empty while the pod is not bound.
	Node     string  `json:"node"`
	Requests Amounts `json:"requests"`
}

// Reason returns the explanation of one resource without its name and amount, which the operator
// writes before it. It is empty if no line is about the resource.
func Reason(because []string, resource string) string {
	_, why := Explanation(because, resource)
	return why
}

// Explanation returns the amount of one resource as the operator writes it, and the explanation after it. Both
// are empty if no line is about the resource.
func Explanation(because []string, resource string) (amount, why string) {
	for _, line := range because {
		if about, ok := strings.CutPrefix(line, resource+" "); ok {
			if amount, why, ok := strings.Cut(about, ": "); ok {
				return amount, why
			}
			return "", about
		}
	}
	return "", ""
}
