package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func stopped(p *Policy) { p.Stopped = true }

func TestAStopTakesBackWhatReclaimDoesNotKeep(t *testing.T) {
	for _, tt := range []struct {
		reclaim    Reclaim
		rome, lima int64
	}{{Unused, 3000, 0}, {Evict, 0, 0}, {Retain, 3000, 5000}} {
		c := newCluster("n1", "n2")
		c.pod("p", "n1", "rome", 3000)
		evaluate := func(prev *Result, edits ...func(*Policy)) *Result {
			// The second policy does not take over.
			gold := ofNodes("gold", append(edits, reclaim(tt.reclaim))...)
			in := c.input(consumers("lima", "oslo", "rome"), gold, ofNodes("silver", priority(-1)))
			in.Grants = map[string]map[string]capacity.Amounts{"": {"lima": {capacity.CPU: 5000}}}
			return Evaluate(in.After(prev))
		}
		active := evaluate(nil)
		during := evaluate(active, stopped, version("2"))
		for id, want := range map[string]int64{"rome": tt.rome, "oslo": 0, "lima": tt.lima, "anyone": 0} {
			if got, listed := during.Of(id).Offers[0].Amount(capacity.CPU); got != want || !listed {
				t.Errorf("reclaim %v: %s is offered %d, want %d", tt.reclaim, id, got, want)
			}
		}
		if got := during.Reports["gold"].Outcome; got != Stopped {
			t.Errorf("outcome %v, want %v", got, Stopped)
		}
		after := evaluate(during, version("3"))
		for _, id := range []string{"lima", "oslo", "rome"} {
			expect(t, id+" after the stop", offered(after, id), offered(active, id))
		}
	}
}

func TestAStopIsExplained(t *testing.T) {
	c := newCluster("n1")
	c.pod("p", "n1", "rome", 3000)
	before := c.evaluate(nil, consumers("oslo", "rome"), ofNodes("gold"))
	r := c.evaluate(before, consumers("oslo", "rome"), ofNodes("gold", stopped))
	for id, want := range map[string]string{
		"rome": "cpu 3: 100% of 8 is a pool of 8, 3 committed, 5 remaining; it has 3; the policy is stopped; " +
			"held at 3 by reclaim: its pods request 3",
		"oslo": "cpu 0: 100% of 8 is a pool of 8, 3 committed, 5 remaining; it has 0; the policy is stopped",
	} {
		if got := r.Explainer().Of(id)[0].BecauseOf(capacity.CPU); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", id, got, want)
		}
	}
}
