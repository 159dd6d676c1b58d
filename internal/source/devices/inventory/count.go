package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Count counts the slices of one pool, of any generations.
func Count(all []Slice, s State) Pool {
	newest, missing := newestOf(all)
	if missing != "" {
		return incomplete(newest, missing)
	}
	c, invalid := newCounting(newest, s)
	if invalid != "" {
		return incomplete(newest, invalid)
	}
	c.findConflicts()
	for _, d := range c.devices {
		c.count(d)
	}
	return c.pool()
}

// incomplete returns a pool from which the scheduler allocates nothing.
func incomplete(of []Slice, why string) Pool {
	c := counting{uncounted: map[Place]string{}}
	for i := range of {
		for _, d := range of[i].Devices {
			for _, resource := range d.Resources {
				c.uncount(Place{d.Node, resource}, fmt.Sprintf("its pool %s cannot be used: %s", of[i].Pool, why))
			}
		}
	}
	p := c.pool()
	p.Incomplete = why
	return p
}

// newestOf returns the slices of the newest generation, by name, and why they are not complete, empty if they are.
func newestOf(all []Slice) (newest []Slice, missing string) {
	generation := int64(math.MinInt64)
	for i := range all {
		generation = max(generation, all[i].Generation)
	}
	for i := range all {
		if all[i].Generation == generation {
			newest = append(newest, all[i])
		}
	}
	slices.SortFunc(newest, func(a, b Slice) int { return strings.Compare(a.Name, b.Name) })
	for i := range newest {
		switch s := &newest[i]; {
		case s.Grouped:
			return newest, "its devices have compatibility groups"
		case s.Slices != int64(len(newest)):
			return newest, fmt.Sprintf("its generation %d has %d of %d slices", generation, len(newest), s.Slices)
		}
	}
	return newest, ""
}

// counting is the count of one pool.
type counting struct {
	devices []*Device
	state   State
	// left are the counters that allocated devices leave, and those that are counted.
	left map[string]Counters
	// exceeded is set if allocated devices consume more of a counter than there is.
	exceeded bool
	// amounts and uncounted are the results, places those of the devices that count.
	amounts   map[Place]int64
	uncounted map[Place]string
	failed    map[Place]struct{}
	places    map[string]Place
}

// newCounting reads the slices, or says why the scheduler allocates nothing from them.
func newCounting(of []Slice, s State) (c *counting, invalid string) {
	c = &counting{
		state: s, left: map[string]Counters{}, amounts: map[Place]int64{}, uncounted: map[Place]string{},
		failed: map[Place]struct{}{}, places: map[string]Place{},
	}
	names := map[string]struct{}{}
	for i := range of {
		for _, set := range of[i].Counters {
			if _, twice := c.left[set.Name]; twice {
				return nil, fmt.Sprintf("it has two counter sets %q", set.Name)
			}
			c.left[set.Name] = maps.Clone(set.Values)
		}
		for k := range of[i].Devices {
			d := &of[i].Devices[k]
			if _, twice := names[d.Name]; twice {
				return nil, fmt.Sprintf("it has two devices %q", d.Name)
			}
			names[d.Name] = struct{}{}
			c.devices = append(c.devices, d)
		}
	}
	for _, d := range c.devices {
		for _, set := range d.Consumes {
			for name, amount := range set.Values {
				if _, has := c.left[set.Name][name]; !has {
					return nil, fmt.Sprintf("its device %q consumes the counter %q of %q, which it does not have",
						d.Name, name, set.Name)
				}
				if c.state.Allocated(d.Name) {
					left := difference(c.left[set.Name][name], amount)
					c.left[set.Name][name], c.exceeded = left, c.exceeded || left < 0
				}
			}
		}
	}
	return c, ""
}

// difference is a - b, at least math.MinInt64.
func difference(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}

