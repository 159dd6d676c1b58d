package migrate

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/api/rest"
)

// stateReady is rest.WorldNode.State of a node that the plugin counts.
const stateReady = "Ready"

// answer returns the plugin's answer to every consumer, by its documented arithmetic. fixed-resources
// answers its arguments. node-labels-resources answers the allocatable amounts of the nodes with all
// labels that are ready, not cordoned and not virtual, minus the requests of all pods on them. A pod
// does not count as 1 of pods, and the answer may be negative.
func (c *Converted) answer(world *rest.World) rest.Amounts {
	amounts := rest.Amounts{}
	if c.plugin == fixedResources {
		for name, text := range c.pairs.values {
			amounts[name] = resource.MustParse(text) // Parsing the arguments has checked it.
		}
		return amounts
	}
	counted := map[string]bool{}
	for i := range world.Nodes {
		n := &world.Nodes[i]
		matches := labels.ValidatedSetSelector(c.pairs.values).Matches(labels.Set(n.Labels))
		if !matches || n.State != stateReady || n.Peer != nil {
			continue
		}
		counted[n.Name] = true
		for name, amount := range n.Allocatable {
			sum := amounts[name]
			sum.Add(amount)
			amounts[name] = sum
		}
	}
	for i := range world.Pods {
		p := &world.Pods[i]
		if !counted[p.Node] {
			continue
		}
		for name, amount := range p.Requests {
			sum := amounts[name]
			sum.Sub(amount)
			amounts[name] = sum
		}
	}
	return amounts
}
