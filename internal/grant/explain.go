package grant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// The machine-readable reasons of an answer.
const (
	// ReasonGranted: everything asked for is granted.
	ReasonGranted = "Granted"
	// ReasonIncomplete: everything asked for is granted, but it is not enough to run pods.
	ReasonIncomplete = "Incomplete"
	// ReasonCapped: less is granted than was asked for.
	ReasonCapped = "Capped"
	// ReasonDenied: nothing is granted.
	ReasonDenied = "Denied"
	// ReasonCordoned: nothing new is granted, because the provider has cordoned the consumer.
	ReasonCordoned = "Cordoned"
	// ReasonPaused: nothing new is granted, because the policy is paused.
	ReasonPaused = "Paused"
	// ReasonStopped: nothing more is granted, because the policy is stopped, and reclaim decides what the slice keeps.
	ReasonStopped = "Stopped"
	// ReasonInvalid: the request makes no sense, and no more is granted than before.
	ReasonInvalid = "InvalidRequest"
	// ReasonFiltered: a filter of the policy does not admit the request, and reclaim decides what the slice
	// keeps.
	ReasonFiltered = "Filtered"
	// ReasonSeatLost: the node that the slice was granted from is not usable any longer. It is granted from another
	// one, or waits for room on one.
	ReasonSeatLost = "SeatLost"
	// ReasonWithdrawn: no policy decides on the slice any longer.
	ReasonWithdrawn = "Withdrawn"
)

// Reason returns the reason of the answer in one word.
func (a *Answer) Reason() string {
	switch {
	case a.Policy == nil:
		return ReasonWithdrawn
	case a.filtered():
		return ReasonFiltered
	case a.Invalid:
		return ReasonInvalid
	case a.Seat != nil && a.Seat.Lost != "":
		return ReasonSeatLost
	case a.Whole() && len(a.Missing) > 0:
		return ReasonIncomplete
	case a.Whole():
		return ReasonGranted
	case a.Frozen:
		return ReasonCordoned
	case a.boundBy(ByPause):
		return ReasonPaused
	case a.boundBy(ByStop):
		return ReasonStopped
	case a.Verdict == Deny:
		return ReasonDenied
	}
	return ReasonCapped
}

const (
	// maxClauses is the number of resources that an explanation goes through, maxName the length of
	// their names in bytes.
	maxClauses = 5
	maxName    = 80

	noPolicy = "no policy of the provider serves this cluster in this class any more"
)

// Explain returns one sentence for the admin of the consumer: what was asked for, what is granted,
// and what limits it. For an invalid request, problem says what is wrong with it.
func (a *Answer) Explain(problem string) string {
	text := a.explain(problem)
	if a.Seat != nil && a.Seat.Lost != "" {
		text += "; the node that it was granted from before is gone or not usable"
	}
	return text
}

func (a *Answer) explain(problem string) string {
	clauses, more := a.clauses()
	lacks, refused, until := a.lacks(), a.Invalid || a.filtered(), " until the request is corrected"
	if a.filtered() {
		problem, until = a.refusal(), ""
	}
	switch {
	case refused && a.Verdict == Deny:
		return "denied: " + problem
	case refused && len(clauses) == 0:
		return "nothing more is granted" + until + ": " + problem
	case a.Verdict == Deny && len(clauses) == 0:
		return fmt.Sprintf("denied: nothing is asked for, and policy %s has no defaults of what it offers: "+
			"write resources in the request", a.policy())
	case len(clauses) == 0 && a.Policy == nil:
		return "what was granted stays as it is: " + noPolicy
	case len(clauses) == 0 && lacks == "":
		return a.inFull()
	case len(clauses) == 0:
		return fmt.Sprintf("granted by policy %s, but %s", a.policy(), lacks)
	}
	text := strings.Join(clauses, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more resources", more)
	}
	if refused {
		return fmt.Sprintf("granted %s; nothing more is granted%s: %s", text, until, problem)
	}
	if lacks != "" {
		text += "; " + lacks
	}
	switch {
	case a.Reason() == ReasonGranted && a.asks():
		return a.inFull() + ", and " + text
	case a.Verdict != Deny:
		return "granted " + text
	}
	if a.Policy != nil && a.Policy.Slices.DenyExcess {
		text += "; it grants all or nothing"
	}
	return "denied: " + text
}

// boundBy reports whether more of some resource would be granted without this bound.
func (a *Answer) boundBy(b Bound) bool {
	return slices.ContainsFunc(a.Lines, func(l Line) bool { return l.Bound == b })
}

func (a *Answer) filtered() bool { return a.Ruling != offer.Admitted }

// refusal returns the message to the consumer about a request that a filter does not admit.
func (a *Answer) refusal() string {
	if a.Ruling == offer.Undecided {
		return fmt.Sprintf("policy %s has not decided about this request yet", a.policy())
	}
	return cmp.Or(a.Policy.Slices.FilterMessage, fmt.Sprintf("policy %s refuses this request", a.policy()))
}

// Because returns Explain for the admins of the provider, with the explanation of a filter.
func (a *Answer) Because(problem string) string {
	if a.Why == "" {
		return a.Explain(problem)
	}
	return a.Explain(problem) + " (" + a.Why + ")"
}

func (a *Answer) policy() string {
	if a.Policy == nil {
		return ""
	}
	return a.Policy.Name
}

