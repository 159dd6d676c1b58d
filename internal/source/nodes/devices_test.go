package nodes

import (
	"testing"
	"testing/synctest"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
)

const gpu = "nvidia.com/gpu"

// pools are the GPUs of a node, by pool.
func pools(all map[string]int64) map[string]capacity.Amounts {
	out := map[string]capacity.Amounts{}
	for pool, gpus := range all {
		out[pool] = capacity.Amounts{gpu: gpus}
	}
	return out
}

func (g *graceTest) wantsGPUs(when string, want int64) {
	g.t.Helper()
	synctest.Wait()
	var got int64
	for _, n := range g.ledger.Copy().Nodes {
		got += n.Allocatable[gpu]
	}
	if got != want {
		g.t.Errorf("%s: %d GPUs, want %d", when, got, want)
	}
}

func TestTheDevicesOfAPoolThatIsGoneCountForTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGraceful(t)
		g.setDevices("n", pools(map[string]int64{"a": 4, "b": 3}))
		g.wantsGPUs("before the node is known", 0)
		test.Must(t, g.store.Replace([]any{nodeOf(aNode("n", list("cpu", "4")))}, "1"))
		g.wantsGPUs("at first", 7)
		g.setDevices("n", pools(map[string]int64{"a": 4}))
		g.wantsGPUs("without a pool", 7)
		test.Must(t, g.store.Update(nodeOf(aNode("n", list("cpu", "5")))))
		g.wantsGPUs("after another change of the node", 7)
		g.setDevices("n", pools(map[string]int64{"a": 3}))
		g.wantsGPUs("with one device less in the other pool", 6)
		pass(grace)
		g.wantsGPUs("after the grace", 3)
		g.setDevices("n", pools(map[string]int64{"c": 3}))
		g.wantsGPUs("in a pool of another name", 3)
		g.setDevices("n", nil)
		pass(time.Hour)
		g.wantsGPUs("long after all are gone", 0)
		if len(g.devices) > 0 {
			t.Errorf("%v is remembered", g.devices)
		}
	})
}

func TestANodeThatChangesFromADevicePluginToADriverKeepsItsAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGraceful(t)
		update := func(gpus string) {
			test.Must(t, g.store.Update(nodeOf(aNode("n", list("cpu", "4", gpu, gpus)))))
		}
		update("8")
		g.wantsGPUs("with a device plugin", 8)
		update("0")
		g.wantsGPUs("with neither", 8)
		pass(grace / 2)
		g.setDevices("n", pools(map[string]int64{"a": 8}))
		g.wantsGPUs("with a driver", 8)
		pass(grace)
		g.wantsGPUs("after the grace", 8)
		update("6")
		g.wantsGPUs("with both, the device plugin counts", 6)
	})
}
