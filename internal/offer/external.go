package offer

import (
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// AnsweredNames returns the resources, sorted, that external sources have answered with. A View must
// include them, like the names of ResourceNames.
func AnsweredNames(external map[string]capacity.Answers) []string {
	var names []string
	for _, answers := range external {
		names = append(names, answers.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LastAnswers keeps the answers that count for each policy from one evaluation to the next: what a
// policy offers outlives a restart of this process, an edit of the address and a replacement of the policy,
// until the monitor has answered for the consumer. The zero value has none. It is not safe for concurrent use.
// A copy goes on by itself.
type LastAnswers struct {
	// byPolicy is replaced and never changed, as is all that it holds.
	byPolicy map[string]capacity.Answers
}

// LastAnswersAt returns LastAnswers with these answers, by policy.
func LastAnswersAt(external map[string]capacity.Answers) LastAnswers {
	return LastAnswers{byPolicy: external}
}

// Update sets in.External, for the policies and those that are awaited. The answersOf returns what a monitor has
// answered so far. Before the first evaluation, what in.Recorded says that a policy offered counts as its last
// answers.
func (l *LastAnswers) Update(in *Input, answersOf func(capacity.Monitor) capacity.Answers) {
	before := l.byPolicy
	if before == nil {
		before = recordedAnswers(in.Recorded)
	}
	l.byPolicy = map[string]capacity.Answers{}
	note := func(p *Policy) {
		if p.External == nil {
			return
		}
		answers := answersOf(p.External.Monitor)
		if last := before[p.Name]; !p.External.Zero && len(last.Of) > 0 {
			answers = withLast(answers, last)
		}
		l.byPolicy[p.Name] = answers
	}
	for i := range in.Policies {
		note(&in.Policies[i])
	}
	for _, p := range in.Awaited {
		note(p.Policy)
	}
	in.External = l.byPolicy
}

// withLast adds to answers the last ones, for consumers for which there is none yet. They are stale.
func withLast(a, last capacity.Answers) capacity.Answers {
	if a.Asked && len(a.Awaited) == 0 {
		return a
	}
	of := make(map[string]capacity.Answered, len(last.Of)+len(a.Of))
	distinct := slices.Clone(a.Distinct)
	moved := map[int]int{}
	for _, id := range slices.Sorted(maps.Keys(last.Of)) {
		if _, newer := a.Of[id]; newer {
			continue
		}
		if _, awaited := slices.BinarySearch(a.Awaited, id); a.Asked && !awaited {
			continue
		}
		answered := last.Of[id]
		to, ok := moved[answered.Index]
		if !ok {
			to = len(distinct)
			moved[answered.Index] = to
			distinct = append(distinct, capacity.Answer{Amounts: last.Distinct[answered.Index].Amounts, Stale: true})
		}
		of[id] = capacity.Answered{Index: to, At: answered.At, Kept: true}
	}
	maps.Copy(of, a.Of)
	a.Distinct, a.Of = distinct, of
	return a
}

// recordedAnswers returns what policies offered before this process started, by policy.
func recordedAnswers(records []PreviousOffers) map[string]capacity.Answers {
	byPolicy := map[string]capacity.Answers{}
	for _, r := range records {
		answers := capacity.Answers{Of: make(map[string]capacity.Answered, len(r.Offers))}
		for _, id := range slices.Sorted(maps.Keys(r.Offers)) {
			same := func(a capacity.Answer) bool { return maps.Equal(a.Amounts, r.Offers[id]) }
			at := slices.IndexFunc(answers.Distinct, same)
			if at < 0 {
				at = len(answers.Distinct)
				answers.Distinct = append(answers.Distinct, capacity.Answer{Amounts: r.Offers[id], Stale: true})
			}
			answers.Of[id] = capacity.Answered{Index: at}
		}
		byPolicy[r.Policy] = answers
	}
	return byPolicy
}
