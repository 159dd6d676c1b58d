package offer

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

func ofPeers(name string, with ...func(*Policy)) Policy {
	return ofNodes(name, append([]func(*Policy){func(p *Policy) {
		p.Nodes.Selection.Peers = &capacity.Peers{Depth: 1}
	}}, with...)...)
}

// given is a virtual node of a peer.
func (c cluster) given(name, peer string, milli int64) {
	c.SetNode(capacity.Node{
		Name: name, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: milli}, Virtual: true, Peer: peer,
	})
}

func TestWhatAPeerGivesIsNotOfferedBackToIt(t *testing.T) {
	c := newCluster("own")
	c.given("from-rome", "rome", 6000)
	c.given("from-milan", "milan", 4000)
	r := c.evaluate(nil, nil, ofPeers("pooled"))
	expect(t, "anyone", cpu(r, "oslo"), int64(10000))
	expect(t, "rome", cpu(r, "rome"), int64(4000))
	expect(t, "milan", cpu(r, "milan"), int64(6000))

	// What Oslo was granted may be used on any node, so that it could be on those of Milan.
	r = Evaluate(Input{
		Policies: []Policy{ofPeers("pooled")}, View: c.View(Selections([]Policy{ofPeers("pooled")})),
		Grants: map[string]map[string]capacity.Amounts{"": {"oslo": {capacity.CPU: 3000}}},
	})
	expect(t, "rome while Oslo has 3", cpu(r, "rome"), int64(1000))
	expect(t, "milan while Oslo has 3", cpu(r, "milan"), int64(3000))

	// Pods that run on Rome's own nodes are not on others.
	c.pod("oslo", "from-rome", "oslo", 3000)
	r = c.evaluate(nil, nil, ofPeers("pooled"))
	expect(t, "oslo", cpu(r, "oslo"), int64(10000))
	expect(t, "rome while Oslo uses Rome's nodes", cpu(r, "rome"), int64(4000))
	expect(t, "milan while Oslo uses Rome's nodes", cpu(r, "milan"), int64(3000))
	step := r.Explainer().Of("rome")[0].Now[0]
	expect(t, "steps", step, Step{
		Resource: capacity.CPU, Source: FromNodes, Counted: 10000, Percent: 100, Pool: 10000, Committed: 3000,
		Own: 0, Remaining: 7000, Gives: 6000, Taken: 3000, Max: -1, Held: -1, Offer: 4000,
	})
	const want = "cpu 4: 100% of 10 is a pool of 10, 3 committed, 7 remaining; 6 of the pool is what it gives itself, " +
		"which is not offered back to it (pods use 3 of that); it has 0"
	expect(t, "explanation", r.Explainer().Of("rome")[0].Because()[0], want)
}

func TestAPoolOfPeersHasNoNodeOfThisCluster(t *testing.T) {
	c := newCluster("own")
	c.given("from-milan", "milan", 4000)
	r := c.evaluate(nil, nil, ofPeers("pooled", class("pooled")), ofNodes("standard", class("standard")))
	expect(t, "pooled", offered(r, "oslo")["pooled"][capacity.CPU], int64(4000))
	expect(t, "standard", offered(r, "oslo")["standard"][capacity.CPU], int64(8000))

	// Pods that consumers' pods have been sent on to use what the peer gives, and nothing of this cluster.
	c.pod("oslo", "from-milan", "oslo", 1000)
	r = c.evaluate(nil, nil, ofPeers("pooled", class("pooled")), ofNodes("standard", class("standard")))
	expect(t, "committed of pooled", r.Reports["pooled"].Committed[capacity.CPU], int64(1000))
	expect(t, "committed of standard", r.Reports["standard"].Committed[capacity.CPU], int64(0))
}

func TestWhyAVirtualNodeIsNotUsable(t *testing.T) {
	c := newCluster()
	for name, with := range map[string]func(*capacity.Node){
		"a-cordoned":  func(n *capacity.Node) { n.State = capacity.Cordoned },
		"b-down":      func(n *capacity.Node) { n.State = capacity.NotReady },
		"c-no-peer":   func(n *capacity.Node) { n.Peer = "" },
		"d-resold":    func(n *capacity.Node) { n.Depth = 1 },
		"e-unknown":   func(n *capacity.Node) { n.Depth = capacity.UnknownDepth },
		"z-resold-to": func(*capacity.Node) {},
	} {
		n := capacity.Node{Name: name, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 1000}, Virtual: true, Peer: "milan"}
		with(&n)
		c.SetNode(n)
	}
	report := c.evaluate(nil, nil, ofPeers("pooled")).Reports["pooled"]
	expect(t, "nodes", report.Nodes, 1)
	expect(t, "unusable", report.Unusable.String(), "a-cordoned is cordoned, b-down is not Ready, c-no-peer is of an unknown peer, "+
		"d-resold is resold, with a depth of 1, e-unknown is labelled with a depth that is not a number")
}

