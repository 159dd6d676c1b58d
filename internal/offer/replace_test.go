package offer

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

func TestOffersStayWhileTheirPolicyIsReplaced(t *testing.T) {
	gold := fixed("gold", capacity.Amounts{"cpu": 8000, "memory": 1}, class("gold"), reclaim(Evict), func(p *Policy) {
		p.Overrides = []Override{{Consumers: ids("oslo"), Fixed: capacity.Amounts{"cpu": 9000}}}
	})
	other := fixed("other", capacity.Amounts{"cpu": 1000})
	known := consumers("rome") // Oslo is known only while a policy names it.
	c := newClock("n1")
	c.grace = ReplaceGrace
	c.pod("a", "n1", "rome", 6000)
	c.after(0, known, gold, other)
	before := c.Result
	expectSame := func(name string) {
		t.Helper()
		for _, id := range []string{"rome", "oslo", "anybody"} {
			expect(t, name+": "+id, offered(c.Result, id), offered(before, id))
			expect(t, name+": "+id+" reads the same", c.Of(id).SameAmounts(before.Of(id)), true)
			expect(t, name+": "+id+" is known", c.Known(id), id != "anybody")
		}
	}
	c.after(time.Second, known, other)
	expectSame("deleted")
	expect(t, "the next change", c.Again, ReplaceGrace)
	for _, x := range c.Explainer().Of("rome") {
		if x.Class == "gold" {
			expect(t, "because", x.Because()[0],
				"cpu 8: kept for 10s, in case the policy is applied again: policy gold is gone or invalid")
		}
	}
	deleted := c.Result
	c.after(ReplaceGrace-time.Second, consumers("lima", "rome"), other)
	expectSame("deleted for 9 s")
	expect(t, "the same entry", c.Of("rome") == deleted.Of("rome"), true)
	expect(t, "a consumer that becomes known", offered(c.Result, "lima"), offered(before, "anybody"))
	gold.Version = "2"
	c.after(0, known, gold, other)
	expectSame("applied again")
	expect(t, "withdrawn", c.Of("rome").Offers[1].Withdrawn(), false)
	expect(t, "the next change", c.Again, time.Duration(0))

	c.after(time.Hour, known, other)
	c.after(ReplaceGrace-time.Second, known, other)
	expectSame("deleted again")
	c.after(c.Again, known, other)
	for _, id := range []string{"rome", "oslo", "anybody"} {
		expect(t, id+", after the grace", offered(c.Result, id)["gold"], capacity.Amounts{"cpu": 0, "memory": 0})
	}
	expect(t, "consumers with an entry", c.Readable().Len(), 1)
	// A list of policies that lost one for a moment, with the same version.
	c.after(time.Second, known, gold, other)
	before = c.Result
	c.after(time.Second, known, other)
	c.after(time.Second, known, gold, other)
	expectSame("the same version")
	expect(t, "withdrawn", c.Of("rome").Offers[1].Withdrawn(), false)
}

func TestAClockThatIsSetBackLetsAPolicyBeAwaitedForTheGraceAgainAtMost(t *testing.T) {
	gold := fixed("gold", capacity.Amounts{"cpu": 8000}, class("gold"))
	for _, after := range []time.Duration{0, ReplaceGrace / 2} {
		c := newClock()
		c.grace = ReplaceGrace
		c.after(0, consumers("rome"), gold)
		c.after(time.Second, consumers("rome"))
		c.after(after-time.Hour, consumers("rome"))
		expect(t, "set back", offered(c.Result, "rome")["gold"]["cpu"], int64(8000))
		expect(t, "the next change", c.Again, ReplaceGrace)
		c.after(c.Again, consumers("rome"))
		expect(t, "after the grace again", offered(c.Result, "rome")["gold"]["cpu"], int64(0))
	}
}

func TestOnlyAPolicyThatIsGoneIsAwaited(t *testing.T) {
	amounts := capacity.Amounts{"cpu": 8000}
	before := fixed("p", amounts, class("gold"))
	for name, tc := range map[string]struct {
		after Policy
		want  int64
	}{
		"a dry run":              {fixed("p", amounts, class("gold"), dryRun), 0},
		"other consumers":        {fixed("p", amounts, class("gold"), scope(ids("oslo"))), 0},
		"another class":          {fixed("p", amounts), 0},
		"another policy decides": {fixed("q", capacity.Amounts{"cpu": 3000}, class("gold")), 3000},
		"deleted":                {fixed("q", amounts), 8000},
	} {
		c := newClock()
		c.grace = ReplaceGrace
		c.after(0, consumers("rome"), before)
		c.after(time.Second, consumers("rome"), tc.after)
		got, _ := offered(c.Result, "rome")["gold"]["cpu"]
		expect(t, name, got, tc.want)
	}
	// What an earlier process offered is not known well enough.
	c := newClock()
	c.grace = ReplaceGrace
	in := c.input(consumers("rome"))
	in.Now, in.Grace = c.now, c.grace
	in.Recorded = []PreviousOffers{{Policy: "p", Class: "gold", Complete: true, Offers: map[string]capacity.Amounts{"rome": amounts}}}
	expect(t, "after a restart", offered(Evaluate(in), "rome")["gold"]["cpu"], int64(0))
}
