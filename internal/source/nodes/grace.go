package nodes

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/capacity"
)

// graceful brings nodes to the ledger as they count: for a grace, a node counts as if it still had what
// it may get back by itself. It remembers nodes that have lost something lately, and no others.
type graceful struct {
	ledger  *capacity.Ledger
	grace   time.Duration
	changed func()
	// began has a token after a node has lost something.
	began chan struct{}

	mu    sync.Mutex
	nodes map[string]lapsedNode
	// devices maps nodes to what drivers publish for them, see capacity.Node.Devices.
	devices map[string]map[string]capacity.Amounts
	listed  bool
}

// lapsedNode is a node that has lost something lately.
type lapsedNode struct {
	reported capacity.Node
	lapses   lapses
}

func newGraceful(ledger *capacity.Ledger, grace time.Duration, changed func()) *graceful {
	return &graceful{
		ledger: ledger, grace: grace, changed: changed, began: make(chan struct{}, 1), nodes: map[string]lapsedNode{},
		devices: map[string]map[string]capacity.Amounts{},
	}
}

// set takes the state of a node, and reports whether the ledger has changed.
func (g *graceful) set(n *node) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ledger.SetNode(g.count(n, time.Now()))
}

// remove takes a node that is gone, and reports whether the ledger has changed.
func (g *graceful) remove(n *node) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.nodes, n.Name)
	return g.ledger.DeleteNode(n.Name)
}

// replace takes the list of all nodes, and reports whether the ledger has changed.
func (g *graceful) replace(all iter.Seq[*node]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, before := time.Now(), g.nodes
	g.nodes = map[string]lapsedNode{}
	var counted []capacity.Node
	for n := range all {
		if known, ok := before[n.Name]; ok {
			g.nodes[n.Name] = known
		}
		counted = append(counted, g.count(n, now))
	}
	g.listed = true
	return g.ledger.ReplaceNodes(slices.Values(counted))
}

// count returns a node as it counts now. In the first list, a node that is not Ready was Ready before:
// a restart of the operator takes no grant.
func (g *graceful) count(n *node, now time.Time) capacity.Node {
	n.Devices = g.devices[n.Name]
	if g.grace == 0 {
		return n.Node
	}
	before, known := g.ledger.Node(n.Name)
	lapses := g.nodes[n.Name].lapses
	if !g.listed && !known && !n.lastUp.IsZero() && n.State != capacity.Cordoned {
		before, known = n.Node, true
		loss{}.undo(&before, nil)
		lapses = map[loss]lapse{{}: {kept: true, at: earlier(n.lastUp, now)}}
	}
	if !known {
		return n.Node
	}
	return g.keep(&before, &n.Node, lapses, now)
}

// keep returns a node as it counts now, and remembers what it has lost lately.
func (g *graceful) keep(before, reported *capacity.Node, of lapses, now time.Time) capacity.Node {
	counts, next := of.count(before, reported, now, g.grace)
	if len(next) == 0 {
		delete(g.nodes, reported.Name)
		return counts
	}
	g.nodes[reported.Name] = lapsedNode{*reported, next}
	select {
	case g.began <- struct{}{}:
	default:
	}
	return counts
}

// earlier returns the earlier one of two times, zero for none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// run ends graces until the context ends.
func (g *graceful) run(ctx context.Context) {
	for {
		var due <-chan time.Time
		if at := g.end(time.Now()); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case <-g.began:
		case <-due:
		}
	}
}

// end counts nodes as reported whose grace has ended, and returns when the next one ends, zero for none.
func (g *graceful) end(now time.Time) (next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed := false
	for name, n := range g.nodes {
		at := n.lapses.next(g.grace)
		if !now.Before(at) {
			before, _ := g.ledger.Node(name)
			changed = g.ledger.SetNode(g.keep(&before, &n.reported, n.lapses, now)) || changed
			at = g.nodes[name].lapses.next(g.grace)
		}
		next = earlier(next, at)
	}
	if changed {
		g.changed()
	}
	return next
}

// metric returns a gauge of the nodes that count as if they had something that they have lost.
func (g *graceful) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "proffer_nodes_in_grace",
		Help: "Number of nodes that are not Ready, or lack a label or a resource that they had, and count as before " +
			"until --node-grace-period is over.",
	}, func() float64 {
		g.mu.Lock()
		defer g.mu.Unlock()
		kept := 0
		for _, n := range g.nodes {
			if n.lapses.keeping() {
				kept++
			}
		}
		return float64(kept)
	})
}
