package offer

import (
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// clock lets time pass between evaluations.
type clock struct {
	cluster
	now   time.Time
	grace time.Duration
	Awaiting
	*Result
}

func newClock(nodes ...string) *clock {
	return &clock{cluster: newCluster(nodes...), now: time.Unix(1_000_000, 0)}
}

// after evaluates after a time.
func (c *clock) after(d time.Duration, known []Consumer, policies ...Policy) {
	c.now = c.now.Add(d)
	in := c.input(known, policies...)
	in.Now, in.Grace = c.now, c.grace
	c.Update(&in)
	c.Result = Evaluate(in.After(c.Result))
}

func TestWhoComesAfterAClassIsWithdrawnAndLeavesIsForgotten(t *testing.T) {
	c := newClock()
	standard := fixed("standard", capacity.Amounts{"cpu": 1000})
	c.after(0, consumers("rome"), standard, fixed("gold", capacity.Amounts{"cpu": 1}, class("gold")))
	c.after(time.Second, consumers("rome"), standard)
	c.after(InheritedFor, consumers("rome"), standard)
	for i := range 10 {
		c.after(time.Second, consumers(fmt.Sprint("peer-", i), "rome"), standard)
		c.after(time.Second, consumers("rome"), standard)
		expect(t, "consumers with an entry", c.Readable().Len(), 1)
	}
	expect(t, "rome", offered(c.Result, "rome")["gold"], capacity.Amounts{"cpu": 0})
}

func TestAConsumerThatLeftIsNotKnownAndReadsZerosForAWeek(t *testing.T) {
	c := newClock()
	standard := fixed("standard", capacity.Amounts{"cpu": 1000})
	more := fixed("more", capacity.Amounts{"cpu": 2000, "gpu": 1}, scope(Scope{Selector: inZone("a")}), priority(1))
	gold := fixed("gold", capacity.Amounts{"cpu": 1}, scope(Scope{Selector: inZone("a")}), class("gold"))
	c.after(0, []Consumer{{ID: "oslo", Labels: map[string]string{"zone": "a"}}}, standard, more, gold)
	left := map[string]capacity.Amounts{"": {"cpu": 1000, "gpu": 0}, "gold": {"cpu": 0}}
	for _, d := range []time.Duration{time.Second, time.Hour, OwedFor - time.Hour - time.Second} {
		c.after(d, nil, standard, more, gold)
		expect(t, "known", c.Entries.Len(), 0)
		expect(t, "oslo", offered(c.Result, "oslo"), left)
		expect(t, "explained", len(c.Explainer().Of("oslo")), 2)
		expect(t, "shown", len(Shown(c.Explainer().Of("oslo"))), 1)
	}
	expect(t, "the next change", c.Again, time.Second)
	c.after(c.Again, nil, standard, more, gold)
	expect(t, "remembered", c.Readable().Len(), 0)
	expect(t, "oslo", offered(c.Result, "oslo"), map[string]capacity.Amounts{"": {"cpu": 1000}})
	expect(t, "the next change", c.Again, time.Duration(0))
}

func TestTheZerosOfAClassEndAfterAWeekUnlessSomethingIsHeld(t *testing.T) {
	c := newClock("n1")
	c.pod("a", "n1", "lima", 2000)
	gold := fixed("gold", capacity.Amounts{"cpu": 4000}, class("gold"))
	known := consumers("lima", "rome")
	c.after(0, known, gold)
	c.after(time.Second, known)
	for range 2 {
		expect(t, "shown of lima", len(Shown(c.Explainer().Of("lima"))), 1)
		expect(t, "shown of rome", len(Shown(c.Explainer().Of("rome"))), 0)
		expect(t, "lima", offered(c.Result, "lima"), map[string]capacity.Amounts{"gold": {"cpu": 2000}})
		expect(t, "rome", offered(c.Result, "rome"), map[string]capacity.Amounts{"gold": {"cpu": 0}})
		c.after(OwedFor/2-time.Second, known)
	}
	c.after(2*time.Second, known)
	expect(t, "lima, whose pods run", offered(c.Result, "lima"), map[string]capacity.Amounts{"gold": {"cpu": 2000}})
	expect(t, "rome, after a week", offered(c.Result, "rome"), map[string]capacity.Amounts{})
	expect(t, "anybody, after a week", offered(c.Result, "anybody"), map[string]capacity.Amounts{})
	c.DeletePod("a")
	c.after(0, known)
	c.after(OwedFor-time.Second, known)
	expect(t, "lima, whose pods have ended", offered(c.Result, "lima"), map[string]capacity.Amounts{"gold": {"cpu": 0}})
	c.after(time.Second, known)
	expect(t, "lima, a week later", offered(c.Result, "lima"), map[string]capacity.Amounts{})
}

func TestWhatAConsumerNeverHadIsNotHeldAfterARestart(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 2000)
	silver := fixed("silver", capacity.Amounts{"cpu": 4000, "memory": 1}, class("silver"))
	in := c.input(consumers("oslo", "rome"), silver)
	in.Now = time.Unix(1_000_000, 0)
	in.Recorded = []PreviousOffers{
		{Policy: "silver", Class: "silver", Complete: true, Names: []string{"cpu", "memory"}, Offers: map[string]capacity.Amounts{"rome": {"cpu": 4000, "memory": 1}}},
		{Class: "gold", Names: []string{"cpu", "memory"}, Withdrawn: 1_000_000 - 3600, Anyone: true, Complete: true, Offers: map[string]capacity.Amounts{"oslo": {"cpu": 0, "memory": 0}}},
	}
	r := Evaluate(in)
	now := capacity.Amounts{"cpu": 4000, "memory": 1}
	zeros := capacity.Amounts{"cpu": 0, "memory": 0}
	expect(t, "rome", offered(r, "rome"), map[string]capacity.Amounts{"silver": now})
	expect(t, "oslo", offered(r, "oslo"), map[string]capacity.Amounts{"silver": now, "gold": zeros})
	expect(t, "anybody", offered(r, "anybody"), map[string]capacity.Amounts{"silver": now, "gold": zeros})
	in.Recorded[1].Complete = false
	r = Evaluate(in)
	expect(t, "rome, of a record that lists not everybody", offered(r, "rome"), map[string]capacity.Amounts{"silver": now, "gold": zeros})
}

