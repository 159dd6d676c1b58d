package world

import (
	"fmt"
	"maps"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/rehearse"
)

// encodeExternal writes what external sources have answered, nothing if there are none.
func (e *encoder) encodeExternal(external map[string]capacity.Answers) {
	if len(external) == 0 {
		return
	}
	problems := map[string]string{}
	for policy, answers := range external {
		problems[policy] = answers.Problem
	}
	e.field("unavailable", problems)
	e.list("answers", func(yield func(any) bool) {
		for _, policy := range slices.Sorted(maps.Keys(external)) {
			answers := external[policy]
			for _, id := range slices.Sorted(maps.Keys(answers.Of)) {
				if !yield(answerObject(policy, id, &answers)) {
					return
				}
			}
		}
	})
}

func answerObject(policy, id string, answers *capacity.Answers) rest.WorldAnswer {
	of := answers.Of[id]
	answer := answers.Distinct[of.Index]
	out := rest.WorldAnswer{
		Policy: policy, ClusterID: id, Anyone: id == "",
		Resources: Amounts(answer.Amounts), Stale: answer.Stale, Kept: of.Kept,
	}
	if !of.At.IsZero() {
		out.Time = &of.At
	}
	return out
}

// answers collects what external sources have answered, by policy.
type answers map[string]capacity.Answers

// answersOf returns the answers of a policy.
func (a answers) answersOf(policy string) capacity.Answers {
	of := a[policy]
	if of.Of == nil {
		of.Of, of.Asked = map[string]capacity.Answered{}, true
	}
	return of
}

// explain takes why sources are unavailable.
func (a answers) explain(problems map[string]string) {
	for policy, problem := range problems {
		of := a.answersOf(policy)
		of.Problem = problem
		a[policy] = of
	}
}

// add takes an answer. Equal answers become one.
func (a answers) add(w *rest.WorldAnswer) error {
	if len(w.Resources) == 0 || w.Anyone != (w.ClusterID == "") {
		return fmt.Errorf("an answer for %q has no resources, or is for nobody", w.ClusterID)
	}
	of, answer := a.answersOf(w.Policy), capacity.Answer{Amounts: amountsOf(w.Resources), Stale: w.Stale}
	index := slices.IndexFunc(of.Distinct, func(d capacity.Answer) bool {
		return d.Stale == answer.Stale && maps.Equal(d.Amounts, answer.Amounts)
	})
	if index < 0 {
		index = len(of.Distinct)
		of.Distinct = append(of.Distinct, answer)
	}
	answered := capacity.Answered{Index: index, Kept: w.Kept}
	if w.Time != nil {
		answered.At = *w.Time
	}
	of.Of[w.ClusterID] = answered
	a[w.Policy] = of
	return nil
}

// unanswered says, for Simulation.Unknown, which external sources nobody has the answers of.
func unanswered(o *rehearse.Outcome) []string {
	var unknown []string
	for _, name := range o.World.Unanswered(o.With.Policies) {
		unknown = append(unknown, "what the external source of policy "+name+" answers, which is not asked here: "+
			"only what the policy offered before counts")
	}
	return unknown
}
