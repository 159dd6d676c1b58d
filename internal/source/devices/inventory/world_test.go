package inventory_test

import (
	"k8s.io/dynamic-resource-allocation/structured"

	"proffer.dev/proffer/internal/source/devices/inventory"
)

// count is what Count says of a world.
type count struct {
	// free are the amounts without what is allocated, by node and resource.
	free map[string]map[string]int64
	all  []inventory.Pool
}

// why returns why a resource is not counted in some pool on a node, empty if it is in all.
func (c *count) why(node, resource string) string {
	for _, p := range c.all {
		for _, u := range p.Uncounted {
			if u.Node == node && u.Resource == resource {
				return u.Why
			}
		}
	}
	return ""
}

func (w *world) plainClasses() []inventory.Class {
	var all []inventory.Class
	for _, c := range w.classes {
		all = append(all, inventory.ParseClass(c))
	}
	return all
}

// count counts the pools of a world.
func (w *world) count() count {
	c := count{free: map[string]map[string]int64{}}
	selectors, pools := inventory.Compile(inventory.Resources(w.plainClasses())), map[inventory.PoolID][]inventory.Slice{}
	for _, s := range w.slices {
		parsed := inventory.ParseSlice(s, selectors)
		pools[parsed.Pool] = append(pools[parsed.Pool], parsed)
	}
	for id, slices := range pools {
		allocated := func(device string) bool {
			return w.allocated.Has(structured.MakeDeviceID(id.Driver, id.Name, device))
		}
		p := inventory.Count(slices, inventory.State{Allocated: allocated})
		c.all = append(c.all, p)
		for node, n := range p.Nodes {
			if c.free[node] == nil {
				c.free[node] = map[string]int64{}
			}
			for resource, amount := range n.Amounts {
				c.free[node][resource] += amount
			}
		}
		for device, at := range p.Places {
			if allocated(device) {
				c.free[at.Node][at.Resource]--
			}
		}
	}
	return c
}
