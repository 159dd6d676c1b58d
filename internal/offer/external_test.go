package offer

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// external is a policy of what the monitor at plugin:1 answers.
func external(name string, with ...func(*Policy)) Policy {
	return policy(name, append([]func(*Policy){func(p *Policy) {
		p.External = &External{Monitor: capacity.Monitor{Address: "plugin:1"}}
	}}, with...)...)
}

func zeroed(p *Policy) { p.External.Zero = true }

// answering returns answers, each for the consumer before it.
func answering(pairs ...any) capacity.Answers {
	a := capacity.Answers{Of: map[string]capacity.Answered{}, Asked: true}
	for i := 0; i < len(pairs); i += 2 {
		a.Of[pairs[i].(string)] = capacity.Answered{Index: len(a.Distinct), At: noon}
		a.Distinct = append(a.Distinct, capacity.Answer{Amounts: pairs[i+1].(capacity.Amounts)})
	}
	return a
}

// stale returns the answers after the monitor has been away for too long.
func stale(a capacity.Answers) capacity.Answers {
	for i := range a.Distinct {
		a.Distinct[i].Stale = true
	}
	a.Problem = "it is away"
	return a
}

// after evaluates what a monitor has answered.
func (c cluster) after(prev *Result, last *LastAnswers, answers capacity.Answers, policies ...Policy) *Result {
	in := Input{Policies: policies, Consumers: consumers("lima", "oslo", "rome")}
	last.Update(&in, func(capacity.Monitor) capacity.Answers { return answers })
	in.View = c.View(Selections(policies), append(ResourceNames(policies), AnsweredNames(in.External)...)...)
	return Evaluate(in.After(prev))
}

// offeredTo returns the amounts of a consumer's only offer, nil for none.
func offeredTo(t *testing.T, r *Result, id string) capacity.Amounts {
	t.Helper()
	entry := r.Entries.Of(id)
	if entry == nil {
		entry = r.Default
	}
	if len(entry.Offers) == 0 {
		return nil
	}
	if len(entry.Offers) > 1 {
		t.Fatalf("%s has %d offers", id, len(entry.Offers))
	}
	return entry.Offers[0].ByResource()
}

func TestEachConsumerIsOfferedWhatIsAnsweredForIt(t *testing.T) {
	c, last := newCluster(), &LastAnswers{}
	answers := answering("", capacity.Amounts{"cpu": 1000, "memory": gi}, "rome", capacity.Amounts{"cpu": 8000, "pods": 10}, "oslo", capacity.Amounts{"cpu": 9000})
	r := c.after(nil, last, answers, external("p", func(p *Policy) {
		p.Max = capacity.Amounts{"cpu": 5000}
		p.Resources = []string{"cpu", "pods"}
		p.Overrides = []Override{{Consumers: ids("oslo"), Fixed: capacity.Amounts{"pods": 3}, Max: capacity.Amounts{"cpu": 2000}}}
	}))
	expect(t, "rome", offeredTo(t, r, "rome"), capacity.Amounts{"cpu": 5000, "pods": 10})
	expect(t, "oslo", offeredTo(t, r, "oslo"), capacity.Amounts{"cpu": 2000, "pods": 3})
	expect(t, "lima, by the default answer", offeredTo(t, r, "lima"), capacity.Amounts{"cpu": 1000})
	expect(t, "an unknown consumer", offeredTo(t, r, "nobody"), capacity.Amounts{"cpu": 1000})
	expect(t, "scope", r.Reports["p"].Scope, []string{"lima", "oslo", "rome"})
	expect(t, "rome", because(t, r, "rome"), []string{
		"cpu 5: plugin:1 answered 8 at 2026-11-24T12:00:00Z; at most 5",
		"pods 10: plugin:1 answered 10 at 2026-11-24T12:00:00Z",
	})
}

