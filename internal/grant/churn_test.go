package grant

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// churn is a pool of 100 cpu. The slices ask for more than it has, and 5 times a second a local pod
// of 1 cpu is created or deleted.
type churn struct {
	*world
	random *rand.Rand
	stable *offer.Stabilizer
	now    time.Duration
	pods   []string
	made   int
	// rewritten holds the times at which each slice was rewritten, zeroed when it was last lowered
	// to 0.
	rewritten map[string][]time.Duration
	zeroed    map[string]time.Duration
	// short is when more began to be granted than the pool has, -1 if that is not so.
	short time.Duration
}

func newChurn(count int, stable *offer.Stabilizer) *churn {
	c := &churn{
		world:  newWorld(gold(func(p *offer.Policy) { p.ThresholdPercent = 5 })).node("n1", "a", capacity.Amounts{"cpu": 100_000}),
		random: rand.New(rand.NewPCG(20261122, uint64(count))), stable: stable,
		rewritten: map[string][]time.Duration{}, zeroed: map[string]time.Duration{}, short: -1,
	}
	for i := range count {
		c.slice(asking(fmt.Sprintf("slice-%04d", i), fmt.Sprintf("consumer-%d", i%10), int64(i), 120_000/int64(count)))
	}
	for range 10 {
		c.comeOrGo()
	}
	return c
}

// comeOrGo creates or deletes a pod. Mostly there are between 5 and 15.
func (c *churn) comeOrGo() {
	if c.random.IntN(20) < len(c.pods) {
		i := c.random.IntN(len(c.pods))
		c.ledger.DeletePod(c.pods[i])
		c.pods[i] = c.pods[len(c.pods)-1]
		c.pods = c.pods[:len(c.pods)-1]
		return
	}
	c.made++
	name := fmt.Sprintf("pod-%d", c.made)
	c.pods = append(c.pods, name)
	c.pod(name, "n1", "", cpu(1000))
}

// evaluate decides, writes all answers, and records which slices were rewritten.
func (c *churn) evaluate(t *testing.T) {
	t.Helper()
	in := offer.Input{Policies: c.policies, View: c.ledger.View(offer.Selections(c.policies))}
	if c.stable != nil {
		c.stable.Stabilize(time.Unix(0, 0).Add(c.now), &in)
	}
	var sum int64
	answers := Allocate(offer.NewAllocationInput(in), c.slices)
	for i := range answers {
		s := &c.slices[i]
		had := s.Granted["cpu"]
		was, before := s.Granted != nil, maps.Clone(s.Granted)
		c.write(i, &answers[i])
		sum += s.Granted["cpu"]
		if !was || maps.Equal(before, s.Granted) {
			continue
		}
		c.rewritten[s.Key] = append(c.rewritten[s.Key], c.now)
		if at, zeroed := c.zeroed[s.Key]; zeroed && had == 0 && c.stable != nil && c.now-at < offer.RaisePause {
			t.Errorf("%v: %s fell to 0 at %v and was raised again", c.now, s.Key, at)
		}
		if s.Granted["cpu"] == 0 {
			c.zeroed[s.Key] = c.now
		}
	}
	switch there := 100_000 - 1000*int64(len(c.pods)); {
	case sum <= there:
		c.short = -1
	case c.short < 0:
		c.short = c.now
	case c.now-c.short > offer.DipBound:
		t.Errorf("%v: %d granted of a pool of %d, since %v", c.now, sum, there, c.short)
	}
}

// mostInAMinute returns the largest number of times that one slice was rewritten within a minute.
func (c *churn) mostInAMinute() (most int) {
	for _, times := range c.rewritten {
		for first := range times {
			n := 0
			for _, at := range times[first:] {
				if at-times[first] < time.Minute {
					n++
				}
			}
			most = max(most, n)
		}
	}
	return most
}

func TestPodsThatComeAndGoDoNotRewriteGrants(t *testing.T) {
	for _, count := range []int{1, 3, 20, 1000} {
		t.Run(fmt.Sprint(count, " slices"), func(t *testing.T) {
			long := 10 * time.Minute
			if count == 1000 {
				long = 4 * time.Minute
			}
			c := newChurn(count, &offer.Stabilizer{})
			for c.now < long {
				c.evaluate(t)
				c.now += 200 * time.Millisecond
				c.comeOrGo()
			}
			const few = 3
			if most := c.mostInAMinute(); most > few {
				t.Errorf("one slice was rewritten %d times in a minute, want at most %d", most, few)
			}

			bare := newChurn(count, nil)
			for bare.now < 30*time.Second {
				bare.evaluate(t)
				bare.now += 200 * time.Millisecond
				bare.comeOrGo()
			}
			if most := bare.mostInAMinute(); most < 10 {
				t.Errorf("without levels one slice was rewritten only %d times in half a minute: the churn is too small", most)
			}
			t.Logf("%d slices rewritten in %v, at most %d times in a minute; without levels, %d times in 30 s", len(c.rewritten), long, c.mostInAMinute(), bare.mostInAMinute())
		})
	}
}
