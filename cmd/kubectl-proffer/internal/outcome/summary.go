package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/quantity"
)

const (
	// maxGroups bounds the groups of consumers in the summary, maxAmounts the resources of each.
	maxGroups  = 2
	maxAmounts = 3
)

// summary says in one sentence what would change, as in "No pod would be evicted; 150 consumers: gold cpu
// 4.75 -> 0." The mark is put on what is not ours: names and amounts.
func summary(s *rest.Simulation, mark func(string) string) string {
	if Status(s) == statusNothing {
		return "Nothing changes."
	}
	parts := []string{evictedPart(s, mark)}
	if n := len(s.Problems); n > 0 {
		parts = append(parts, counted(n, "policy is", "policies are")+" invalid")
	}
	parts = append(parts, offersPart(s, mark)...)
	if n := len(s.Slices); n > 0 {
		parts = append(parts, atLeast(s, "slices")+
			counted(n, "ResourceSlice is", "ResourceSlices are")+" granted other amounts")
	}
	if n := len(s.Policies); n > 0 {
		parts = append(parts, counted(n, "policy has", "policies have")+" another reason")
	}
	return strings.Join(parts, "; ") + "."
}

func evictedPart(s *rest.Simulation, mark func(string) string) string {
	of, least := sets.New[string](), atLeast(s, "evicted")
	for _, e := range s.Evicted {
		of.Insert(e.Consumer)
	}
	switch {
	case len(of) == 0:
		return "No pod would be evicted"
	case len(of) == 1 && least == "":
		return "Pods of " + mark(s.Evicted[0].Consumer) + " would be evicted"
	}
	return "Pods of " + least + counted(len(of), "consumer", "consumers") + " would be evicted"
}

// amountChange is one resource of a class, of all consumers for which it changes.
type amountChange struct {
	class, resource string
	// consumers are in the order of the answer. The default offer has none.
	consumers []string
	changes   []rest.OfferChange
}

// offersPart describes the changes of most consumers, and counts the others.
func offersPart(s *rest.Simulation, mark func(string) string) []string {
	if len(s.Offers) == 0 {
		return []string{"no offer changes"}
	}
	groups := consumerGroups(s.Offers)
	var parts []string
	others := len(s.Offers)
	for _, group := range groups[:min(len(groups), maxGroups)] {
		var amounts []string
		for _, a := range group[:min(len(group), maxAmounts)] {
			amounts = append(amounts, a.resource+" "+a.text())
			others -= len(a.changes)
		}
		who := "the default offer"
		switch of := group[0].consumers; {
		case len(of) == 1:
			who = mark(of[0])
		case len(of) > 1:
			who = atLeast(s, "offers") + counted(len(of), "consumer", "consumers")
		}
		parts = append(parts, who+": "+mark(output.Class(group[0].class)+" "+strings.Join(amounts, ", ")))
	}
	if others > 0 {
		parts = append(parts, atLeast(s, "offers")+counted(others, "other amount changes", "other amounts change"))
	}
	return parts
}

// consumerGroups divides the changes by class and by the consumers for which an amount changes, the largest
// group first.
func consumerGroups(offers []rest.OfferChange) [][]amountChange {
	type key struct {
		anyone          bool
		class, resource string
	}
	var groups [][]amountChange
	for _, changes := range output.Fold(offers, "", func(c rest.OfferChange) key {
		return key{c.Anyone, c.Class, c.Resource}
	}) {
		a := amountChange{class: changes[0].Class, resource: changes[0].Resource, changes: changes}
		for i := range changes {
			if !changes[i].Anyone {
				a.consumers = append(a.consumers, changes[i].Consumer)
			}
		}
		i := slices.IndexFunc(groups, func(group []amountChange) bool {
			return group[0].class == a.class && slices.Equal(group[0].consumers, a.consumers)
		})
		if i < 0 {
			groups = append(groups, []amountChange{a})
			continue
		}
		groups[i] = append(groups[i], a)
	}
	slices.SortStableFunc(groups, func(a, b []amountChange) int {
		return cmp.Compare(len(b[0].consumers), len(a[0].consumers))
	})
	return groups
}

// text writes the change as in "4.75 -> 0", or as in "4..6 -> 1..3" if consumers differ. A resource that is not
// offered is less than 0 of it.
func (a *amountChange) text() string {
	least, most := a.bounds(func(c *rest.OfferChange) string { return c.Now })
	leastThen, mostThen := a.bounds(func(c *rest.OfferChange) string { return c.Then })
	texts := quantity.Human(a.resource, least, most, leastThen, mostThen)
	span := func(least, most string) string {
		least, most = cmp.Or(least, output.None), cmp.Or(most, output.None)
		if least == most {
			return most
		}
		return least + ".." + most
	}
	return span(texts[0], texts[1]) + " -> " + span(texts[2], texts[3])
}

// bounds returns the least and the largest amount, nil for one that is not offered.
func (a *amountChange) bounds(amount func(*rest.OfferChange) string) (least, most *resource.Quantity) {
	all := make([]*resource.Quantity, len(a.changes))
	for i := range a.changes {
		if q, ok := quantity.Parse(amount(&a.changes[i])); ok {
			all[i] = &q
		}
	}
	return slices.MinFunc(all, quantity.Compare), slices.MaxFunc(all, quantity.Compare)
}

// atLeast says that the operator has cut a list.
func atLeast(s *rest.Simulation, list string) string {
	if slices.Contains(s.Truncated, list) {
		return "at least "
	}
	return ""
}

// counted writes a number with the words for one or for more.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
