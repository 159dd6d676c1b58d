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
		"rome": "cpu 8: 100% of 5 is a pool of 5, 0 committed, 5 remaining; it has 0; policy gold is paused for it, and it keeps 8",
		"oslo": "cpu 0: 100% of 5 is a pool of 5, 0 committed, 5 remaining; it has 0; policy gold is paused for it, and it had nothing before",
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

func TestAPauseForOneConsumerLeavesTheOthersAlone(t *testing.T) {
	c := newCluster("n1")
	begin := time.Unix(1_000_000, 0)
	evaluate := func(prev *Result, now time.Time, edits ...func(*Policy)) *Result {
		in := c.input(consumers("oslo", "paris", "rome"), ofNodes("gold", edits...))
		in.Now = now
		return Evaluate(in.After(prev))
	}
	pausedFor := func(p *Policy) {
		p.PausedConsumers = map[string]int64{"rome": begin.Add(time.Hour).Unix(), "oslo": 0}
	}
	before := evaluate(nil, begin)
	for _, step := range []struct {
		after time.Duration
		rome  int64
		again time.Duration
	}{{time.Minute, 8000, 59 * time.Minute}, {time.Hour, 4000, 0}} {
		r := evaluate(before, begin.Add(step.after), pausedFor, percent(50))
		for id, want := range map[string]int64{"rome": step.rome, "oslo": 8000, "paris": 4000, "anyone": 4000} {
			if got, _ := r.Of(id).Offers[0].Amount(capacity.CPU); got != want {
				t.Errorf("after %v: %s is offered %d, want %d", step.after, id, got, want)
			}
		}
		if r.Again != step.again {
			t.Errorf("after %v: evaluates again after %v, want %v", step.after, r.Again, step.again)
		}
		if report := r.Reports["gold"]; report.Outcome != Offering || slices.Contains(report.Paused, "rome") != (step.again > 0) || !slices.Contains(report.Paused, "oslo") {
			t.Errorf("after %v: %v, paused for %v", step.after, report.Outcome, report.Paused)
		}
	}
}

func TestAPauseForAConsumerThatHasNothingIsNoLackOfThePolicy(t *testing.T) {
	ofNobody := func(p *Policy) { p.PausedConsumers = map[string]int64{"rome": 0} }
	amounts := capacity.Amounts{capacity.CPU: 1000, capacity.Memory: gi, capacity.Pods: 10}
	for name, p := range map[string]Policy{"fixed": fixed("gold", amounts, ofNobody), "nodes": ofNodes("gold", ofNobody)} {
		c := newCluster("n1")
		r := c.evaluate(nil, consumers("oslo", "rome"), p)
		report := r.Reports["gold"]
		if got, _ := r.Of("rome").Offers[0].Amount(capacity.CPU); got != 0 {
			t.Errorf("%s: rome is offered %d", name, got)
		}
		if report.Outcome != Offering || len(report.Missing)+len(report.Exhausted) > 0 || !slices.Equal(report.Paused, []string{"rome"}) {
			t.Errorf("%s: outcome %v, missing %v, exhausted %v, paused %v", name, report.Outcome, report.Missing, report.Exhausted, report.Paused)
		}
		if report.Consumers[0].ID != "rome" {
			t.Errorf("%s: %s is listed first", name, report.Consumers[0].ID)
		}
	}
}
