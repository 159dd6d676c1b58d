package grant

import (
	"testing"

	"proffer.dev/proffer/internal/offer"
)

func stopped(p *offer.Policy) { p.Stopped = true }

func TestAStoppedPolicyGrantsNothingAndTakesBackByReclaim(t *testing.T) {
	for _, tt := range []struct {
		reclaim offer.Reclaim
		want    string
	}{
		{offer.Unused, "uses cpu=2; idle cpu=0; is new -"},
		{offer.Evict, "uses cpu=0; idle cpu=0; is new -"},
		{offer.Retain, "uses cpu=4; idle cpu=2; is new -"},
	} {
		by := func(p *offer.Policy) { p.Reclaim = tt.reclaim }
		w := newWorld(gold(stopped, by)).node("n", "a", cpu(8)).pod("p", "n", "rome", cpu(2)).
			slice(having("uses", "rome", 1, 4)).slice(having("idle", "lima", 2, 2)).slice(asking("is new", "oslo", 3, 2))
		answers := w.settle(t)
		w.want(t, tt.want)
		if got, want := becauseOf(&answers[2], ""), "denied: 2m cpu asked, but policy standard is stopped and grants nothing more"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := answers[2].Reason(); got != ReasonStopped {
			t.Errorf("got reason %s, want %s", got, ReasonStopped)
		}
		w.policies = []offer.Policy{gold(by)}
		w.settle(t)
		w.want(t, "uses cpu=4; idle cpu=2; is new cpu=2")
	}
}

func TestNothingIsAvailableOfAStoppedPolicy(t *testing.T) {
	w := newWorld(gold(stopped)).node("n", "a", cpu(8)).slice(having("s", "rome", 1, 3))
	for _, p := range Prospects(w.terms(), w.slices, []Asker{{"rome", "gold"}, {"oslo", "gold"}}) {
		if len(p.Resources) == 0 {
			t.Error("no resource is listed")
		}
		for _, r := range p.Resources {
			if r.Amount != 0 || r.Bound != ByStop || r.Ceiling != 0 {
				t.Errorf("got %+v", r)
			}
		}
	}
}