func TestWhatIsNoLongerAnsweredIsOfferedAs0(t *testing.T) {
	c, last, p := newCluster("n"), &LastAnswers{}, external("p")
	c.pod("pod", "n", "rome", 500)
	r := c.after(nil, last, answering("", capacity.Amounts{"cpu": 4000, "pods": 10}), p)
	r = c.after(r, last, answering("", capacity.Amounts{"memory": gi}), p)
	expect(t, "lima", offeredTo(t, r, "lima"), capacity.Amounts{"cpu": 0, "memory": gi, "pods": 0})
	expect(t, "rome, whose pod stays", offeredTo(t, r, "rome"), capacity.Amounts{"cpu": 500, "memory": gi, "pods": 1})
	expect(t, "lima", because(t, r, "lima")[0], "cpu 0: not offered any more: the external source plugin:1 of policy p does not answer it")
}

func TestAnUnavailableSourceIsKeptOrZeroedAsThePolicySays(t *testing.T) {
	c := newCluster()
	for name, tc := range map[string]struct {
		p    Policy
		want capacity.Amounts
		why  string
	}{
		"keep": {external("p"), capacity.Amounts{"cpu": 4000}, "cpu 4: plugin:1 answered 4 for consumers in general at 2026-11-24T12:00:00Z, which is kept while it is unavailable"},
		"zero": {external("p", zeroed), capacity.Amounts{"cpu": 0}, "cpu 0: plugin:1 is unavailable, it last answered at 2026-11-24T12:00:00Z, and onFailure is Zero"},
	} {
		last := &LastAnswers{}
		r := c.after(nil, last, answering("", capacity.Amounts{"cpu": 4000}), tc.p)
		expect(t, name+" before", offeredTo(t, r, "rome"), capacity.Amounts{"cpu": 4000})
		r = c.after(r, last, stale(answering("", capacity.Amounts{"cpu": 4000})), tc.p)
		expect(t, name, offeredTo(t, r, "rome"), tc.want)
		expect(t, name, because(t, r, "rome"), []string{tc.why})
		expect(t, name+" outcome", r.Reports["p"].Outcome, SourceUnavailable)
	}
}

func TestBeforeTheFirstAnswerNothingIsOffered(t *testing.T) {
	c, last, p := newCluster(), &LastAnswers{}, external("p")
	r := c.after(nil, last, capacity.Answers{Asked: true, Awaited: []string{"", "rome"}, Problem: "it has not answered yet"}, p)
	expect(t, "rome", offeredTo(t, r, "rome"), capacity.Amounts(nil))
	report := r.Reports["p"]
	expect(t, "outcome", report.Outcome, SourceUnavailable)
	expect(t, "problem", report.Problem, "it has not answered yet")
	expect(t, "answered", report.Answered, false)
	// A policy that offered something else before offers 0.
	fixed := fixed("p", capacity.Amounts{"cpu": 1000})
	r = c.evaluate(nil, consumers("rome"), fixed)
	r = c.after(r, last, capacity.Answers{Problem: "it has not answered yet"}, p)
	expect(t, "rome", offeredTo(t, r, "rome"), capacity.Amounts{"cpu": 0})
	expect(t, "rome", because(t, r, "rome")[0], "cpu 0: not offered any more: the external source plugin:1 of policy p has not answered")
}

