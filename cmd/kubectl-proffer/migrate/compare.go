package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// comparison compares the plugin's answer with the operator's offer in the class of the policy, the
// unnamed one.
type comparison struct {
	converted  *Converted
	world      *rest.World
	simulation *rest.Simulation
}

// amount is one consumer's offer of one resource.
type amount struct{ text, why string }

// offers returns what each consumer would be offered, by resource. output.Anyone stands for the
// default offer.
func (c *comparison) offers() map[string]map[string]amount {
	all := map[string]map[string]amount{}
	of := func(consumer string, anyone bool) map[string]amount {
		if anyone {
			consumer = output.Anyone
		}
		if all[consumer] == nil {
			all[consumer] = map[string]amount{}
		}
		return all[consumer]
	}
	for i := range c.world.Offers {
		o := &c.world.Offers[i]
		amounts := of(o.ClusterID, o.Anyone)
		if o.Class != c.converted.Policy.Spec.Class {
			continue
		}
		for resource := range o.Resources {
			amounts[resource] = amount{output.Amount(o.Resources, resource), asNow(o)}
		}
	}
	for _, change := range c.simulation.Offers {
		if change.Class == c.converted.Policy.Spec.Class {
			of(change.Consumer, change.Anyone)[change.Resource] = amount{
				change.Then, rest.Reason([]string{change.Because}, change.Resource),
			}
		}
	}
	return all
}

// asNow says why an offer is what it is, if the policy does not change it.
func asNow(o *rest.WorldOffer) string {
	if o.Policy == "" {
		return "as now, withdrawn: no policy decides"
	}
	return "as now, by policy " + o.Policy
}

// table has a row for each consumer and resource, and the default offer last.
func (c *comparison) table() *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "RESOURCE", "PLUGIN", "PROFFER", "WHY"}, Text: true}
	answer, offers := c.converted.answer(c.world), c.offers()
	for _, consumer := range slices.SortedFunc(maps.Keys(offers), output.CompareConsumers) {
		for _, name := range sets.List(sets.KeySet(answer).Union(sets.KeySet(offers[consumer]))) {
			o := offers[consumer][name]
			t.Add(consumer, name, output.Amount(answer, name), o.text, o.why)
		}
	}
	return t
}

// lines returns the table under its title, for a terminal of this width.
func (c *comparison) lines(width int) []string {
	title := fmt.Sprintf(
		"What %s answers by its arithmetic, and what the operator would offer with the policy:", c.converted.plugin)
	t := c.table()
	if len(t.Rows) == 0 {
		return append(output.Wrap(title, width), "No consumer is known, and there is no default offer.")
	}
	return append(output.Wrap(title, width), t.Lines(width, false)...)
}

// warnings returns the other effects of the policy.
func (c *comparison) warnings() []string {
	var all []string
	name := c.converted.Policy.Name
	for _, problem := range c.simulation.Problems[name] {
		all = append(all, "The operator finds the policy invalid: "+problem)
	}
	for _, p := range c.simulation.Policies {
		if p.Policy == name && p.Then != v1alpha1.ReasonOffering {
			all = append(all, fmt.Sprintf("The policy would have the reason %s: %s", p.Then, p.Message))
		}
	}
	for _, e := range c.simulation.Evicted {
		all = append(all, fmt.Sprintf("The policy would evict pods of %s, %d in class %s: %s",
			e.Consumer, e.Pods, output.Class(e.Class), e.Because))
	}
	if len(c.simulation.Truncated) > 0 {
		all = append(all, "The operator has cut the lists of the simulation: "+strings.Join(c.simulation.Truncated, ", "))
	}
	return all
}
