package broker

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	measures  = []Measure{uptime, latency, cpuCost, cpuLeft}
	anyID     = rapid.SampledFrom([]string{"rome", "oslo", "paris", "lima", "milan"})
	anyValue  = rapid.OneOf(rapid.Int64Range(0, 100), rapid.SampledFrom([]int64{math.MaxInt64, -1}))
	anyValues = rapid.MapOf(rapid.SampledFrom(measures), anyValue)
)

var anyProviders = rapid.Custom(func(t *rapid.T) (all []Provider) {
	for _, id := range rapid.SliceOfNDistinct(anyID, 0, 5, rapid.ID[string]).Draw(t, "ids") {
		p := provider(id, anyValues.Draw(t, "values"))
		if rapid.IntRange(0, 4).Draw(t, "state") == 0 {
			p.Unusable = "it is down"
		}
		all = append(all, p)
	}
	return all
})

var anyOrchestration = rapid.Custom(func(t *rapid.T) *Orchestration {
	o := &Orchestration{
		Count:    rapid.IntRange(0, 3).Draw(t, "count"),
		Stay:     Stay{time.Duration(rapid.IntRange(0, 5).Draw(t, "stay")) * time.Minute, rapid.Int64Range(0, 50).Draw(t, "gain")},
		Disabled: map[Disabled]struct{}{},
	}
	for range rapid.IntRange(0, 2).Draw(t, "requirements") {
		o.Require = append(o.Require, Requirement{rapid.SampledFrom(measures).Draw(t, "required"), rapid.Int64Range(0, 100).Draw(t, "bound")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "preferences") {
		o.Prefer = append(o.Prefer, Preference{rapid.SampledFrom(measures).Draw(t, "preferred"), rapid.Int64Range(1, 100).Draw(t, "weight")})
	}
	if rapid.Bool().Draw(t, "disables") {
		o.Disabled[Disabled{anyID.Draw(t, "disabled"), rapid.SampledFrom([]string{"", "rome", "oslo"}).Draw(t, "for")}] = struct{}{}
	}
	return o
})

// qualifies says in its own words what the package comment says.
func qualifies(o *Orchestration, consumer string, p Provider, was Previous) bool {
	_, has := was.Chosen[p.ID]
	_, all := o.Disabled[Disabled{Provider: p.ID}]
	_, one := o.Disabled[Disabled{p.ID, consumer}]
	if p.ID == consumer || all || one || p.Unusable != "" {
		return false
	}
	for _, r := range o.Require {
		v, measured := p.Values[r.Measure]
		if has && r.KPI == Remaining {
			continue
		}
		less := r.KPI == Latency || r.KPI == Price
		if !measured || less && v > r.Bound || !less && v < r.Bound {
			return false
		}
	}
	return true
}

func TestWhatAlwaysHoldsOfAChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, consumer, now, was := anyOrchestration.Draw(t, "orchestration"), anyID.Draw(t, "consumer"), start, Previous{}
		for step := range 6 {
			providers := anyProviders.Draw(t, fmt.Sprint("providers ", step))
			got := Choose(o, consumer, providers, was, now)
			checkChoice(t, o, consumer, providers, was, got)
			checkStay(t, o, consumer, providers, was, got, now)

			shuffled := rapid.Permutation(providers).Draw(t, "order")
			if diff := cmp.Diff(got, Choose(o, consumer, shuffled, was, now)); diff != "" {
				t.Fatalf("the order matters:\n%s", diff)
			}
			if diff := cmp.Diff(got.IDs(), idsOf(Choose(o, consumer, providers, after(got), now))); o.Stay.For > 0 && diff != "" {
				t.Fatalf("the same choice again differs:\n%s", diff)
			}
			was, now = after(got), now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds"))*time.Second)
		}
	})
}

func idsOf(c Choice) []string { return c.IDs() }

// checkChoice checks that each provider has one place, and each chosen one qualifies.
func checkChoice(t *rapid.T, o *Orchestration, consumer string, providers []Provider, was Previous, got Choice) {
	places := map[string]int{}
	for _, c := range got.Chosen {
		places[c.ID]++
		i := slices.IndexFunc(providers, func(p Provider) bool { return p.ID == c.ID })
		if i < 0 || !qualifies(o, consumer, providers[i], was) {
			t.Fatalf("%s is chosen, and does not qualify", c.ID)
		}
		if c.Score < 0 || c.Score > 1000 {
			t.Fatalf("%s scores %d", c.ID, c.Score)
		}
	}
	for _, r := range got.Rejected {
		places[r.ID]++
		if r.Because == "" {
			t.Fatalf("%s is rejected without a reason", r.ID)
		}
	}
	for _, p := range providers {
		if places[p.ID] != 1 {
			t.Fatalf("%s has %d places", p.ID, places[p.ID])
		}
	}
	if len(places) != len(providers) || o.Count > 0 && len(got.Chosen) > o.Count {
		t.Fatalf("%d places for %d providers, %d chosen of %d", len(places), len(providers), len(got.Chosen), o.Count)
	}
	if len(got.Chosen) == 0 && slices.ContainsFunc(providers, func(p Provider) bool { return qualifies(o, consumer, p, was) }) {
		t.Fatal("none is chosen, and one qualifies")
	}
}

// checkStay checks that nothing flaps within Stay.For.
func checkStay(t *rapid.T, o *Orchestration, consumer string, providers []Provider, was Previous, got Choice, now time.Time) {
	chosen := map[string]time.Time{}
	for _, c := range got.Chosen {
		chosen[c.ID] = c.Since
		since, before := was.Chosen[c.ID]
		if before && !c.Since.Equal(since) || !before && !c.Since.Equal(now) {
			t.Fatalf("%s is chosen since %v", c.ID, c.Since)
		}
		if left, lost := was.Left[c.ID]; lost && now.Sub(left) < o.Stay.For && len(got.Chosen) > 1 && !disabledOne(o, consumer, c.ID) {
			others := slices.ContainsFunc(got.Chosen, func(other Chosen) bool { _, lost := was.Left[other.ID]; return !lost })
			if others {
				t.Fatalf("%s is back too early", c.ID)
			}
		}
	}
	for _, p := range providers {
		since, before := was.Chosen[p.ID]
		_, still := chosen[p.ID]
		if before && !still && qualifies(o, consumer, p, was) && now.Sub(since) < o.Stay.For {
			t.Fatalf("%s lost its place after %v", p.ID, now.Sub(since))
		}
	}
}

func disabledOne(o *Orchestration, consumer, id string) bool {
	_, all := o.Disabled[Disabled{Provider: id}]
	_, one := o.Disabled[Disabled{id, consumer}]
	return all || one
}
