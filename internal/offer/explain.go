package offer

import (
	"fmt"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// Explainer tells how the amounts of a result come about. It is made once for many consumers.
type Explainer struct {
	result *Result
	// evaluation is one in which everything has been worked out.
	evaluation *evaluation
	nodes      *nodesLeftOut
}

// Unusable returns the nodes that a selection matches by label and leaves out, each with why.
type Unusable func(capacity.Selection) []capacity.Unusable

// Explainer returns the explainer of the result. It names nodes that are not usable where it is given a way to find them, which may be nil.
func (r *Result) Explainer(unusable Unusable) Explainer {
	x := Explainer{result: r, nodes: &nodesLeftOut{unusable: unusable, said: map[*plan]string{}}}
	if r.lineup == nil { // It was not evaluated.
		return x
	}
	x.evaluation = &evaluation{rules: r.rules, plans: r.plans, granting: r.lineup.granting, columns: r.columns, column: make(map[string]int, len(r.columns))}
	for i, name := range r.columns {
		x.evaluation.column[name] = i
	}
	return x
}

// Explained is an offer and how it comes about by the latest evaluation. The amounts that are published may be older: a change within the
// policy's threshold is not published.
type Explained struct {
	*Offer
	// Now are the steps of the latest evaluation, in the order of Amounts.
	Now []Step
	// Granted is what the consumer's ResourceSlices of the class have been granted, nil for nothing.
	Granted capacity.Amounts
	// Used is what the consumer's pods request of the resources of the offer: on the nodes of the policy, or on all nodes where no policy of nodes
	// decides. It is nil for a consumer without pods.
	Used capacity.Amounts

	evaluation *evaluation
	nodes      *nodesLeftOut
	// by is the policy that decides, nil where none does any more.
	by      *plan
	granted capacity.Row
	holding *holding
}

// Of returns what a consumer is offered, sorted by class. A consumer without an entry is offered what anyone is.
func (x Explainer) Of(id string) []Explained {
	if x.evaluation == nil {
		return nil
	}
	if i, found := slices.BinarySearchFunc(x.result.Entries.consumers, Consumer{ID: id}, byID); found {
		o := x.result.outcomes[x.result.Entries.groupOf[i]]
		return x.explain(x.result.Entries.at(i), o.ruling, &o.holding)
	}
	return x.Anyone()
}

// Anyone returns what a consumer without an entry is offered, sorted by class.
func (x Explainer) Anyone() []Explained {
	if x.evaluation == nil {
		return nil
	}
	return x.explain(x.result.Anyone, x.result.lineup.anyone, &holding{})
}

func (x Explainer) explain(entry *Entry, ruling *ruling, h *holding) []Explained {
	e := x.evaluation
	out := make([]Explained, 0, len(entry.Offers))
	for _, o := range entry.Offers {
		x := Explained{Offer: o, Now: o.Steps, evaluation: e, nodes: x.nodes, holding: h, granted: e.grantedIn(o.Class, h)}
		used := h.used()
		for _, d := range ruling.deciders {
			if p := e.plans[d.policy]; p.Class == o.Class && !o.Withdrawn() {
				x.by, x.Now = p, e.steps(nil, d, h, before{offer: o})
				if p.pool != nil {
					used = h.use.In(p.poolIndex)
				}
			}
		}
		for c, name := range e.columns {
			if amount := x.granted.At(c); amount > 0 {
				x.Granted = with(x.Granted, name, amount)
			}
		}
		if h.hasPods() {
			for _, s := range x.Now {
				x.Used = with(x.Used, s.Resource, used.At(e.place(s.Resource)))
			}
		}
		out = append(out, x)
	}
	return out
}

// place is where a resource stands in rows, -1 for nowhere.
func (e *evaluation) place(resource string) int {
	if c, known := e.column[resource]; known {
		return c
	}
	return -1
}

// Because says how each of Amounts came about, a line each, in words that an admin of the provider understands.
func (x *Explained) Because() []string {
	lines := make([]string, len(x.Amounts))
	for i := range x.Amounts {
		lines[i] = x.because(i)
	}
	return lines
}

// Notable explains the amounts that an admin should know of: those that reclaim holds, and cpu, memory and pods of which there is nothing.
func (x *Explained) Notable() []string {
	var lines []string
	for i, s := range x.Now {
		if s.Held >= 0 || s.Offer == 0 && slices.Contains(needed, s.Resource) {
			lines = append(lines, x.because(i))
		}
	}
	return lines
}

// because explains the i-th amount.
func (x *Explained) because(i int) string {
	s, published := &x.Now[i], x.Amounts[i].Value
	c := x.evaluation.place(s.Resource)
	used, granted := x.holding.used().At(c), x.granted.At(c)
	q := capacity.HumanFormat(s.Resource, published, s.Offer, s.Fixed, s.Reserve, s.Counted, s.Pool, s.present(), s.Committed, s.Remaining, s.Own,
		s.Max, s.Held, used, granted)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", s.Resource, q(published))
	if s.Source == FromRevocation {
		b.WriteString("not offered any more: " + x.gone(s.Resource))
	} else {
		b.WriteString(s.arithmetic(q))
	}
	switch {
	case s.Held >= 0:
		if s.Max >= 0 && s.Max < s.Held {
			fmt.Fprintf(&b, "; at most %s", q(s.Max))
		}
		fmt.Fprintf(&b, "; held at %s by reclaim: ", q(s.Held))
		switch {
		case used >= s.Held:
			b.WriteString("its pods request " + q(used))
		case granted >= s.Held:
			b.WriteString("it was granted " + q(granted))
		default:
			b.WriteString("at 0 its pods would be evicted")
		}
	case s.Max >= 0 && s.Offer == s.Max:
		fmt.Fprintf(&b, "; at most %s", q(s.Max))
	}
	if s.Offer != published {
		fmt.Fprintf(&b, "; that is %s now, and a change of at most %d%% is not published", q(s.Offer), x.by.ThresholdPercent)
	}
	return b.String()
}

// gone says why a resource that was offered is not offered any more, by the policy that decides now, or decided last.
func (x *Explained) gone(resource string) string {
	by := x.by
	if by == nil {
		return x.withdrawn()
	}
	switch {
	case by.Resources != nil && !slices.Contains(by.Resources, resource):
		return fmt.Sprintf("spec.offer.resources of policy %s does not name it", by.Name)
	case by.pool == nil:
		return fmt.Sprintf("policy %s does not name it", by.Name)
	case by.pool.Nodes == 0:
		return fmt.Sprintf("policy %s has no usable node%s", by.Name, x.nodes.of(by))
	}
	return fmt.Sprintf("no usable node of policy %s lists it%s", by.Name, x.nodes.of(by))
}

// maxNodesNamed bounds the nodes that an explanation names.
const maxNodesNamed = 5

// nodesLeftOut says which nodes of policies are not usable. To find them takes a time for each node, so it is said once.
type nodesLeftOut struct {
	unusable Unusable
	said     map[*plan]string
}

// of names the nodes of a policy that are not usable, such as " (n1 is cordoned)"; it is empty where there are none.
func (n *nodesLeftOut) of(p *plan) string {
	if n.unusable == nil {
		return ""
	}
	text, known := n.said[p]
	if known {
		return text
	}
	var names []string
	left := n.unusable(p.Nodes.Selection)
	for _, node := range left[:min(len(left), maxNodesNamed)] {
		names = append(names, fmt.Sprintf("%s is %s", node.Node, node.Why))
	}
	if more := len(left) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) > 0 {
		text = " (" + strings.Join(names, ", ") + ")"
	}
	n.said[p] = text
	return text
}