// asks reports whether the request names more than 0 of a resource.
func (a *Answer) asks() bool {
	return slices.ContainsFunc(a.Lines, func(l Line) bool { return l.Asked > 0 && !l.Default })
}

// inFull describes the answer to a slice that is granted everything asked for.
func (a *Answer) inFull() string {
	if a.asks() {
		return "granted in full by policy " + a.policy()
	}
	return "granted the defaults of policy " + a.policy()
}

// lacks says what to ask for so that the slice can run pods, and which of it the policy does not offer.
// It is empty if nothing is missing but what the clauses explain.
func (a *Answer) lacks() string {
	var lacking, write, never []string
	for _, m := range a.Missing {
		if m.Explained {
			continue
		}
		lacking = append(lacking, m.Resource)
		if !m.Offered {
			never = append(never, m.Resource)
			continue
		}
		amount := offer.LiqoDefaults()[m.Resource]
		write = append(write, m.Resource+": "+capacity.Canonical(m.Resource, amount))
	}
	if len(lacking) == 0 {
		return ""
	}
	text := "a virtual node without " + strings.Join(lacking, " and ") + " runs no pods"
	if len(write) > 0 {
		text += ": write amounts in the request, such as " + strings.Join(write, ", ")
	}
	if len(never) > 0 {
		text += fmt.Sprintf("; only the provider can add %s to policy %s", strings.Join(never, " and "), a.policy())
	}
	return text
}

// clauses returns the reason for each resource that is not granted in full, and the number of
// further resources for which there is no room.
func (a *Answer) clauses() (clauses []string, more int) {
	for _, l := range a.Lines {
		if l.Granted >= l.Asked || l.Bound == Withheld || l.Bound == Useless && a.Verdict == Deny {
			continue
		}
		if len(clauses) == maxClauses {
			more++
			continue
		}
		q := capacity.HumanFormat(l.Resource, l.Asked, l.Granted, l.Left, l.Others, l.Left-l.Granted)
		asked, by := q(l.Asked)+" "+cut(l.Resource), "asked"
		if l.Default {
			by = "by default"
		}
		switch {
		case a.Verdict == Deny && l.Bound == Awaited:
			clauses = append(clauses, fmt.Sprintf("%s %s, but others have not given it back yet", asked, by))
		case l.Bound == BySeat && a.Seat != nil && a.Seat.Node == "" && a.Seat.Unlisted != "":
			clauses = append(clauses, fmt.Sprintf("%s %s, but %s", asked, by, a.unlisted()))
		case a.Verdict == Deny:
			clauses = append(clauses, fmt.Sprintf("%s %s, but %s", asked, by, l.explainBound(a.policy(), q)))
		case l.Bound == ByFilter:
			clauses = append(clauses, fmt.Sprintf("%s of %s", q(l.Granted), asked))
		case l.Default:
			clauses = append(clauses, fmt.Sprintf("%s of %s %s: %s", q(l.Granted), asked, by, l.explainBound(a.policy(), q)))
		default:
			clauses = append(clauses, fmt.Sprintf("%s of %s: %s", q(l.Granted), asked, l.explainBound(a.policy(), q)))
		}
	}
	return clauses, more
}

// unlisted says by which labels a request may narrow the nodes.
func (a *Answer) unlisted() string {
	if keys := a.Policy.Slices.RequestKeys; len(keys) > 0 {
		return fmt.Sprintf("policy %s lets requests choose nodes by %s only, not by %s", a.policy(),
			strings.Join(keys, ", "), cut(a.Seat.Unlisted))
	}
	return fmt.Sprintf("policy %s lets requests choose no nodes: remove %s", a.policy(), cut(a.Seat.Unlisted))
}

// explainBound says what keeps the grant below the request.
func (l *Line) explainBound(policy string, q func(amount int64) string) string {
	switch l.Bound {
	case ByPool:
		return fmt.Sprintf("policy %s leaves %s for this cluster", policy, q(l.Left))
	case ByMax, ByFixed, ByOverride, ByGiver:
		text := fmt.Sprintf("policy %s gives this cluster at most %s", policy, q(l.Left))
		if l.Bound == ByGiver {
			text += ": the rest of the pool is what this cluster itself gives to the provider"
		}
		if l.Others > 0 {
			text += fmt.Sprintf(", of which its other slices have %s", q(l.Others))
		}
		return text
	case NotOffered:
		return fmt.Sprintf("policy %s does not offer it", policy)
	case ByFreeze:
		return "the provider has cordoned this cluster and grants it nothing new"
	case ByPause:
		return fmt.Sprintf("policy %s is paused for this cluster and grants it nothing new", policy)
	case ByStop:
		return fmt.Sprintf("policy %s is stopped and grants nothing more", policy)
	case Withdrawn:
		return noPolicy
	case Awaited:
		if l.Left < l.Asked {
			return fmt.Sprintf("%s more is being taken back from others", q(l.Left-l.Granted))
		}
		return "the rest is being taken back from others"
	case BySeat:
		return fmt.Sprintf("policy %s grants from one node, which leaves %s", policy, q(l.Left))
	case ByCordon:
		return "the node that it is granted from is cordoned"
	case Useless:
		return "it would be of no use without the others"
	case ByPin:
		return "what this slice has cannot be changed now"
	case Unbound, Withheld, ByFilter:
	}
	return fmt.Sprintf("policy %s withholds it", policy)
}

// cut shortens a name from a request to a readable length.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "..."
}
