package nodes

import (
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// SetDevices sets the numbers of devices that drivers publish for a node, by pool and resource, and reports whether
// the ledger has changed. Where all devices of a pool are gone, they count for the grace. The caller must not
// change the maps afterwards.
func (w *Watch) SetDevices(node string, devices map[string]capacity.Amounts) (changed bool) {
	return w.graceful.setDevices(node, devices)
}

// setDevices is SetDevices. The node may be unknown.
func (g *graceful) setDevices(name string, devices map[string]capacity.Amounts) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(devices) == 0 {
		delete(g.devices, name)
	} else {
		g.devices[name] = devices
	}
	before, known := g.ledger.Node(name)
	if !known || before.Virtual { // A virtual node has no devices of its own.
		return false
	}
	lapsed, remembered := g.nodes[name]
	reported := before
	if remembered {
		reported = lapsed.reported
	}
	if reported.Devices = devices; g.grace == 0 {
		return g.ledger.SetNode(reported)
	}
	return g.ledger.SetNode(g.keep(&before, &reported, lapsed.lapses, time.Now()))
}

// lostDevices returns the devices of a pool that a node has lost: those of a pool without any devices left, as far as
// other pools have not got more. So devices count once if their driver moves them to another pool.
func lostDevices(before, reported *capacity.Node, pool string) capacity.Amounts {
	if len(reported.Devices[pool]) > 0 {
		return nil
	}
	lost := capacity.Amounts{}
	for resource, amount := range before.Devices[pool] {
		if missing := devicesOf(before, resource) - devicesOf(reported, resource); missing > 0 {
			lost[resource] = min(amount, missing)
		}
	}
	return lost
}

// devicesOf returns the number of devices of a node in all pools.
func devicesOf(n *capacity.Node, resource string) (sum int64) {
	for _, amounts := range n.Devices {
		sum += amounts[resource]
	}
	return sum
}