// withdrawn says why no policy decides on the offer any more.
func (x *Explained) withdrawn() string {
	i, known := x.evaluation.rules.byName[x.from]
	switch {
	case x.from == "":
		return "the policy that offered it is gone"
	case !known:
		return fmt.Sprintf("policy %s is gone or invalid", x.from)
	}
	class := "class " + x.evaluation.rules.ordered[i].Class
	if class == "class " {
		class = "the class without a name"
	}
	switch p := x.evaluation.rules.ordered[i]; {
	case p.DryRun:
		return fmt.Sprintf("policy %s is a dry run now", p.Name)
	case p.Class != x.Class:
		return fmt.Sprintf("policy %s is for %s now", p.Name, class)
	default:
		return fmt.Sprintf("policy %s is not for this consumer any more", p.Name)
	}
}

// arithmetic says what the policy gives, before its ceiling and reclaim.
func (s *Step) arithmetic(q func(amount int64) string) string {
	switch s.Source {
	case FromFixed:
		return "fixed at " + q(s.Fixed)
	case FromOverride:
		return fmt.Sprintf("fixed at %s by the override", q(s.Fixed))
	case FromRevocation, FromNodes:
	}
	text := fmt.Sprintf("%d%% of %s is a pool of %s", s.Percent, q(s.Counted), q(s.Pool))
	if s.Reserve > 0 {
		text = fmt.Sprintf("%d%% of (%s - %s reserved) is a pool of %s", s.Percent, q(s.Counted), q(s.Reserve), q(s.Pool))
	}
	if present := s.present(); present != s.Pool {
		text += fmt.Sprintf(", and %s now", q(present))
	}
	return text + fmt.Sprintf(", %s committed, %s remaining; it has %s", q(s.Committed), q(s.Remaining), q(s.Own))
}

// with returns the amounts with one more; they may be nil.
func with(amounts capacity.Amounts, name string, amount int64) capacity.Amounts {
	if amounts == nil {
		amounts = capacity.Amounts{}
	}
	amounts[name] = amount
	return amounts
}