// findConflicts marks what is not counted.
func (c *counting) findConflicts() {
	users := c.counterUsers()
	for _, d := range c.devices {
		for _, resource := range d.Failed {
			c.failed[Place{d.Node, resource}] = struct{}{}
			c.uncount(Place{d.Node, resource}, fmt.Sprintf("the selector of its class fails on the device %q", d.Name))
		}
		for _, resource := range d.Resources {
			at := Place{d.Node, resource}
			if d.Node == "" {
				c.uncount(at, "its devices are not of one node")
			}
			if other := rival(resource, d.Resources); other != "" {
				c.uncount(at, "it has devices in common with "+other)
			}
			for _, set := range d.Consumes {
				if other := rival(resource, users[set.Name].resources); other != "" {
					c.uncount(at, "its devices share counters with those of "+other)
				}
				if len(users[set.Name].nodes) > 1 {
					c.uncount(at, "its devices share counters with those of other nodes")
				}
			}
		}
	}
}

// setUsers are the resources and nodes of the devices that consume from a counter set.
type setUsers struct{ resources, nodes []string }

func (c *counting) counterUsers() map[string]setUsers {
	users := map[string]setUsers{}
	for _, d := range c.devices {
		for _, set := range d.Consumes {
			u := users[set.Name]
			for _, resource := range d.Resources {
				if !slices.Contains(u.resources, resource) {
					u.resources = append(u.resources, resource)
				}
			}
			if !slices.Contains(u.nodes, d.Node) {
				u.nodes = append(u.nodes, d.Node)
			}
			users[set.Name] = u
		}
	}
	return users
}

// rival returns a resource with which another one cannot be counted, empty for none: any other resource, or,
// for one with an extendedResourceName, another one with it.
func rival(resource string, others []string) string {
	rival := ""
	for _, other := range others {
		if other != resource && (Implicit(resource) || !Implicit(other)) && (rival == "" || other < rival) {
			rival = other
		}
	}
	return rival
}

// uncount marks a resource as not counted. The first reason stays.
func (c *counting) uncount(at Place, why string) {
	if _, known := c.uncounted[at]; !known {
		c.uncounted[at] = strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")
	}
}

// count counts one device for the only resource that it can count for.
func (c *counting) count(d *Device) {
	for _, resource := range d.Resources {
		at := Place{d.Node, resource}
		switch _, uncounted := c.uncounted[at]; {
		case uncounted:
		case d.Shareable: // The other devices of the resource count, so the reason is added at the end.
		default:
			c.places[d.Name] = at
			if c.state.Allocated(d.Name) || !c.tainted(d) && c.consume(d) {
				c.amounts[at]++
			}
		}
	}
}

func (c *counting) tainted(d *Device) bool {
	return d.Tainted || c.state.Tainted != nil && c.state.Tainted(d.Name)
}

// consume takes the counters that a device consumes, if they are left. Like the scheduler, it takes none while
// allocated devices exceed any counter of the pool.
func (c *counting) consume(d *Device) bool {
	if len(d.Consumes) == 0 {
		return true
	}
	if c.exceeded {
		return false
	}
	enough := true
	for _, set := range d.Consumes {
		for name, amount := range set.Values {
			left := difference(c.left[set.Name][name], amount)
			c.left[set.Name][name], enough = left, enough && left >= 0
		}
	}
	if !enough {
		for _, set := range d.Consumes {
			for name, amount := range set.Values {
				c.left[set.Name][name] += amount
			}
		}
	}
	return enough
}

// pool returns the result.
func (c *counting) pool() Pool {
	for _, d := range c.devices {
		if d.Shareable {
			for _, resource := range d.Resources {
				c.uncount(Place{d.Node, resource}, "it has devices that several claims can share")
			}
		}
	}
	p := Pool{Nodes: map[string]Node{}, Places: c.places}
	node := func(name string, set func(n *Node)) {
		if name != "" {
			n := p.Nodes[name]
			set(&n)
			p.Nodes[name] = n
		}
	}
	for at, amount := range c.amounts {
		node(at.Node, func(n *Node) {
			if n.Amounts == nil {
				n.Amounts = map[string]int64{}
			}
			n.Amounts[at.Resource] = amount
		})
	}
	for at := range c.failed {
		node(at.Node, func(n *Node) { n.Failed = append(n.Failed, at.Resource) })
	}
	for at, why := range c.uncounted {
		p.Uncounted = append(p.Uncounted, Uncounted{at, why})
	}
	slices.SortFunc(p.Uncounted, func(a, b Uncounted) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Why, b.Why))
	})
	return p
}
