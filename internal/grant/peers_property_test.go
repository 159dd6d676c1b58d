package grant

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// broker is a world without nodes of its own, whose peers change what they give. Rome and Milan are
// consumers too.
type broker struct {
	*world
	groups map[string]capacity.NodeGroup
	nodes  map[string]capacity.Node
}

// giverOf is the peer that gives each virtual node. The two of Milan are of one ResourceSlice.
var giverOf = map[string]string{"rome-1": "rome", "milan-1": "milan", "milan-2": "milan", "oslo-1": "oslo"}

func (b *broker) happen(t *rapid.T) {
	node := rapid.SampledFrom([]string{"rome-1", "milan-1", "milan-2", "oslo-1"}).Draw(t, "node")
	pod := fmt.Sprint("pod", rapid.IntRange(0, 3).Draw(t, "pod"))
	amounts := func(label string) capacity.Amounts { // Even, so that no share is rounded.
		return capacity.Amounts{"cpu": 2 * rapid.Int64Range(0, 6).Draw(t, label)}
	}
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0, 1, 2: // What a peer gives arrives at its ResourceSlice first, and at its nodes later.
		given, giver := amounts("given"), giverOf[node]
		g := capacity.NodeGroup{Key: giver, Peer: giver, Given: given}
		for name, of := range giverOf {
			if of == giver {
				g.Nodes = append(g.Nodes, name)
			}
		}
		b.groups[giver] = g
		var all []capacity.NodeGroup
		for _, of := range b.groups {
			all = append(all, of)
		}
		b.ledger.SetGroups(all)
		b.nodes[node] = capacity.Node{
			Name: node, Allocatable: given, Virtual: true, Peer: giver,
			State: rapid.SampledFrom([]capacity.NodeState{capacity.Ready, capacity.Ready, capacity.Cordoned, capacity.NotReady}).Draw(t, "state"),
		}
		b.ledger.SetNode(b.nodes[node])
	case 3:
		b.pod(pod, node, rapid.SampledFrom([]string{"rome", "milan", "lima", ""}).Draw(t, "of"), amounts("requests"))
	case 4:
		b.ledger.DeletePod(pod)
	case 5:
		if len(b.slices) > 0 {
			i := rapid.IntRange(0, len(b.slices)-1).Draw(t, "gone")
			b.slices = slices.Delete(b.slices, i, i+1)
		}
	default:
		b.made++
		b.slice(Slice{
			Key: fmt.Sprint("s", b.made), Consumer: rapid.SampledFrom([]string{"rome", "milan", "lima"}).Draw(t, "consumer"),
			Class:   rapid.SampledFrom([]string{"gold", "silver"}).Draw(t, "class"),
			Created: int64(b.made), Request: amounts("request"),
		})
	}
}

// resale returns a policy of peers.
func resale(t *rapid.T, class string, reclaim offer.Reclaim) offer.Policy {
	p := pooled()
	p.Name, p.Class, p.Reclaim = class, class, reclaim
	p.Nodes.Percent = rapid.SampledFrom([]int64{50, 100, 100, 150}).Draw(t, "percent")
	p.Nodes.Count = rapid.SampledFrom([]offer.Count{offer.Free, offer.Allocatable}).Draw(t, "count")
	if rapid.Bool().Draw(t, "reserves") {
		p.Nodes.Reserve = cpu(2)
	}
	p.Nodes.Selection.Peers.IDs = rapid.SampledFrom([][]string{nil, nil, {"milan", "rome"}, {"milan", "oslo"}}).Draw(t, "of")
	return p
}

// checkResale checks that what counts as granted beyond what pods hold is no more than the largest
// share of what peers give at the moment, and for a peer, of what the others give.
func (b *broker) checkResale(t *rapid.T) {
	percent := int64(0)
	for _, p := range b.policies {
		percent = max(percent, p.Nodes.Percent)
	}
	every := capacity.Selection{Peers: &capacity.Peers{Depth: 1}}
	view := b.ledger.View([]capacity.Selection{every}, "cpu")
	column := slices.Index(view.Columns, "cpu")
	share := func(without string) (all int64) {
		for giver, g := range b.groups {
			if giver == without {
				continue
			}
			usable := int64(0)
			for _, name := range g.Nodes {
				if n := b.nodes[name]; n.State == capacity.Ready {
					usable += n.Allocatable["cpu"]
				}
			}
			all += min(g.Given["cpu"], usable)
		}
		return all * percent / 100
	}
	beyondUse := map[groupKey]int64{}
	for i := range b.slices {
		s := &b.slices[i]
		beyondUse[groupKey{s.Class, s.Consumer}] += s.Granted["cpu"]
	}
	held := func(consumer string) (all int64) {
		for key, granted := range beyondUse {
			if consumer != "" && key.consumer != consumer {
				continue
			}
			if use := view.Used.Of(key.consumer); use != nil { // Reclaim holds it, in each class, and 1 in each slice.
				granted -= use.Everywhere.At(column) + int64(len(b.slices))
			}
			all += max(0, granted)
		}
		return all
	}
	if all, most := held(""), share(""); all > most {
		t.Fatalf("%d are granted beyond use, of %d that peers give: %s", all, most, b.granted())
	}
	for _, id := range []string{"rome", "milan"} {
		if all, most := held(id), share(id); all > most {
			t.Fatalf("%s is granted %d beyond use, of %d that others give: %s", id, all, most, b.granted())
		}
	}
}

// An hour of a broker: whatever peers, consumers and pods do, no more is resold than peers give.
func TestNoMoreIsResoldThanPeersGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &broker{newWorld(), map[string]capacity.NodeGroup{}, map[string]capacity.Node{}}
		reclaim := rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict}).Draw(t, "reclaim")
		b.policies = []offer.Policy{resale(t, "gold", reclaim), resale(t, "silver", reclaim)}
		for range rapid.IntRange(1, 20).Draw(t, "settled") {
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				b.happen(t)
			}
			b.settle(t)
			b.checkResale(t)
		}
	})
}
