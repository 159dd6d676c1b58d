package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestWhatPodsUseIsHeldWhereNoNodeListsItAnyMore(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	gone := func() (cluster, Policy, *Result) {
		c, p := newCluster("n1"), ofNodes("p")
		c.node("gpus", capacity.Amounts{capacity.CPU: 1000, capacity.Memory: gi, capacity.Pods: 10, gpu: 8})
		c.SetPod(capacity.Pod{Key: "trains", Node: "gpus", Consumer: "rome", Requests: capacity.Amounts{gpu: 3}})
		r := c.evaluate(nil, nil, p)
		expect(t, "with the node", offered(r, "rome")[""][gpu], int64(8))
		c.DeleteNode("gpus")
		p.Known = []string{capacity.CPU, capacity.Memory, capacity.Pods, gpu}
		return c, p, r
	}
	t.Run("while the process runs", func(t *testing.T) {
		c, p, r := gone()
		r = c.evaluate(r, nil, p)
		expect(t, "rome", offered(r, "rome")[""][gpu], int64(3))
		expect(t, "anyone", offered(r, "paris")[""][gpu], int64(0))
		c.DeletePod("trains")
		r = c.evaluate(r, nil, p)
		expect(t, "rome without its pod", offered(r, "rome")[""][gpu], int64(0))
	})
	t.Run("after a restart", func(t *testing.T) {
		c, p, r := gone()
		expect(t, "rome", offered(c.startedWith(pastOf(r), p), "rome")[""][gpu], int64(3))
	})
	t.Run("after the policy was deleted", func(t *testing.T) {
		c, _, r := gone()
		r = c.evaluate(r, nil)
		expect(t, "rome", offered(r, "rome")[""][gpu], int64(3))
	})
	t.Run("when an override lowers a fixed amount", func(t *testing.T) {
		c := newCluster("n1")
		c.SetPod(capacity.Pod{Key: "trains", Node: "n1", Consumer: "rome", Requests: capacity.Amounts{gpu: 3}})
		p := fixed("p", capacity.Amounts{capacity.CPU: 1, capacity.Memory: 1})
		p.Overrides = []Override{{Consumers: ids("rome"), Fixed: capacity.Amounts{gpu: 4}}}
		r := c.evaluate(nil, nil, p)
		p.Version, p.Overrides = "2", []Override{{Consumers: ids("rome"), Fixed: capacity.Amounts{gpu: 1}}}
		expect(t, "rome", offered(c.evaluate(r, nil, p), "rome")[""][gpu], int64(3))
	})
}
