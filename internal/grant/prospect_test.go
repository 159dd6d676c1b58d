package grant

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

func TestANewSliceOfWhatIsAvailableIsGrantedAndOfMoreIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(gold()).node("a1", "a", capacity.Amounts{"cpu": 20, "memory": 20}).node("b1", "b", capacity.Amounts{"cpu": 9, "gpu": 2})
		for range rapid.IntRange(4, 30).Draw(t, "steps") {
			w.happen(t)
			if rapid.Bool().Draw(t, "answered") {
				w.step()
			}
			if rapid.IntRange(0, 3).Draw(t, "ends here") == 0 {
				break
			}
		}
		terms := w.terms()
		asker := Asker{anyID.Draw(t, "asker"), anyClass.Draw(t, "asked class")}
		p := Prospects(terms, w.slices, []Asker{asker})[0]
		checkProspect(t, terms, w, asker, &p)
		if together := Prospects(terms, w.slices, []Asker{{"paris", "gold"}, asker, {"oslo", "silver"}})[1]; !slices.Equal(p.Resources, together.Resources) {
			t.Fatalf("next to others: %+v, alone: %+v", together, p)
		}
	})
}

// checkProspect asks for what is available, and for 1 more of each resource, on the same terms.
func checkProspect(t *rapid.T, terms *offer.AllocationInput, w *world, asker Asker, p *Prospect) {
	next := Slice{Key: "new", Consumer: asker.Consumer, Class: asker.Class, Created: 1 << 60}
	ask := func(amounts capacity.Amounts) Answer {
		next.Request = amounts
		answers := Allocate(terms, append(slices.Clip(w.slices), next))
		return answers[len(answers)-1]
	}
	if p.Policy == nil {
		if a := ask(capacity.Amounts{capacity.CPU: 1}); a.Policy != nil {
			t.Fatalf("policy %s decides, and there is no prospect", a.Policy.Name)
		}
		return
	}
	available := p.Amounts()
	something := slices.ContainsFunc(p.Resources, func(a Available) bool { return a.Amount > 0 })
	if a := ask(available); a.Ruling == offer.Admitted && something && (a.Verdict != Accept || !a.Whole() || !sameAmounts(a.Amounts(), available)) {
		t.Fatalf("of %v asked, %v is granted: %s", available, a.Amounts(), a.Explain(""))
	}
	for name := range available {
		if available[name] == 1<<63-1 {
			continue
		}
		more := maps.Clone(available)
		more[name]++
		if a := ask(more); a.Verdict == Accept && a.Whole() {
			t.Fatalf("of %s %d is available, and %d is granted", name, available[name], more[name])
		}
	}
	for _, name := range []string{"cpu", "memory", "pods", "gpu"} {
		if _, offered := available[name]; !offered {
			more := maps.Clone(available)
			more[name] = 1
			if a := ask(more); a.Whole() {
				t.Fatalf("%s is not in the prospect, and is granted", name)
			}
		}
	}
}

// sameAmounts ignores what is 0.
func sameAmounts(a, b capacity.Amounts) bool {
	some := func(of capacity.Amounts) capacity.Amounts {
		of = maps.Clone(of)
		maps.DeleteFunc(of, func(_ string, amount int64) bool { return amount == 0 })
		return of
	}
	return maps.Equal(some(a), some(b))
}

func TestAProspectSaysWhatLimitsIt(t *testing.T) {
	pool := newWorld(gold(func(p *offer.Policy) { p.Max = capacity.Amounts{"cpu": 6} })).node("n", "a", cpu(10))
	for _, tc := range []struct {
		name string
		of   *world
		want Available
	}{
		{"an empty pool", pool, Available{"cpu", 6, ByMax, 6}},
		{"a consumer with a slice", newWorld(pool.policies...).node("n", "a", cpu(10)).slice(having("s", "rome", 1, 4)), Available{"cpu", 2, ByMax, 6}},
		{"a pool that others hold", newWorld(pool.policies...).node("n", "a", cpu(10)).slice(having("s", "oslo", 1, 5)).slice(having("t", "paris", 2, 4)), Available{"cpu", 1, ByPool, 6}},
		{"a pool that is being given back", newWorld(gold()).node("n", "a", cpu(10)).slice(func() Slice {
			s := having("s", "oslo", 1, 8)
			s.Request = cpu(2)
			return s
		}()), Available{"cpu", 2, Awaited, 10}},
		{"fixed amounts", newWorld(offer.Policy{Name: "standard", Class: "gold", Fixed: cpu(4)}).slice(having("s", "rome", 1, 3)), Available{"cpu", 1, ByFixed, 4}},
	} {
		p := Prospects(tc.of.terms(), tc.of.slices, []Asker{{"rome", "gold"}})[0]
		if diff := cmp.Diff([]Available{tc.want}, p.Resources); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}
