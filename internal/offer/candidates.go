package offer

import (
	"fmt"

	"proffer.dev/proffer/internal/capacity"
)

// Candidate is a policy that is for a consumer, or would be without filters of consumers.
type Candidate struct {
	Class, Policy string
	// Decides is set for the one policy of the class that decides.
	Decides bool
	// Because says why the policy does not decide. It is empty for the one that does.
	Because string
	// LeftOut are the nodes that the policy selects by label and leaves out.
	LeftOut capacity.Unusable
}

// Candidates returns the policies that are for a consumer, and those that only filters make not be
// for it, by class, then in the order in which they decide. Dry runs are among them.
func (x Explainer) Candidates(id string) []Candidate {
	e := x.evaluation
	if e == nil {
		return nil
	}
	var all []Candidate
	consumer := e.consumer(id)
	var winner *Policy
	for i := range e.index.candidates(id) {
		p := e.index.ordered[i]
		if !p.Consumers.selects(consumer) {
			continue
		}
		c := Candidate{Class: p.Class, Policy: p.Name}
		if pool := e.plans[i].pool; pool != nil {
			c.LeftOut = pool.Unusable
		}
		why := p.Consumers.whyFiltered(consumer)
		switch {
		case why != "":
			c.Because, c.LeftOut = why, capacity.Unusable{}
		case p.DryRun:
			c.Because = "it is a dry run"
		case winner == nil || winner.Class != p.Class:
			winner, c.Decides = p, true
		default:
			c.Because = winner.whyBefore(p)
		}
		all = append(all, c)
	}
	return all
}

// whyBefore says why the policy decides before another one of its class.
func (p *Policy) whyBefore(o *Policy) string {
	switch {
	case p.Priority != o.Priority:
		return fmt.Sprintf("policy %s has the higher priority, %d", p.Name, p.Priority)
	case p.Created != o.Created:
		return fmt.Sprintf("policy %s has the same priority, %d, and is older", p.Name, p.Priority)
	}
	return fmt.Sprintf("policy %s has the same priority, %d, and the same age, and its name comes first",
		p.Name, p.Priority)
}
