package offer

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

const gpu = "nvidia.com/gpu"

// fullCluster has two nodes of 8 cpu and 4 GPUs, of which n1 takes no more pods: it has one of this cluster and one of
// rome, with 1 cpu each.
func fullCluster() cluster {
	c := newCluster()
	c.node("n1", capacity.Amounts{capacity.CPU: 8000, capacity.Pods: 2, gpu: 4})
	c.node("n2", capacity.Amounts{capacity.CPU: 8000, capacity.Pods: 110, gpu: 4})
	c.pod("local", "n1", "", 1000)
	c.pod("r", "n1", "rome", 1000)
	return c
}

func TestWhatIsLeftOnFullNodesIsNotOffered(t *testing.T) {
	c := fullCluster()
	r := c.evaluate(nil, consumers("rome", "oslo"), ofNodes("p"))
	expect(t, "rome", offered(r, "rome")[""], capacity.Amounts{capacity.CPU: 9000, capacity.Pods: 111, gpu: 4})
	expect(t, "oslo", offered(r, "oslo")[""], capacity.Amounts{capacity.CPU: 8000, capacity.Pods: 110, gpu: 4})
	expect(t, "why", because(t, r, "rome")[:2], []string{
		"cpu 9: 100% of 9 is a pool of 9, 1 committed, 8 remaining; 6 more is left on nodes that take no more pods; it has 1",
		"nvidia.com/gpu 4: 100% of 4 is a pool of 4, 0 committed, 4 remaining; 4 more is left on nodes that take no more pods; " +
			"it has 0",
	})
	full := capacity.Unusable{Count: 1, First: []capacity.UnusableNode{{Name: "n1", Why: "full: it takes 2 pods and has 2"}}}
	expect(t, "left out", r.Explainer().Candidates("rome")[0].LeftOut, full)
	expect(t, "nodes of the pool", r.Reports["p"].Nodes, 2)

	c.SetPod(capacity.Pod{Key: "r", Consumer: "rome", Node: "n2", Requests: capacity.Amounts{capacity.CPU: 1000}})
	r = c.evaluate(r, consumers("rome", "oslo"), ofNodes("p"))
	expect(t, "oslo, when a slot is left", cpu(r, "oslo"), int64(14_000))
	expect(t, "left out, when a slot is left", r.Explainer().Candidates("rome")[0].LeftOut, capacity.Unusable{})
}

// TestAllocatableCountsFullNodes because no pod changes what such a policy offers.
func TestAllocatableCountsFullNodes(t *testing.T) {
	r := fullCluster().evaluate(nil, consumers("oslo"), ofNodes("p", func(p *Policy) { p.Nodes.Count = Allocatable }))
	expect(t, "oslo", cpu(r, "oslo"), int64(16_000))
	expect(t, "why", because(t, r, "oslo")[0], "cpu 16: 100% of 16 is a pool of 16, 0 committed, 16 remaining; it has 0")
	expect(t, "left out", r.Explainer().Candidates("oslo")[0].LeftOut, capacity.Unusable{})
}

// TestEvictTakesNothingBackBecauseNodesAreFull though all that is left is on the full node, and the reserve is more
// than what pods use.
func TestEvictTakesNothingBackBecauseNodesAreFull(t *testing.T) {
	c := newCluster()
	c.node("n1", capacity.Amounts{capacity.CPU: 8000, capacity.Memory: 8 * gi, capacity.Pods: 2})
	reserving := func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{capacity.CPU: 4000} }
	p := ofNodes("p", reclaim(Evict), reserving)
	c.pod("r", "n1", "rome", 1500)
	before := c.evaluate(nil, consumers("rome"), p)
	expect(t, "before", cpu(before, "rome"), int64(4000))
	c.pod("o", "n1", "oslo", 1000)
	r := c.evaluate(before, consumers("rome"), p)
	expect(t, "rome", cpu(r, "rome"), int64(1500))
	expect(t, "oslo", offered(r, "oslo")[""], capacity.Amounts{capacity.CPU: 1000, capacity.Memory: 1, capacity.Pods: 1})
	expect(t, "nobody is evicted", r.Reports["p"].Zeroed, []string(nil))
	terms := NewAllocationInput(c.input(consumers("rome"), p))
	column := terms.Column(capacity.CPU)
	expect(t, "what may stay granted, and what may be newly granted",
		[]int64{terms.Pools[0].Capacity[column], terms.Pools[0].Present[column]}, []int64{4000, 0})

	c.node("n1", capacity.Amounts{capacity.CPU: 5000, capacity.Memory: 8 * gi, capacity.Pods: 2})
	r = c.evaluate(r, consumers("rome"), p)
	expect(t, "rome, when cpu is gone", cpu(r, "rome"), int64(600))
}

// TestNodesThatFillUpAndEmptyAllDayChangeThePoolOfDevicesSeldom while devices themselves are followed at once.
func TestNodesThatFillUpAndEmptyAllDayChangeThePoolOfDevicesSeldom(t *testing.T) {
	c, stable := newCluster(), &Stabilizer{}
	policies := []Policy{ofNodes("p", threshold(5))}
	look := func(d time.Duration, gpus int64, full bool) (pool int64, again time.Duration) {
		c.DeletePod("r")
		if full {
			c.SetPod(capacity.Pod{Key: "r", Node: "n1", Consumer: "rome"})
		}
		c.node("n1", capacity.Amounts{capacity.Pods: 1, gpu: gpus})
		c.node("n2", capacity.Amounts{capacity.CPU: 8000, capacity.Pods: 110, gpu: 8})
		in := Input{Policies: policies, View: c.View(Selections(policies))}
		again = stable.Stabilize(at(d), &in)
		return Evaluate(in).Reports["p"].Capacity[gpu], again
	}
	for _, step := range []struct {
		what  string
		at    time.Duration
		gpus  int64
		full  bool
		pool  int64
		again time.Duration
	}{
		{"at first", 0, 8, false, 16, 0},
		{"full", time.Second, 8, true, 8, 0},
		{"a slot is left", 2 * time.Second, 8, false, 8, RaisePause - time.Second},
		{"full again", 3 * time.Second, 8, true, 8, 0},
		{"a device more on the full node", 4 * time.Second, 9, true, 8, 0},
		{"a slot is left again", 5 * time.Second, 9, false, 8, RaisePause - time.Second},
		{"after the pause", 4*time.Second + RaisePause, 9, false, 17, 0},
		{"a device less", 5*time.Second + RaisePause, 8, false, 16, 0},
		{"full at once", 6*time.Second + RaisePause, 8, true, 8, 0},
		{"other devices while a slot is left", 7*time.Second + RaisePause, 7, false, 15, 0},
	} {
		pool, again := look(step.at, step.gpus, step.full)
		expect(t, step.what, []int64{pool, int64(again)}, []int64{step.pool, int64(step.again)})
	}
}
