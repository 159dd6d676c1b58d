package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// withDevices returns a node whose Allocatable includes its Devices, the same one if it has none. A virtual node
// has none: its peer publishes them.
func withDevices(node *Node) *Node {
	if node == nil || len(node.Devices) == 0 || node.Virtual {
		return node
	}
	of := *node
	of.Allocatable = maps.Clone(node.Allocatable)
	if of.Allocatable == nil {
		of.Allocatable = Amounts{}
	}
	for _, amounts := range node.Devices {
		for name, amount := range amounts {
			if node.Allocatable[name] <= 0 {
				of.Allocatable[name] = Sum(max(0, of.Allocatable[name]), max(0, amount))
			}
		}
	}
	of.Allocatable = of.Allocatable.Bounded(MaxNodeResources, nil)
	return &of
}

// Uncounted is a resource of whose devices some or all are not counted.
type Uncounted struct {
	// Node is empty for devices that are not of one node.
	Node, Resource string
	// Why says what is wrong, as in "RESOURCE is not counted: WHY".
	Why string
}

// SetUncounted sets what is not counted of one source of devices, none to forget the source.
func (l *Ledger) SetUncounted(source string, all []Uncounted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(all) == 0 {
		delete(l.uncounted, source)
		return
	}
	l.uncounted[source] = all
}

// Uncounted returns the devices that are not counted, by resource and node: those of nodes that are known and do not
// list the resource themselves, and those that are not of one node.
func (l *Ledger) Uncounted() []Uncounted {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Uncounted
	for _, some := range l.uncounted {
		for _, u := range some {
			if a := l.nodes[u.Node]; u.Node != "" && (a == nil || a.node == nil || a.reported.Allocatable[u.Resource] > 0) {
				continue
			}
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Uncounted) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Node, b.Node), strings.Compare(a.Why, b.Why))
	})
	return slices.Compact(all)
}
