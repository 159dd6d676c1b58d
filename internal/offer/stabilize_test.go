package offer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

// at returns the time d after the start of a test.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

// looked is one observation: what there is at a time, the level after it, and after how long to
// look again.
type looked struct {
	at    time.Duration
	there int64
	given int64
	again time.Duration
}

func TestLevels(t *testing.T) {
	for name, looks := range map[string][]looked{
		"a small dip that ends is not followed": {
			{0, 1000, 1000, 0}, {time.Second, 950, 1000, DipBound}, {20 * time.Second, 1000, 1000, 0}, {32 * time.Second, 1000, 1000, 0},
			{33 * time.Second, 920, 1000, DipBound},
		},
		"a small dip that lasts lowers the level to the least of it": {
			{0, 1000, 1000, 0}, {time.Second, 950, 1000, DipBound}, {11 * time.Second, 930, 1000, 20 * time.Second},
			{31 * time.Second, 960, 930, RaisePause},
		},
		"a dip that returns within the bound is one dip": {
			{0, 1000, 1000, 0}, {time.Second, 950, 1000, DipBound}, {2 * time.Second, 1000, 1000, 0}, {10 * time.Second, 990, 1000, 21 * time.Second},
			{12 * time.Second, 1000, 1000, 0}, {21 * time.Second, 995, 1000, 10 * time.Second}, {22 * time.Second, 1000, 1000, 0},
			{31 * time.Second, 1000, 950, RaisePause},
		},
		"a deep dip is followed immediately, and the recovery after a pause": {
			{0, 1000, 1000, 0}, {time.Second, 899, 899, 0}, {2 * time.Second, 1000, 899, RaisePause - time.Second},
			{RaisePause, 1000, 899, time.Second}, {RaisePause + time.Second, 1000, 1000, 0},
		},
		"a large rise is followed immediately if nothing was lowered": {
			{0, 1000, 1000, 0}, {time.Second, 1101, 1101, 0}, {2 * time.Second, 3000, 3000, 0},
		},
		"a small rise that lasts raises the level to the least of it": {
			{0, 1000, 1000, 0}, {time.Second, 1050, 1000, RaisePause}, {2 * time.Second, 1020, 1000, RaisePause - time.Second},
			{RaisePause + time.Second, 1030, 1020, RaisePause}, {2*RaisePause + time.Second, 1030, 1030, 0},
		},
		"an interrupted rise starts again": {
			{0, 1000, 1000, 0}, {time.Second, 1050, 1000, RaisePause}, {RaisePause, 1000, 1000, 0},
			{RaisePause + 2*time.Second, 1050, 1000, RaisePause},
		},
		"0 is followed immediately, and left after a pause": {
			{0, 10, 10, 0}, {time.Second, 0, 0, 0}, {2 * time.Second, 10, 0, RaisePause - time.Second}, {RaisePause + time.Second, 10, 10, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &level{given: looks[0].there}
			for _, look := range looks {
				again := l.observe(at(look.at), look.there)
				if l.given != look.given || again != look.again {
					t.Fatalf("at %v with %d: level %d, look again after %v; want %d and %v", look.at, look.there, l.given, again, look.given, look.again)
				}
			}
		})
	}
}

// The level exceeds what there is for at most DipBound, and never by more than a small dip. It is
// not raised within RaisePause after it was lowered, and never above what there is.
func TestWhatIsAlwaysTrueOfLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &level{given: 1000}
		var now, short, lowered time.Duration
		shortSince, wasLowered := time.Duration(-1), false
		there := int64(1000)
		look := func() time.Duration {
			before := l.given
			again := l.observe(at(now), there)
			switch {
			case l.given < before:
				lowered, wasLowered = now, true
			case l.given > before && wasLowered && now-lowered < RaisePause:
				t.Fatalf("%v: raised from %d to %d, %v after it was lowered", now, before, l.given, now-lowered)
			case l.given > before && l.given > there:
				t.Fatalf("%v: raised to %d, above the %d that there are", now, l.given, there)
			}
			if l.given-there > capacity.Share(l.given, SmallDipPercent, 100) {
				t.Fatalf("%v: the level is %d, more than a small dip above the %d that there are", now, l.given, there)
			}
			switch {
			case there >= l.given:
				shortSince = -1
			case shortSince < 0:
				shortSince = now
			}
			if short = now - shortSince; shortSince >= 0 && short > DipBound {
				t.Fatalf("%v: the level has exceeded what there is for %v", now, short)
			}
			return again
		}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			next := now + time.Duration(rapid.IntRange(1, 60_000).Draw(t, "pause"))*time.Millisecond
			for again := look(); again > 0 && now+again < next; again = look() {
				now += again
			}
			now, there = next, rapid.Int64Range(800, 1200).Draw(t, "there")
		}
	})
}

