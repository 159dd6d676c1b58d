package catalog

import (
	"errors"
	"fmt"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/source/federation"
)

// maxNodes bounds the nodes that are asked for at a time.
const maxNodes = 50

// checkNodes checks the value of --nodes.
func (o *catalogOptions) checkNodes() error {
	switch {
	case o.nodes < 1 || o.nodes > maxNodes:
		return fmt.Errorf("--nodes=%d: write 1 to %d", o.nodes, maxNodes)
	case len(o.fits) == 0:
		return errors.New("--nodes needs --fits, with what each node has, such as --fits=nvidia.com/gpu=4")
	}
	return nil
}

// shortage says why not all of this number of nodes may be granted in full, empty if they may.
func shortage(e *rest.FederationOffer, fits v1alpha1.Quantities, nodes int) string {
	most := federation.Together(e, fits)
	switch {
	case most < int64(nodes):
		return fmt.Sprintf("its class %s has room for %d ResourceSlices of these amounts now, fewer than %d",
			e.Class, most, nodes)
	case e.FitNodes != nil && *e.FitNodes < nodes:
		return fmt.Sprintf("its class %s has %s with room for these amounts now, fewer than %d",
			e.Class, count(*e.FitNodes, "node"), nodes)
	}
	return ""
}

// commandsForNodes returns the commands that ask for several nodes, for each Offer with a heading.
func commandsForNodes(c *rest.Federation, fits v1alpha1.Quantities) (lines []string) {
	for _, p := range c.Providers {
		for i := range p.Offers {
			e := &p.Offers[i]
			lines = append(lines, "", fmt.Sprintf("To ask %s for %s of class %s, each with %s:",
				p.ClusterID, count(len(e.Commands), "node"), e.Class, amounts(fits)))
			for _, command := range e.Commands {
				lines = append(lines, "  "+command)
			}
			lines = append(lines, fitting(e))
			if e.Fit != v1alpha1.FitNode {
				lines = append(lines, "The class grants from its pool: one of your nodes may be spread over several nodes.")
			}
		}
	}
	return lines
}

// fitting says how many nodes have room for the amounts.
func fitting(e *rest.FederationOffer) string {
	if e.FitNodes == nil {
		return "The catalog does not show how many nodes of the provider have room for these amounts."
	}
	return fmt.Sprintf("The catalog shows %s of the provider with room for these amounts now.", count(*e.FitNodes, "node"))
}

// count writes a number with its noun, as in "2 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
