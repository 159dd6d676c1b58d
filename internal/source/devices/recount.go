package devices

import (
	"maps"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/devices/inventory"
)

// recount counts the dirty pools, and reports whether the account changed.
func (b *book) recount() (changed bool) {
	nodes := map[string]struct{}{}
	for id := range b.dirty {
		delete(b.dirty, id)
		changed = b.recountPool(id, nodes) || changed
	}
	for node := range nodes {
		changed = b.sink.SetDevices(node, amountsOf(b.nodes[node])) || changed
	}
	return changed
}

// recountPool counts a pool, and adds the nodes of which it has something else now.
func (b *book) recountPool(id inventory.PoolID, nodes map[string]struct{}) (changed bool) {
	p, text := b.pools[id], id.String()
	var all []inventory.Slice
	for _, s := range p.slices {
		all = append(all, s)
	}
	var counted inventory.Pool
	if len(all) > 0 {
		counted = inventory.Count(all, inventory.State{
			Allocated: func(device string) bool { return p.allocated[device] > 0 },
			Tainted: func(device string) bool {
				for _, r := range b.rules {
					if r.Taints(id, device) {
						return true
					}
				}
				return false
			},
		})
	}
	for node := range p.nodes {
		if _, still := counted.Nodes[node]; !still {
			b.setNode(node, text, inventory.Node{}, nodes)
		}
	}
	p.nodes = map[string]struct{}{}
	for node, n := range counted.Nodes {
		p.nodes[node] = struct{}{}
		b.setNode(node, text, n, nodes)
	}
	b.sink.SetUncounted(text, uncountedOf(counted.Uncounted))
	if counted.Incomplete == "" && len(all) > 0 && !maps.Equal(p.places, counted.Places) {
		p.places = counted.Places
		for key := range p.claims {
			changed = b.place(b.claims[key]) || changed
		}
	}
	if len(all) == 0 && len(p.claims) == 0 {
		delete(b.pools, id)
	}
	return changed
}

// setNode sets what a pool has on a node, and adds the node if that has changed.
func (b *book) setNode(node, pool string, n inventory.Node, nodes map[string]struct{}) {
	before := b.nodes[node][pool]
	if maps.Equal(before.Amounts, n.Amounts) && len(before.Failed) == 0 && len(n.Failed) == 0 {
		return
	}
	nodes[node] = struct{}{}
	if len(n.Amounts) == 0 && len(n.Failed) == 0 {
		if delete(b.nodes[node], pool); len(b.nodes[node]) == 0 {
			delete(b.nodes, node)
		}
		return
	}
	if b.nodes[node] == nil {
		b.nodes[node] = map[string]inventory.Node{}
	}
	b.nodes[node][pool] = n
}

func amountsOf(pools map[string]inventory.Node) map[string]capacity.Amounts {
	out := map[string]capacity.Amounts{}
	for pool, amounts := range inventory.OnNode(pools) {
		out[pool] = amounts
	}
	return out
}

func uncountedOf(all []inventory.Uncounted) []capacity.Uncounted {
	var out []capacity.Uncounted
	for _, u := range all[:min(len(all), maxUncounted)] {
		out = append(out, capacity.Uncounted{Node: u.Node, Resource: u.Resource, Why: u.Why})
	}
	return out
}
