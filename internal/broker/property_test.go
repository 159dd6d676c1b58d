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
	measures  = []Measure{uptime, latency, cpuCost, cpuLeft, carbon, green}
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

var (
	anyRequirements = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Requirement {
		return Requirement{rapid.SampledFrom(measures).Draw(t, "required"), rapid.Int64Range(0, 100).Draw(t, "bound")}
	}), 0, 2)
	anyPreferences = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Preference {
		return Preference{rapid.SampledFrom(measures).Draw(t, "preferred"), rapid.Int64Range(1, 100).Draw(t, "weight")}
	}), 0, 3)
	anyPairs = rapid.MapOfN(rapid.Custom(func(t *rapid.T) Pair {
		return Pair{anyID.Draw(t, "provider"), rapid.SampledFrom([]string{"", "rome", "oslo"}).Draw(t, "for")}
	}), rapid.Just(struct{}{}), 0, 2)
)

var anyOrchestration = rapid.Custom(func(t *rapid.T) *Orchestration {
	return &Orchestration{
		Count:    rapid.IntRange(0, 3).Draw(t, "count"),
		Stay:     Stay{time.Duration(rapid.IntRange(0, 5).Draw(t, "stay")) * time.Minute, rapid.Int64Range(0, 50).Draw(t, "gain")},
		Require:  anyRequirements.Draw(t, "require"),
		Prefer:   anyPreferences.Draw(t, "prefer"),
		Disabled: anyPairs.Draw(t, "disabled"), Enabled: anyPairs.Draw(t, "enabled"),
		DisabledByDefault: rapid.IntRange(0, 3).Draw(t, "default") == 0,
		ConsumersChoose:   rapid.Bool().Draw(t, "consumers choose"),
	}
})

var anyWish = rapid.Custom(func(t *rapid.T) Wish {
	w := Wish{
		Require: anyRequirements.Draw(t, "require"), Prefer: anyPreferences.Draw(t, "prefer"),
		Count: rapid.IntRange(0, 3).Draw(t, "count"),
	}
	if rapid.Bool().Draw(t, "lists") {
		w.Providers = rapid.MapOfN(anyID, rapid.Just(struct{}{}), 0, 3).Draw(t, "providers")
	}
	return w
})

// layerOf says in its own words what the package comment says of which providers qualify: ByRank.
func layerOf(o *Orchestration, consumer string, wish Wish, p Provider, was Previous) Layer {
	_, has := was.Chosen[p.ID]
	isIn := func(pairs map[Pair]struct{}) bool {
		for pair := range pairs {
			if pair.Provider == p.ID && (pair.Consumer == "" || pair.Consumer == consumer) {
				return true
			}
		}
		return false
	}
	fulfils := func(require []Requirement) bool {
		for _, r := range require {
			v, measured := p.Values[r.Measure]
			if has && r.KPI == Remaining {
				continue
			}
			less := r.KPI == Latency || r.KPI == Price || r.KPI == MeasuredLower
			if !measured || less && v > r.Bound || !less && v < r.Bound {
				return false
			}
		}
		return true
	}
	switch {
	case isIn(o.Disabled) || o.DisabledByDefault && !isIn(o.Enabled):
		return Admin
	case p.ID == consumer || p.Unusable != "" || !fulfils(o.Require):
		return ByOrchestration
	case !o.ConsumersChoose:
		return ByRank
	}
	if _, listed := wish.Providers[p.ID]; wish.Providers != nil && !listed || !fulfils(wish.Require) {
		return ByConsumer
	}
	return ByRank
}

func TestWhatAlwaysHoldsOfAChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := choosingFor{anyOrchestration.Draw(t, "orchestration"), anyID.Draw(t, "consumer"), anyWish.Draw(t, "wish")}
		now, was := start, Previous{}
		for step := range 6 {
			providers := anyProviders.Draw(t, fmt.Sprint("providers ", step))
			got := Choose(h.o, h.consumer, h.wish, providers, was, now)
			h.checkChoice(t, providers, was, got)
			h.checkStay(t, providers, was, got, now)

			shuffled := rapid.Permutation(providers).Draw(t, "order")
			if diff := cmp.Diff(got, Choose(h.o, h.consumer, h.wish, shuffled, was, now)); diff != "" {
				t.Fatalf("the order matters:\n%s", diff)
			}
			again := Choose(h.o, h.consumer, h.wish, providers, after(got), now)
			if diff := cmp.Diff(got.IDs(), again.IDs()); h.o.Stay.For > 0 && diff != "" {
				t.Fatalf("the same choice again differs:\n%s", diff)
			}
			was, now = after(got), now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds"))*time.Second)
		}
	})
}

// choosingFor has what stays the same in a history.
type choosingFor struct {
	o        *Orchestration
	consumer string
	wish     Wish
}

func (h choosingFor) layerOf(p Provider, was Previous) Layer {
	return layerOf(h.o, h.consumer, h.wish, p, was)
}

// checkChoice checks that each provider has one place, each chosen one qualifies, and each other one is
// rejected by the layer that the package comment says.
func (h choosingFor) checkChoice(t *rapid.T, providers []Provider, was Previous, got Choice) {
	places, rejected := map[string]int{}, map[string]Layer{}
	for _, c := range got.Chosen {
		places[c.ID]++
		if c.Score < 0 || c.Score > 1000 {
			t.Fatalf("%s scores %d", c.ID, c.Score)
		}
	}
	for _, r := range got.Rejected {
		places[r.ID]++
		rejected[r.ID] = r.By
		if r.Because == "" {
			t.Fatalf("%s is rejected without a reason", r.ID)
		}
	}
	qualify := 0
	for _, p := range providers {
		want := h.layerOf(p, was)
		if want == ByRank {
			qualify++
		}
		by, isRejected := rejected[p.ID]
		switch {
		case places[p.ID] != 1:
			t.Fatalf("%s has %d places", p.ID, places[p.ID])
		case !isRejected && want != ByRank:
			t.Fatalf("%s is chosen, and %s rejects it", p.ID, want)
		case isRejected && by != want:
			t.Fatalf("%s is rejected by %s, want %s", p.ID, by, want)
		}
	}
	for _, most := range []int{h.o.Count, h.wish.Count} {
		if most > 0 && len(got.Chosen) > most && (h.o.ConsumersChoose || most == h.o.Count) {
			t.Fatalf("%d are chosen of %d", len(got.Chosen), most)
		}
	}
	if len(places) != len(providers) || len(got.Chosen) == 0 && qualify > 0 {
		t.Fatalf("%d places for %d providers, of which %d qualify and %d are chosen",
			len(places), len(providers), qualify, len(got.Chosen))
	}
}

// checkStay checks that nothing flaps within Stay.For.
func (h choosingFor) checkStay(t *rapid.T, providers []Provider, was Previous, got Choice, now time.Time) {
	chosen := map[string]time.Time{}
	for _, c := range got.Chosen {
		chosen[c.ID] = c.Since
		since, before := was.Chosen[c.ID]
		if before && !c.Since.Equal(since) || !before && !c.Since.Equal(now) {
			t.Fatalf("%s is chosen since %v", c.ID, c.Since)
		}
		if left, lost := was.Left[c.ID]; lost && now.Sub(left) < h.o.Stay.For && len(got.Chosen) > 1 {
			others := slices.ContainsFunc(got.Chosen, func(other Chosen) bool { _, lost := was.Left[other.ID]; return !lost })
			if others {
				t.Fatalf("%s is back too early", c.ID)
			}
		}
	}
	for _, p := range providers {
		since, before := was.Chosen[p.ID]
		_, still := chosen[p.ID]
		if before && !still && h.layerOf(p, was) == ByRank && now.Sub(since) < h.o.Stay.For {
			t.Fatalf("%s lost its place after %v", p.ID, now.Sub(since))
		}
	}
}
