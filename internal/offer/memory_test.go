package offer

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	in.View = c.View(Selections(in.Policies))
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
	if diff := cmp.Diff(want.IDs(), got.IDs(), whole); diff != "" {
		t.Fatalf("IDs: %s", diff)
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
