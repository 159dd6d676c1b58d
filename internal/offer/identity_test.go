package offer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

// step draws the next input of a history. Parts of the last input may stay, as the same lists.
func step(t *rapid.T, c cluster, last Input) Input {
	in := anyInput(t, c)
	keep := func(what string) bool { return last.Policies != nil && rapid.IntRange(0, 3).Draw(t, "keep "+what) > 0 }
	switch {
	case keep("policies"):
		in.Policies = last.Policies
	case keep("most policies"):
		// An edit may keep the consumers of the policy, and what it offers.
		edited := slices.Clone(last.Policies)
		if len(edited) > 0 {
			i := rapid.IntRange(0, len(edited)-1).Draw(t, "edited")
			p := anyPolicy(i).Draw(t, "policy")
			p.Name = edited[i].Name
			if keep("consumers of the policy") {
				p.Class, p.Priority, p.Created, p.DryRun = edited[i].Class, edited[i].Priority, edited[i].Created, edited[i].DryRun
				p.Consumers, p.Overrides = edited[i].Consumers, edited[i].Overrides
			}
			if keep("most of the offer") {
				drawn := p
				p = edited[i]
				switch rapid.IntRange(0, 4).Draw(t, "edit") {
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
			p.Version = fmt.Sprint(rapid.Int64().Draw(t, "generation")) // Every edit has another generation.
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
	in.View = c.View(Selections(in.Policies), append(ResourceNames(in.Policies), AnsweredNames(in.External)...)...)
	if keep("view") && len(in.View.Pools) == len(last.View.Pools) && slices.EqualFunc(Selections(in.Policies), Selections(last.Policies),
		func(a, b capacity.Selection) bool { return a.Key() == b.Key() }) {
		in.View = last.View
	}
	return in
}

// TestAnEntryThatDidNotChangeKeepsItsIdentity also checks that consumers that are alike share an
// entry.
func TestAnEntryThatDidNotChangeKeepsItsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		in := step(t, c, Input{})
		prev := Evaluate(in)
		for range rapid.IntRange(1, 8).Draw(t, "evaluations") {
			in = step(t, c, in)
			r := Evaluate(in.After(prev))
			checkIdentity(t, "anyone", prev.Default, r.Default)
			for id, entry := range r.Entries.All {
				if before := prev.Entries.Of(id); before != nil {
					checkIdentity(t, id, before, entry)
				}
			}
			checkShared(t, in, prev, r)
			prev = r
		}
	})
}

// checkIdentity checks that an entry with the same offers as before is the same entry, and that
// each offer that is equal to the one before is the same offer.
func checkIdentity(t *rapid.T, id string, before, now *Entry) {
	if now != before && cmp.Equal(before.Offers, now.Offers, cmp.AllowUnexported(Offer{})) {
		t.Fatalf("%s: the entry is equal to the previous one but not identical", id)
	}
	for _, o := range now.Offers {
		if was := before.In(o.Class); was != nil && was != o && cmp.Equal(was, o, cmp.AllowUnexported(Offer{})) {
			t.Fatalf("%s in %q: the offer is equal to the previous one but not identical", id, o.Class)
		}
	}
}

// checkShared checks that consumers share an entry if they hold nothing, match the same policies
// and had the same entry before.
func checkShared(t *rapid.T, in Input, prev, r *Result) {
	index, before := newPolicyIndex(&in), prev.Readable()
	holds := func(id string) bool {
		for _, grants := range in.Grants {
			if _, granted := grants[id]; granted {
				return true
			}
		}
		return in.View.Used.Of(id) != nil
	}
	for _, a := range in.Consumers {
		for _, b := range in.Consumers {
			alike := !holds(a.ID) && !holds(b.ID) && before.Of(a.ID) == before.Of(b.ID) &&
				cmp.Equal(index.match(a), index.match(b), cmp.AllowUnexported(match{}, winner{}, shadowed{}))
			if alike && r.Entries.Of(a.ID) != r.Entries.Of(b.ID) {
				t.Fatalf("%s and %s are alike but do not share an entry", a.ID, b.ID)
			}
		}
	}
}
