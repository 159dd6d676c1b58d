package capacity

import (
	"cmp"
	"slices"
	"strings"
)

// Copy is everything that a Ledger holds at one moment, as values. It is immutable.
type Copy struct {
	// Nodes are the known nodes, in any order. The caller must not change their maps.
	Nodes []Node
	// Groups lists the groups of its virtual nodes.
	Groups []NodeGroup

	names []string
	pods  []copiedPod
}

// copiedPod is a pod whose requests are still numbers of names: they become Amounts outside of the
// ledger's lock.
type copiedPod struct {
	key, node, consumer, creator string
	requests                     []numberedAmount
}

// Copy returns what the ledger holds at this moment. Events wait while it is taken.
func (l *Ledger) Copy() *Copy {
	l.mu.Lock()
	nodes, pods := len(l.nodes), len(l.pods)
	l.mu.Unlock()
	// The memory is allocated and first written to before events have to wait: that takes longer than
	// to copy.
	c := &Copy{Nodes: make([]Node, 0, nodes), pods: make([]copiedPod, 0, pods)}
	clear(c.Nodes[:nodes])
	clear(c.pods[:pods])

	l.mu.Lock()
	defer l.mu.Unlock()
	c.names, c.Groups = l.names.list(), l.groups
	for _, a := range l.nodes {
		if a.node != nil {
			c.Nodes = append(c.Nodes, *a.node)
		}
	}
	for key, e := range l.pods {
		c.pods = append(c.pods, e.copied(key))
	}
	return c
}

// PodsOf returns a copy of the ledger's pods of one consumer, without nodes.
func (l *Ledger) PodsOf(consumer string) *Copy {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Copy{}
	for key, e := range l.pods {
		if e.consumer == consumer {
			c.pods = append(c.pods, e.copied(key))
		}
	}
	if len(c.pods) > 0 {
		c.names = l.names.list()
	}
	return c
}

// copied returns the pod as a value. Requests are replaced and never changed, so it shares them.
func (e *podEntry) copied(key string) copiedPod {
	return copiedPod{key, e.on.name, e.consumer, e.creator, e.requests}
}

// list returns the names by number.
func (n *nameTable) list() []string {
	names := make([]string, len(n.infos))
	for i := range n.infos {
		names[i] = n.infos[i].name
	}
	return names
}

// Len is the number of pods.
func (c *Copy) Len() int { return len(c.pods) }

// Pods yields the pods, in any order.
func (c *Copy) Pods(yield func(Pod) bool) {
	for _, p := range c.pods {
		if !yield(c.named(p)) {
			return
		}
	}
}

func (c *Copy) named(p copiedPod) Pod {
	requests, ofClaim := make(Amounts, len(p.requests)), true
	for _, r := range p.requests {
		if name := c.names[r.number]; name != Pods {
			requests[name] = r.amount
		} else {
			ofClaim = false
		}
	}
	return Pod{
		Key: p.key, Node: p.node, Consumer: p.consumer, Creator: p.creator, Requests: requests, OfClaim: ofClaim,
	}
}

// FirstPods returns the first pods, by node and key, and whether there are more.
func (c *Copy) FirstPods(most int) (first []Pod, more bool) {
	sorted := slices.SortedFunc(slices.Values(c.pods), func(a, b copiedPod) int {
		return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.key, b.key))
	})
	for _, p := range sorted[:min(len(sorted), most)] {
		first = append(first, c.named(p))
	}
	return first, len(sorted) > most
}

// Ledger returns a new ledger with the same content.
func (c *Copy) Ledger() *Ledger {
	l := NewLedger()
	l.SetGroups(c.Groups)
	for _, n := range c.Nodes {
		l.SetNode(n)
	}
	for p := range c.Pods {
		l.SetPod(p)
	}
	return l
}