func TestAResourceTakenOutOfAPolicyIsReadAndNotShown(t *testing.T) {
	c := newClock("n1")
	c.SetPod(capacity.Pod{Key: "a", Node: "n1", Consumer: "lima", Requests: capacity.Amounts{"gpu": 1}})
	known := consumers("lima", "rome")
	c.after(0, known, fixed("p", capacity.Amounts{"cpu": 1000, "gpu": 2}))
	c.after(time.Second, known, fixed("p", capacity.Amounts{"cpu": 1000}, version("2")))
	shown := func(id string) (names []string) {
		for _, x := range Shown(c.Explainer().Of(id)) {
			for i, a := range x.Amounts {
				expect(t, "step", x.Now[i].Resource, a.Resource)
				names = append(names, a.Resource)
			}
		}
		return names
	}
	expect(t, "rome reads", offered(c.Result, "rome")[""], capacity.Amounts{"cpu": 1000, "gpu": 0})
	expect(t, "shown of rome", shown("rome"), []string{"cpu"})
	expect(t, "shown of lima, whose pod requests it", shown("lima"), []string{"cpu", "gpu"})

	c = newClock()
	c.node("n1", capacity.Amounts{"cpu": 1000, "gpu": 2})
	c.after(0, known, ofNodes("p"))
	c.node("n1", capacity.Amounts{"cpu": 1000})
	c.after(time.Second, known, ofNodes("p"))
	expect(t, "shown of what no node lists any more", shown("rome"), []string{"cpu", "gpu"})
}