func TestLastAnswersOutliveARestartAndAnEditUntilThereAreNewOnes(t *testing.T) {
	recorded := []PreviousOffers{{Policy: "p", Complete: true, Offers: map[string]capacity.Amounts{
		"lima": {"cpu": 1000}, "oslo": {"cpu": 4000}, "rome": {"cpu": 4000},
	}}}
	silent := capacity.Answers{Problem: "it has not answered yet"}
	update := func(last *LastAnswers, answers capacity.Answers, p Policy) capacity.Answers {
		in := Input{Policies: []Policy{p}, Recorded: recorded}
		last.Update(&in, func(capacity.Monitor) capacity.Answers { return answers })
		return in.External["p"]
	}
	of := func(a capacity.Answers, id string) capacity.Amounts {
		if answered, ok := a.For(id); ok {
			return a.Distinct[answered.Index].Amounts
		}
		return nil
	}
	last := &LastAnswers{}
	kept := update(last, silent, external("p"))
	expect(t, "oslo after a restart", of(kept, "oslo"), capacity.Amounts{"cpu": 4000})
	expect(t, "oslo's reference", kept.Of["oslo"], capacity.Answered{Index: 1, Kept: true})
	expect(t, "kinds of answers", len(kept.Distinct), 2)

	// Rome is answered for, oslo is awaited, and lima is gone.
	first := answering("rome", capacity.Amounts{"cpu": 2000})
	first.Awaited = []string{"", "oslo"}
	kept = update(last, first, external("p"))
	expect(t, "rome", of(kept, "rome"), capacity.Amounts{"cpu": 2000})
	expect(t, "oslo", of(kept, "oslo"), capacity.Amounts{"cpu": 4000})
	expect(t, "lima", of(kept, "lima"), capacity.Amounts(nil))

	// Another address.
	r := newCluster().after(nil, last, silent, external("p"))
	expect(t, "rome", because(t, r, "rome"), []string{"cpu 2: kept at 2, as answered at 2026-11-24T12:00:00Z, until plugin:1 answers"})
	kept = update(last, silent, external("p"))
	expect(t, "rome after an edit", of(kept, "rome"), capacity.Amounts{"cpu": 2000})
	kept = update(last, answering("", capacity.Amounts{"cpu": 500}), external("p"))
	expect(t, "rome when everybody is answered for", of(kept, "rome"), capacity.Amounts{"cpu": 500})

	expect(t, "a policy that zeroes", of(update(&LastAnswers{}, silent, external("p", zeroed)), "rome"), capacity.Amounts(nil))
}

func TestLastAnswersOutliveAReplacementOfThePolicy(t *testing.T) {
	last, awaiting, now := &LastAnswers{}, &Awaiting{}, noon
	update := func(d time.Duration, answers capacity.Answers, policies ...Policy) capacity.Amounts {
		now = now.Add(d)
		in := Input{Policies: policies, Now: now, Grace: ReplaceGrace}
		awaiting.Update(&in)
		last.Update(&in, func(capacity.Monitor) capacity.Answers { return answers })
		answers = in.External["p"]
		if answered, ok := answers.For("rome"); ok {
			return answers.Distinct[answered.Index].Amounts
		}
		return nil
	}
	silent, gone := capacity.Answers{Problem: "it has not answered yet"}, ReplaceGrace-time.Second
	two, three := capacity.Amounts{"cpu": 2000}, capacity.Amounts{"cpu": 3000}
	expect(t, "at first", update(0, answering("rome", two), external("p")), two)
	expect(t, "gone", update(0, silent), two)
	expect(t, "gone for longer", update(gone, silent), two)
	expect(t, "applied again", update(0, silent, external("p")), two)
	expect(t, "gone again, and still read", update(0, answering("rome", three)), three)
	expect(t, "applied again", update(0, silent, external("p")), three)
	update(0, silent)
	update(gone, silent)
	expect(t, "gone for the grace", update(time.Second, silent), capacity.Amounts(nil))
	expect(t, "applied after the grace", update(0, silent, external("p")), capacity.Amounts(nil))

	update(0, answering("rome", two), external("p"))
	update(0, silent)
	expect(t, "replaced by a policy that zeroes", update(0, silent, external("p", zeroed)), capacity.Amounts(nil))
}

func TestAGrantIsLimitedByWhatIsAnsweredForItsConsumer(t *testing.T) {
	c, last := newCluster(), &LastAnswers{}
	in := Input{Policies: []Policy{external("p", func(p *Policy) { p.Class = "gold" })}, Consumers: consumers("rome")}
	last.Update(&in, func(capacity.Monitor) capacity.Answers {
		return answering("", capacity.Amounts{"cpu": 1000}, "rome", capacity.Amounts{"cpu": 3000})
	})
	in.View = c.View(nil, AnsweredNames(in.External)...)
	a := NewAllocationInput(in)
	for id, want := range map[string]int64{"rome": 3000, "oslo": 1000} {
		terms := a.Terms("gold", id)
		if terms.Pool != -1 || len(terms.Steps) != 1 || terms.Steps[0].Fixed != want || terms.Steps[0].Source != FromExternal {
			t.Errorf("%s: %+v, want %d", id, terms, want)
		}
	}
	if first, again := a.Terms("gold", "rome"), a.Terms("gold", "rome"); first != again {
		t.Error("the terms of one consumer have two identities")
	}
}
