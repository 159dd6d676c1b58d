package offer

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// matchInTurn matches a consumer against every policy.
func matchInTurn(x *policyIndex, c Consumer) *match {
	m, decides := &match{}, map[string]int{}
	for i, p := range x.ordered {
		if p.DryRun || !p.Consumers.Includes(c) {
			continue
		}
		if by, taken := decides[p.Class]; taken {
			m.shadowed = append(m.shadowed, shadowed{policy: i, by: by})
			continue
		}
		decides[p.Class] = i
		m.winners = append(m.winners, winner{i, p.overrideFor(c), p.variantFor(c.ID), p.pause.of(c.ID)})
	}
	return m
}

func TestAMatchIsThatOfEveryPolicyInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t, newCluster())
		x := newPolicyIndex(&in)
		m := newMatcher(x)
		traits := map[string]struct{}{}
		for range 9 { // A matcher answers many of them from what it keeps.
			c := Consumer{ID: anyID.Draw(t, "consumer"), Labels: map[string]string{"zone": anyZone.Draw(t, "zone")}}
			want := matchInTurn(x, c)
			_, named := x.naming[c.ID]
			if _, gives := x.giving[c.ID]; !named && !gives && !x.filtered && !x.external {
				zone := ""
				if slices.Contains(x.labelKeys, "zone") {
					zone = c.Labels["zone"]
				}
				traits[zone] = struct{}{}
			}
			for range 2 {
				if diff := cmp.Diff(want, m.matchOf(c), cmp.AllowUnexported(match{}, winner{}, shadowed{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: every policy in turn (-), matcher (+): %s", c.ID, diff)
				}
			}
		}
		if len(m.byTraits) != len(traits) {
			t.Fatalf("%d matches are kept for consumers with %d different traits", len(m.byTraits), len(traits))
		}
	})
}

func TestAReportListsTheNamedConsumersOfWhichNothingElseIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t, newCluster())
		r := Evaluate(in)
		unknown := func(id string) bool {
			granted := slices.ContainsFunc(slices.Collect(maps.Keys(in.Grants)), func(class string) bool { return in.Grants[class][id] != nil })
			return in.View.Used.Of(id) == nil && !granted && !slices.ContainsFunc(in.Consumers, func(c Consumer) bool { return c.ID == id })
		}
		for i := range in.Policies {
			named := map[string]struct{}{}
			for s := range in.Policies[i].scopes {
				maps.Copy(named, s.IDs)
			}
			maps.Copy(named, in.Policies[i].pauseAt(in.Now).consumers)
			want := slices.DeleteFunc(slices.Sorted(maps.Keys(named)), func(id string) bool { return !unknown(id) })
			if diff := cmp.Diff(want, r.Reports[in.Policies[i].Name].Unknown, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s: unknown consumers (-want +got): %s", in.Policies[i].Name, diff)
			}
		}
	})
}
