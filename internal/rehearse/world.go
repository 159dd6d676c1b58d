package rehearse

import (
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/engine/evaluation"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// World is everything that an evaluation depends on.
type World struct {
	// Now is the time from which the rehearsal goes on.
	Now time.Time
	// Policies are all ResourcePolicies, by name.
	Policies []table.Policy
	// Consumers lists the consumers that Liqo's objects describe, sorted by ID.
	Consumers []offer.Consumer
	// Offers holds the published offers. The zero value is for a world without a past.
	Offers offer.Offers
	// Slices are the decisions on ResourceSlices, nil for none.
	Slices table.SliceDecisions
	// Levels holds the levels of the pools.
	Levels offer.Stabilizer
	// Resources lists further resources that an evaluation needs columns for, besides the resources of
	// policies.
	Resources []string
	// Content holds the amounts of nodes and the requests of pods.
	Content *capacity.Copy
	// Filters are the names of filters in Go that the operator asked and that the policies do not have.
	Filters []string
	// External holds the answers of external sources, by the policy that offers them.
	External map[string]capacity.Answers
}

// Of returns the world of a snapshot. The content is a copy of the ledger that it was evaluated from.
func Of(s *table.Snapshot, content *capacity.Copy) World {
	return World{
		Now: s.Time, Policies: s.Policies, Consumers: s.Input.Consumers, Offers: s.Offers, Slices: s.Slices, Levels: s.Levels,
		Resources: s.Input.View.Columns, Content: content, External: s.Input.External,
	}
}

// Change lists the changes to a world.
type Change struct {
	// Apply are policies to create, or to replace by name.
	Apply []table.Policy
	// Delete are names of policies.
	Delete []string
	// Drain are names of nodes that leave with their pods.
	Drain []string
	// AddNodes are nodes that join.
	AddNodes []capacity.Node
}

// policies returns the policies after the change, by name.
func (c *Change) policies(before []table.Policy) []table.Policy {
	gone := map[string]struct{}{}
	for _, name := range c.Delete {
		gone[name] = struct{}{}
	}
	for i := range c.Apply {
		gone[c.Apply[i].Name] = struct{}{}
	}
	after := slices.Clone(c.Apply)
	for i := range before {
		if _, replaced := gone[before[i].Name]; !replaced {
			after = append(after, before[i])
		}
	}
	slices.SortFunc(after, func(a, b table.Policy) int { return strings.Compare(a.Name, b.Name) })
	return after
}

// carryOut changes the nodes and pods of a ledger with this content. It returns how many pods leave with drained nodes.
func (c *Change) carryOut(l *capacity.Ledger, content *capacity.Copy) (gone int) {
	drained := make(map[string]struct{}, len(c.Drain))
	for _, name := range c.Drain {
		drained[name] = struct{}{}
		l.DeleteNode(name)
	}
	if len(drained) > 0 {
		for p := range content.Pods {
			if _, leaves := drained[p.Node]; leaves {
				l.DeletePod(p.Key)
				gone++
			}
		}
	}
	for _, n := range c.AddNodes {
		l.SetNode(n)
	}
	return gone
}

// notAsked is the problem of a monitor that has not answered yet: a rehearsal asks none.
const notAsked = "a rehearsal does not ask it"

// answersOf returns what a monitor has answered for any policy. A rehearsal asks no monitor.
func (w *World) answersOf(m capacity.Monitor) capacity.Answers {
	for i := range w.Policies {
		p := &w.Policies[i]
		if p.Parsed == nil || p.Parsed.External == nil || p.Parsed.External.Monitor != m {
			continue
		}
		if answers, ok := w.External[p.Name]; ok && len(answers.Of) > 0 {
			return answers
		}
	}
	return capacity.Answers{Problem: notAsked}
}

// Unanswered returns the policies, by name, whose external sources have not answered in the world, so
// that nobody knows what they would offer.
func (w *World) Unanswered(policies []table.Policy) []string {
	var names []string
	for i := range policies {
		p := &policies[i]
		if p.Parsed != nil && p.Parsed.External != nil && len(w.answersOf(p.Parsed.External.Monitor).Of) == 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// maxRounds bounds the evaluations of one state. Usually there are two: one that changes something,
// and one that changes nothing.
const maxRounds = 100

// Rested is a state of the world in which nothing changes any more by itself.
type Rested struct {
	*offer.Result
	// View is the account of nodes and pods.
	View capacity.View
	// Policies are all policies by name. Each knows all that it has offered.
	Policies []table.Policy
	// Slices are the decisions on ResourceSlices, nil for none.
	Slices table.SliceDecisions
	// Restless is set if there were still changes after maxRounds evaluations.
	Restless bool

	// levels holds the levels of the pools at the time.
	levels offer.Stabilizer
	time   time.Time
}

// rest evaluates until nothing changes, or ended reports true: the result is nil then.
func (w *World) rest(l *capacity.Ledger, policies []table.Policy, ended func() bool) *Rested {
	r := &Rested{Policies: slices.Clone(policies)}
	state := evaluation.State{Levels: w.Levels, Answers: offer.LastAnswersAt(w.External)}
	in := evaluation.Inputs{
		Now: w.Now, Policies: table.NewPolicyList(r.Policies), Consumers: w.Consumers, Ledger: l,
		Previous: w.Offers, Resources: w.resources(), AnswersOf: w.answersOf, Ended: ended,
	}
	if w.Slices != nil {
		in.Decide = w.Slices.DryRun
	}
	for range maxRounds {
		r.Result, r.Slices = nil, nil // They hold much memory.
		out := state.Step(in)
		if out == nil {
			return nil
		}
		r.Result, r.Slices, r.View = out.Result, out.Slices, out.Input.View
		r.levels, r.time = state.Levels, in.Now
		same := sameOffers(in.Previous, r.Offers)
		in.Previous, in.Now = r.Offers, in.Now.Add(out.LevelsAgain)
		if remember(r.Policies, r.Reports) {
			in.Policies, same = table.NewPolicyList(r.Policies), false
		}
		if same && out.LevelsAgain == 0 {
			return r
		}
	}
	r.Restless = true
	return r
}

// resources returns the resources that an evaluation needs columns for, besides the resources of policies.
func (w *World) resources() []string {
	all := slices.Concat(w.Resources, offer.AnsweredNames(w.External))
	if w.Slices == nil {
		return all
	}
	for s := range w.Slices.All {
		for _, counts := range []capacity.Amounts{s.Slice.Granted, s.After(), s.Used, s.Recorded} {
			all = slices.AppendSeq(all, maps.Keys(counts))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// remember adds to each policy what it turned out to offer, as the operator does after each
// evaluation, and reports whether there was more than before.
func remember(policies []table.Policy, reports map[string]*offer.Report) (more bool) {
	for i := range policies {
		p := &policies[i]
		if report := reports[p.Name]; report != nil && report.Outcome != offer.DryRun {
			longer, added := table.AddNames(p.Offered, report.Offered, v1alpha1.MaxOfferedResources)
			p.Offered, more = longer, more || added
		}
	}
	return more
}

// sameOffers reports whether an evaluation has changed nothing of the offers before: entries keep
// their identity.
func sameOffers(before, after offer.Offers) bool {
	were, are := before.Readable(), after.Readable()
	if before.Default != after.Default || were.Len() != are.Len() {
		return false
	}
	for i := range are.Len() {
		id, entry := were.At(i)
		if next, now := are.At(i); next != id || now != entry {
			return false
		}
	}
	return true
}

// Outcome is the outcome of a rehearsal.
type Outcome struct {
	// World is the world before the rehearsal, Change the change.
	World  *World
	Change *Change
	// Without is the world at rest without the change, With the one at rest with it.
	Without, With *Rested
	// DrainedPods is the number of pods on the nodes that leave. They are on no node of With.
	DrainedPods int
}

// Rehearse lets the world rest without the change, and with it. It returns nil as soon as ended
// reports true, which it asks before each decision on slices and before each evaluation.
func Rehearse(w *World, c *Change, ended func() bool) *Outcome {
	l := w.Content.Ledger()
	o := &Outcome{World: w, Change: c}
	if o.Without = w.rest(l, w.Policies, ended); o.Without == nil {
		return nil
	}
	if w.Offers.Default == nil {
		// Nobody knows the published offers: the outcome without the change stands for them.
		settled := *w
		settled.Offers, settled.Levels, settled.Now = o.Without.Offers, o.Without.levels, o.Without.time
		w, o.World = &settled, &settled
	}
	o.DrainedPods = c.carryOut(l, w.Content)
	if o.With = w.rest(l, c.policies(w.Policies), ended); o.With == nil {
		return nil
	}
	return o
}
