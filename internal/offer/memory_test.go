package offer

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

// step is one input of a history: some things are as they were, down to being the same lists, and others are not.
func step(t *rapid.T, c cluster, last Input) Input {
	in := anyInput(t, c)
	keep := func(what string) bool { return last.Policies != nil && rapid.IntRange(0, 3).Draw(t, "keep "+what) > 0 }
	switch {
	case keep("policies"):
		in.Policies = last.Policies
	case keep("most policies"):
		// An edit: who the policy is for may stay, and what it offers may too.
		edited := slices.Clone(last.Policies)
		if len(edited) > 0 {
			i := rapid.IntRange(0, len(edited)-1).Draw(t, "edited")
			p := anyPolicy(i).Draw(t, "policy")
			p.Name = edited[i].Name
			if keep("whom the policy is for") {
				p.Class, p.Priority, p.Created, p.DryRun = edited[i].Class, edited[i].Priority, edited[i].Created, edited[i].DryRun
				p.Consumers, p.Overrides = edited[i].Consumers, edited[i].Overrides
			}
			if keep("most of what it offers") {
				drawn := p
				p = edited[i]
				switch rapid.IntRange(0, 4).Draw(t, "edit") {
				case 0:
					p.Version = drawn.Version
				case 1:
					p.Reclaim = drawn.Reclaim
				case 2:
					p.ThresholdPercent = drawn.ThresholdPercent
				case 3:
					p.Known = append(slices.Clone(p.Known), "zinc")
				case 4:
					p.Max = drawn.Max
				}
			}
			edited[i] = p
		}
		in.Policies = edited
	}
	if keep("consumers") {
		in.Consumers = last.Consumers
	}
	if keep("grants") {
		in.Grants = last.Grants
	}
	in.View = c.View(Selections(in.Policies), ResourceNames(in.Policies)...)
	if keep("the account") && len(in.View.Pools) == len(last.View.Pools) && slices.EqualFunc(Selections(in.Policies), Selections(last.Policies),
		func(a, b capacity.Selection) bool { return a.Key() == b.Key() }) {
		in.View = last.View
	}
	return in
}

// TestWhatIsRememberedChangesNothing holds each result of a history to one that is worked out without what the result before remembers.
func TestWhatIsRememberedChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		in := step(t, c, Input{})
		prev := Evaluate(in, nil)
		for range rapid.IntRange(1, 8).Draw(t, "evaluations") {
			in = step(t, c, in)
			forgetful := *prev
			forgetful.memory = memory{}
			got, want := Evaluate(in, prev), Evaluate(in, &forgetful)
			checkSame(t, prev, got, want)
			checkSame(t, prev, Evaluate(in, prev), want)
			checkChanged(t, prev.Entries, got.Entries)
			prev = got
		}
	})
}

func checkSame(t *rapid.T, prev, got, want *Result) {
	whole := cmp.Options{
		cmp.AllowUnexported(Offer{}, Report{}), cmpopts.EquateEmpty(),
		cmp.Transformer("entry", func(e *Entry) []*Offer { return e.Offers }),
		cmp.Transformer("entries", func(e Entries) map[string]*Entry { return maps.Collect(e.All) }),
	}
	if diff := cmp.Diff(want.Entries, got.Entries, whole); diff != "" {
		t.Fatalf("entries: %s", diff)
	}
	if diff := cmp.Diff(want.Anyone, got.Anyone, whole); diff != "" {
		t.Fatalf("anyone: %s", diff)
	}
	if diff := cmp.Diff(want.Reports, got.Reports, whole); diff != "" {
		t.Fatalf("reports: %s", diff)
	}
	if (got.Anyone == prev.Anyone) != (want.Anyone == prev.Anyone) {
		t.Fatal("what anyone is offered kept its identity in one only")
	}
	for id, entry := range got.Entries.All {
		if before := prev.Entries.Of(id); (entry == before) != (want.Entries.Of(id) == before) {
			t.Fatalf("%s: the entry kept its identity in one only", id)
		}
		for other, same := range got.Entries.All {
			if (entry == same) != (want.Entries.Of(id) == want.Entries.Of(other)) {
				t.Fatalf("%s and %s share their entry in one only", id, other)
			}
		}
	}
}

