package grant

import (
	"testing"

	"proffer.dev/proffer/internal/offer"
)

func paused(p *offer.Policy) { p.Paused = true }

func TestAPausedPolicyNeitherGrantsNorTakesBack(t *testing.T) {
	evicting := func(p *offer.Policy) { p.Reclaim, p.Max = offer.Evict, cpu(1) }
	w := newWorld(gold(paused, evicting)).node("n", "a", cpu(8)).
		slice(having("has", "rome", 1, 4)).slice(having("wants more", "rome", 2, 1)).slice(asking("is new", "oslo", 3, 2))
	w.slices[1].Request = cpu(3)
	answers := w.settle(t)
	w.want(t, "has cpu=4; wants more cpu=1; is new -")
	for i, want := range []string{
		"granted in full by policy standard",
		"granted 1m of 3m cpu: policy standard is paused for this cluster and grants it nothing new",
		"denied: 2m cpu asked, but policy standard is paused for this cluster and grants it nothing new",
	} {
		if got := becauseOf(&answers[i], ""); got != want {
			t.Errorf("%s: got %q, want %q", w.slices[i].Key, got, want)
		}
	}
	for i, want := range []string{ReasonIncomplete, ReasonPaused, ReasonPaused} {
		if got := answers[i].Reason(); got != want {
			t.Errorf("%s: got reason %s, want %s", w.slices[i].Key, got, want)
		}
	}

	// What a consumer gives back is free for others, and stays away from it.
	w.slices[0].Request = cpu(1)
	w.settle(t)
	w.slices[0].Request = cpu(4)
	w.settle(t)
	w.want(t, "has cpu=1; wants more cpu=1; is new -")

	w.policies = []offer.Policy{gold()}
	w.settle(t)
	w.want(t, "has cpu=4; wants more cpu=3; is new cpu=1")
}

func TestNothingIsAvailableOfAPausedPolicy(t *testing.T) {
	w := newWorld(gold(paused)).node("n", "a", cpu(8)).slice(having("s", "rome", 1, 3))
	for _, p := range Prospects(w.terms(), w.slices, []Asker{{"rome", "gold"}, {"oslo", "gold"}}) {
		for _, r := range p.Resources {
			if r.Amount != 0 || r.Bound != ByPause {
				t.Errorf("got %+v", r)
			}
		}
	}
}

func TestAPauseForOneConsumerNeitherGrantsNorTakesBack(t *testing.T) {
	ofRome := func(p *offer.Policy) {
		p.PausedConsumers, p.Reclaim, p.Max = map[string]int64{"rome": 0}, offer.Evict, cpu(2)
	}
	w := newWorld(gold(ofRome)).node("n", "a", cpu(8)).
		slice(having("has", "rome", 1, 4)).slice(asking("asks", "rome", 2, 1)).slice(having("others", "oslo", 3, 3)).slice(asking("new", "lima", 4, 1))
	answers := w.settle(t)
	w.want(t, "has cpu=4; asks -; others cpu=2; new cpu=1")
	if got := answers[1].Reason(); got != ReasonPaused {
		t.Errorf("got reason %s", got)
	}
}
