package filters

import (
	"strings"

	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/plugin"
)

// answers holds the answers of one filter for one edit of a policy, about objects of type T.
type answers[T any] struct {
	filter *filter[T]
	policy *plugin.Policy
	// text identifies the filter and the edit of the policy.
	text  string
	known memo.Memo[filterAnswer]
	// rehearsal is nil for the answers that count. base holds the answers that it begins with, nil for none.
	rehearsal *Rehearsal
	base      *answers[T]
}

// answersFor returns answers for a policy, without any as yet. The filter is given a copy of the policy,
// because other filters have it at the same time.
func (f *filter[T]) answersFor(p *plugin.Policy, version string, r *Rehearsal) *answers[T] {
	own := *p
	p.Spec.DeepCopyInto(&own.Spec)
	return &answers[T]{
		filter: f, policy: &own, text: strings.Join([]string{f.name, p.Name, version}, "\x00"), rehearsal: r,
	}
}

// rehearsed returns answers of a rehearsal that begin with these.
func (a *answers[T]) rehearsed(r *Rehearsal) *answers[T] {
	return &answers[T]{filter: a.filter, policy: a.policy, text: a.text, rehearsal: r, base: a}
}

// String returns the text that identifies the answers.
func (a *answers[T]) String() string { return a.text }

// answerTo returns the answer about an object. An object that is not answered in time is left out, or keeps the
// answer about an earlier state if only the second part of its digest has changed.
func (a *answers[T]) answerTo(key string, object *T) filterAnswer {
	f, state := a.filter, a.filter.digest(object)
	latest, got, known := a.known.Latest(key)
	if known && latest == state {
		return got
	}
	if a.base != nil {
		if latest, got, known := a.base.known.Latest(key); known && latest == state {
			return got
		}
	}
	l, p := f.evaluations, patience(f.budget)
	if a.rehearsal != nil {
		l, p = f.rehearsals, a.rehearsal
	}
	ask := func() func() (bool, string) { return f.ask(a.policy, object) }
	now, inTime := f.call(l, ask, p, func(now filterAnswer) { a.known.Store(key, state, now) })
	switch {
	case inTime:
		return now
	case a.rehearsal != nil:
		now = filterAnswer{offer.Undecided, "left out because " + f.name + " has not answered in time"}
		a.known.Store(key, state, now) // It is not asked again in this rehearsal.
		a.rehearsal.unanswered[f.name] = struct{}{}
		return now
	}
	f.miss(key)
	if known && latest[0] == state[0] {
		return got
	}
	return filterAnswer{offer.Undecided, "left out until " + f.name + " answers"}
}