// checkChanged holds what Changed tells to what a look at each consumer does.
func checkChanged(t *rapid.T, before, now Entries) {
	got, known := now.Changed(before)
	if !known {
		return
	}
	var want, ids, idsBefore []string
	for id := range before.All {
		idsBefore = append(idsBefore, id)
	}
	for id, entry := range now.All {
		ids = append(ids, id)
		if !entry.SameAmounts(before.Of(id)) {
			want = append(want, id)
		}
	}
	if !slices.Equal(ids, idsBefore) {
		t.Fatalf("taken for the same consumers: %q, before %q", ids, idsBefore)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q read something else, want %q", got, want)
	}
}

func TestConsumersThatAreNamedTogetherAreWorkedOutTogether(t *testing.T) {
	c := newCluster("n1")
	amounts := capacity.Amounts{"cpu": 1}
	policies := []Policy{
		fixed("many", amounts, scope(ids("a", "b", "c", "d", "e")), func(p *Policy) {
			p.Overrides = []Override{{Consumers: ids("c"), Fixed: capacity.Amounts{"cpu": 2}}}
		}),
		fixed("shadow-of-d", amounts, scope(ids("d")), priority(-1)),
		fixed("shadow-of-e", amounts, scope(ids("e")), priority(-1)),
	}
	first := c.evaluate(nil, nil, policies...)
	expect(t, "groups", first.lineup.groupOf, []int32{0, 0, 1, 2, 3})
	for _, name := range []string{"shadow-of-d", "shadow-of-e"} {
		expect(t, name, first.Reports[name].Losses[0].Policy, "many")
	}

	// With one that comes, they are found again by what is said of them.
	first = c.evaluate(first, nil, policies...)
	next := c.evaluate(first, consumers("aa"), policies...)
	expect(t, "groups with one more", next.lineup.groupOf, []int32{0, 1, 0, 2, 3, 4})
	for i, was := range []int{0, 2, 3, 4} {
		if next.outcomes[was] != first.outcomes[i] {
			t.Errorf("group %d is worked out anew", i)
		}
	}
}

func TestOneThatComesIsTreatedAsThoseThatAreThere(t *testing.T) {
	c := newCluster("n1")
	policies := []Policy{
		fixed("all", capacity.Amounts{"cpu": 1}),
		fixed("gold", capacity.Amounts{"cpu": 2}, scope(Scope{Selector: labels.SelectorFromSet(labels.Set{"tier": "gold"})}), priority(1)),
	}
	there := []Consumer{{ID: "oslo"}}
	first := c.evaluate(c.evaluate(nil, there, policies...), there, policies...)
	// It is looked at first, and of another sort.
	next := c.evaluate(first, append([]Consumer{{ID: "bergen", Labels: map[string]string{"tier": "silver"}}}, there...), policies...)
	if next.outcomes[0] != first.outcomes[0] {
		t.Error("what the other one is offered is worked out anew")
	}
}

func TestChangedIsOfThoseWhoReadSomethingElse(t *testing.T) {
	c := newCluster("n1")
	all := consumers("anna")
	of := func(prev *Result, milli int64, v string) *Result {
		return c.evaluate(prev, all,
			fixed("p", capacity.Amounts{"cpu": milli}, scope(ids("oslo", "rome")), version(v)), fixed("q", capacity.Amounts{"cpu": 1}, scope(ids("paris"))))
	}
	first := of(of(nil, 1, "1"), 1, "1")
	again := of(first, 1, "2")
	if again.Entries.Of("rome") == first.Entries.Of("rome") {
		t.Error("what another version of the policy offers is the same entry")
	}
	edited := of(again, 2, "3")
	for _, tc := range []struct {
		name        string
		before, now Entries
		want        []string
		known       bool
	}{
		{"the same amounts by an edited policy", first.Entries, again.Entries, nil, true},
		{"other amounts", again.Entries, edited.Entries, []string{"oslo", "rome"}, true},
		{"nobody, after groups that all have left", Entries{ofGroups: []*Entry{{}}}, Entries{}, nil, false},
		{"others", edited.Entries, EntriesOf(nil), nil, false},
	} {
		got, known := tc.now.Changed(tc.before)
		expect(t, tc.name, got, tc.want)
		expect(t, tc.name+", known", known, tc.known)
	}
}
