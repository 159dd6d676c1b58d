package offer

import (
	"slices"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

func paused(p *Policy) { p.Paused = true }

func TestAPauseKeepsWhatConsumersHave(t *testing.T) {
	cpuOf := func(r *Result, id string) int64 {
		value, _ := r.Of(id).Offers[0].Amount(capacity.CPU)
		return value
	}
	want := func(t *testing.T, r *Result, want map[string]int64) {
		t.Helper()
		for id, amount := range want {
			if got := cpuOf(r, id); got != amount {
				t.Errorf("%q is offered %d, want %d", id, got, amount)
			}
		}
	}
	c := newCluster("n1", "n2")
	c.pod("p", "n1", "rome", 3000)
	known := consumers("oslo", "rome")
	active := c.evaluate(nil, known, ofNodes("gold"))
	want(t, active, map[string]int64{"rome": 16_000, "oslo": 13_000, "anyone": 13_000})

	// An edit, a node that fails, and use change nothing. Who comes now gets nothing, or what its pods use.
	c.cordon("n2")
	c.pod("q", "n1", "lima", 1000)
	during := c.evaluate(active, append(known, consumers("paris")...), ofNodes("gold", paused, percent(1), reclaim(Evict)))
	want(t, during, map[string]int64{"rome": 16_000, "oslo": 13_000, "paris": 0, "lima": 1000, "anyone": 0})
	if got := during.Reports["gold"].Outcome; got != Paused {
		t.Errorf("outcome %v, want %v", got, Paused)
	}

	after := c.evaluate(during, known, ofNodes("gold"))
	want(t, after, map[string]int64{"rome": 7000, "oslo": 4000, "lima": 5000, "anyone": 4000})
}

func TestAPauseExplainsWhatItKeeps(t *testing.T) {
	c := newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), ofNodes("gold"))
	c.pod("local", "n1", "", 3000)
	r := c.evaluate(before, consumers("oslo", "rome"), ofNodes("gold", paused))
	for id, want := range map[string]string{
		"rome": "cpu 8: 100% of 5 is a pool of 5, 0 committed, 5 remaining; it has 0; policy gold is paused, and it keeps 8",
		"oslo": "cpu 0: 100% of 5 is a pool of 5, 0 committed, 5 remaining; it has 0; policy gold is paused, and it had nothing before",
	} {
		if got := r.Explainer().Of(id)[0].BecauseOf(capacity.CPU); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", id, got, want)
		}
	}
}

func TestAPauseEndsAtItsTime(t *testing.T) {
	c := newCluster("n1")
	begin := time.Unix(1_000_000, 0)
	until := func(p *Policy) { p.Paused, p.PausedUntil = true, begin.Add(time.Hour).Unix() }
	evaluate := func(prev *Result, now time.Time, p Policy) *Result {
		in := c.input(consumers("rome"), p)
		in.Now = now
		return Evaluate(in.After(prev))
	}
	r := evaluate(nil, begin, ofNodes("gold"))
	r = evaluate(r, begin.Add(time.Minute), ofNodes("gold", until, percent(50)))
	if want := 59 * time.Minute; r.Again != want {
		t.Errorf("evaluates again after %v, want %v", r.Again, want)
	}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{59*time.Minute + 59*time.Second, 8000}, {time.Hour, 4000}, {2 * time.Hour, 4000}} {
		r = evaluate(r, begin.Add(step.after), ofNodes("gold", until, percent(50)))
		offered := r.Of("rome").Offers[0].Amounts
		if !slices.Contains(offered, Amount{capacity.CPU, step.want}) {
			t.Errorf("after %v: got %v, want %d", step.after, offered, step.want)
		}
	}
	if r.Again != 0 || r.Reports["gold"].Outcome != Offering {
		t.Errorf("after the pause: outcome %v, again after %v", r.Reports["gold"].Outcome, r.Again)
	}
}

// A consumer without an entry shares the one of everybody. Once it is known, the same entry is its own.
func TestAPauseKeepsWhatAConsumerSharesWithEverybody(t *testing.T) {
	c := newCluster("n1")
	r := c.evaluate(nil, nil, ofNodes("gold"))
	r = c.evaluate(r, consumers("rome"), ofNodes("gold"))
	r = c.evaluate(r, consumers("rome"), ofNodes("gold", paused))
	if got, _ := r.Of("rome").Offers[0].Amount(capacity.CPU); got != 8000 {
		t.Errorf("rome is offered %d, and had 8000", got)
	}
	if got, _ := r.Default.Offers[0].Amount(capacity.CPU); got != 0 {
		t.Errorf("anyone is offered %d", got)
	}
}