func TestLevelsArePoliciesOwn(t *testing.T) {
	c := newCluster("n1", "n2")
	stable := &Stabilizer{}
	look := func(d time.Duration, policies ...Policy) (Input, time.Duration) {
		in := Input{Policies: policies, View: c.View(Selections(policies), ResourceNames(policies)...)}
		again := stable.Stabilize(at(d), &in)
		return in, again
	}
	slow, half := ofNodes("slow", threshold(5)), ofNodes("half", threshold(5), percent(50))
	exact, whole := ofNodes("exact"), ofNodes("whole", threshold(5), func(p *Policy) { p.Nodes.Count = Allocatable })
	given := fixed("fixed", capacity.Amounts{"cpu": 1}, threshold(5))
	cpuOf := func(in Input, policy string) int64 { return in.Levels[policy][capacity.CPU] }

	in, again := look(0, slow, half, exact, whole, given)
	expect(t, "at first", []int64{cpuOf(in, "slow"), cpuOf(in, "half"), int64(again)}, []int64{16000, 8000, 0})
	expect(t, "number of policies with a level", len(in.Levels), 2)

	c.pod("a", "n1", "", 800)
	in, again = look(time.Second, slow, half, exact, whole, given)
	expect(t, "in a dip", []int64{cpuOf(in, "slow"), cpuOf(in, "half"), int64(again)}, []int64{16000, 8000, int64(DipBound)})
	r := Evaluate(in)
	expect(t, "the pool with a level", r.Reports["slow"].Capacity[capacity.CPU], int64(16000))
	expect(t, "the pool without a level", r.Reports["exact"].Capacity[capacity.CPU], int64(15200))
	pools := NewAllocationInput(in).Pools
	pool := pools[slices.IndexFunc(pools, func(p PolicyPool) bool { return PolicyOf(p.Granter) == "slow" })]
	expect(t, "what may stay granted, and what may be newly granted", []int64{pool.Capacity[0], pool.Present[0]}, []int64{16000, 15200})

	edited := ofNodes("slow", threshold(5), version("2"))
	in, _ = look(2*time.Second, edited, half)
	expect(t, "edited", []int64{cpuOf(in, "slow"), cpuOf(in, "half")}, []int64{15200, 8000})
	in, _ = look(3*time.Second, edited)
	expect(t, "deleted", len(in.Levels), 1)
	in, _ = look(4*time.Second, edited, half)
	expect(t, "created again", cpuOf(in, "half"), int64(7600))
}

func TestDevicesAreFollowedAtOnce(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	c, stable := newCluster(), &Stabilizer{}
	policies := []Policy{ofNodes("p", threshold(5))}
	for i, gpus := range []int64{24, 23, 24, 25} {
		c.node("n1", capacity.Amounts{capacity.CPU: 1000 + gpus, gpu: gpus})
		in := Input{Policies: policies, View: c.View(Selections(policies))}
		stable.Stabilize(at(time.Duration(i)*time.Second), &in)
		expect(t, "the pool", Evaluate(in).Reports["p"].Capacity, capacity.Amounts{capacity.CPU: 1024, gpu: gpus})
	}
}

func TestALevelIsExplained(t *testing.T) {
	s := Step{Resource: "cpu", Source: FromNodes, Counted: 15200, Percent: 100, Pool: 16000, Committed: 4000, Remaining: 12000, Own: 4000, Max: -1, Held: -1, Offer: 16000}
	expect(t, "a dip", s.arithmetic(capacity.HumanFormat("cpu")), "100% of 15.2 is a pool of 16, its level for a while, and 15.2 now, 4 committed, 12 remaining; it has 4")
}