// What a consumer that gives nodes is offered fits on the nodes of the others, unless reclaim holds it.
func TestWhatAGiverIsOfferedFitsOnTheNodesOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, others, all := newCluster("own"), int64(0), int64(0)
		peers := rapid.SliceOfN(rapid.SampledFrom([]string{"rome", "milan", "oslo"}), 1, 5).Draw(t, "peers")
		var onOthers int64
		for i, peer := range peers {
			milli := rapid.Int64Range(0, 9000).Draw(t, "cpu")
			c.given(fmt.Sprint("n", i), peer, milli)
			all += milli
			if peer != "rome" {
				others += milli
			}
			for k := range rapid.IntRange(0, 2).Draw(t, "pods") {
				used := rapid.Int64Range(0, 3000).Draw(t, "used")
				c.pod(fmt.Sprintf("p%d-%d", i, k), fmt.Sprint("n", i), rapid.SampledFrom([]string{"lima", "paris"}).Draw(t, "consumer"), used)
				if peer != "rome" {
					onOthers += used
				}
			}
		}
		r := c.evaluate(nil, nil, ofPeers("pooled"))
		if got := cpu(r, "rome"); got > max(0, others-onOthers) {
			t.Fatalf("Rome is offered %d, but the nodes of others have %d and pods use %d of that", got, others, onOthers)
		}
		if got := cpu(r, "tokyo"); got > all {
			t.Fatalf("%d is offered of %d", got, all)
		}
	})
}

// Three clusters that resell to each other in a circle: what each offers comes to rest, and is no more
// than the sum of what the others have themselves.
func TestACircleOfResellersIsBounded(t *testing.T) {
	for depths, want := range map[[3]int][3]int64{
		{1, 1, 1}: {8000, 8000, 8000},   // each resells what the next one has itself
		{2, 2, 2}: {8000, 8000, 8000},   // no depth is below another
		{3, 2, 1}: {24000, 16000, 8000}, // the first resells what the second resells
		{1, 2, 3}: {8000, 8000, 16000},
		{8, 8, 1}: {8000, 16000, 8000},
	} {
		type offers struct{ own, resold int64 }
		now := [3]offers{}
		for round := range 12 {
			var next [3]offers
			for i := range now {
				from := (i + 1) % 3
				c := newCluster("own")
				c.given("own-of-peer", fmt.Sprint(from), now[from].own)
				c.SetNode(capacity.Node{
					Name: "resold-by-peer", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: now[from].resold},
					Virtual: true, Peer: fmt.Sprint(from), Depth: depths[from],
				})
				resale := ofPeers("resale", class("resale"), func(p *Policy) { p.Nodes.Selection.Peers.Depth = depths[i] })
				all := offered(c.evaluate(nil, nil, ofNodes("own", class("own")), resale), fmt.Sprint((i+2)%3))
				next[i] = offers{all["own"][capacity.CPU], all["resale"][capacity.CPU]}
			}
			if round > 6 && next != now {
				t.Errorf("depths %v: round %d: the offers still change, from %v to %v", depths, round, now, next)
			}
			now = next
		}
		for i := range now {
			if now[i].own != 8000 || now[i].resold != want[i] {
				t.Errorf("depths %v: cluster %d offers %v, want 8000 and %d", depths, i, now[i], want[i])
			}
		}
	}
}

func TestSelectionsOfPeersAreDistinct(t *testing.T) {
	keys := map[string]string{}
	for name, p := range map[string]Policy{
		"nodes": ofNodes("p"), "peers": ofPeers("p"),
		"deeper": ofPeers("p", func(p *Policy) { p.Nodes.Selection.Peers.Depth = 2 }),
		"named":  ofPeers("p", func(p *Policy) { p.Nodes.Selection.Peers.IDs = []string{"milan"} }),
	} {
		key := p.Nodes.Selection.Key()
		if other, taken := keys[key]; taken {
			t.Errorf("%s and %s have the key %q", name, other, strings.ReplaceAll(key, "\x01", "|"))
		}
		keys[key] = name
	}
}
