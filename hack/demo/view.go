package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// offered is the offer to one consumer in one class.
type offered struct {
	class string
	// policy is the policy that decides, with the index of a matching override in brackets. It is
	// empty if no policy decides any more.
	policy string
	// amounts are the exact quantities, by resource.
	amounts map[string]string
	// because has one sentence per resource, which begins with the resource's name.
	because []string
}

// table has the offers that were printed, and how.
type table struct {
	exact bool // amounts are written exactly
	// shown is by consumer and class.
	shown   map[string]map[string]offered
	columns columns
}

func newTable(exact bool) *table {
	return &table{exact: exact, shown: map[string]map[string]offered{}}
}

// consumer has the offers to one consumer, in all classes.
type consumer struct {
	id     string
	offers []offered
}

// update returns the lines, at most width columns wide, for those offers to these consumers that
// have changed. It also returns the policies that decide, or decided, in the changed classes.
func (t *table) update(at time.Time, now []consumer, width int) (lines, policies []string) {
	before := maps.Clone(t.shown)
	for _, c := range now {
		t.shown[c.id] = make(map[string]offered, len(c.offers))
		for _, o := range c.offers {
			t.shown[c.id][o.class] = o
			t.columns.widen(o)
		}
	}
	columns := t.columns.narrowedTo(width)
	for _, c := range now {
		block, deciding := t.block(columns, before[c.id], c)
		if len(block) > 0 {
			lines = slices.Concat(lines, heading(at, c.id, width), block)
			policies = append(policies, deciding...)
		}
	}
	return lines, policies
}

// block returns the lines for the changed classes of one consumer.
func (t *table) block(columns columns, before map[string]offered, now consumer) (lines, policies []string) {
	for _, o := range now.offers {
		was, known := before[o.class]
		switch {
		case !known:
			lines = append(lines, columns.row(o, t.all(o), firstOf(o.because))...)
			policies = append(policies, nameOf(o.policy))
		case was.policy != o.policy || !maps.Equal(was.amounts, o.amounts):
			lines = append(lines, columns.row(o, t.changes(was, o), reasonOf(was, o))...)
			policies = append(policies, nameOf(was.policy), nameOf(o.policy))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(before)) {
		if _, still := t.shown[now.id][class]; !still {
			lines = append(lines, columns.row(offered{class: class}, []string{"no longer listed"}, nil)...)
			policies = append(policies, nameOf(before[class].policy))
		}
	}
	return lines, policies
}

// consumers returns the consumers that were printed.
func (t *table) consumers() []string { return slices.Sorted(maps.Keys(t.shown)) }

func (t *table) knows(id string) bool {
	_, known := t.shown[id]
	return known
}

// forget drops a consumer, and returns the lines that report it.
func (t *table) forget(at time.Time, id string, width int) []string {
	delete(t.shown, id)
	return heading(at, id+" is no longer a consumer", width)
}

// heading returns the first lines of a report, with the time.
func heading(at time.Time, text string, width int) []string {
	clock := at.Format(time.TimeOnly) + gap
	lines := wrap(strings.Fields(text), "", strings.Repeat(" ", len(clock)), width)
	lines[0] = clock + strings.TrimLeft(lines[0], " ")
	return lines
}

// all returns the amounts of a new offer.
func (t *table) all(o offered) (items []string) {
	for _, name := range names(o.amounts) {
		items = append(items, name+" "+t.writer(name, o.amounts[name])(o.amounts[name]))
	}
	return items
}

// changes returns the changed policy, if any, and the changed amounts.
func (t *table) changes(was, is offered) (items []string) {
	if was.policy != is.policy {
		items = append(items, fmt.Sprintf("policy %s -> %s", orNone(was.policy), orNone(is.policy)))
	}
	for _, name := range names(was.amounts, is.amounts) {
		before, now := orNone(was.amounts[name]), orNone(is.amounts[name])
		if before != now {
			write := t.writer(name, before, now)
			items = append(items, fmt.Sprintf("%s %s -> %s", name, write(before), write(now)))
		}
	}
	return items
}

// writer returns the format for these quantities of a resource, so that they can be compared.
func (t *table) writer(name string, quantities ...string) func(string) string {
	if t.exact {
		return func(quantity string) string { return quantity }
	}
	var amounts []int64
	for _, text := range quantities {
		if q, err := resource.ParseQuantity(text); err == nil {
			amounts = append(amounts, quantity.AmountOf(name, q, quantity.Down))
		}
	}
	format := capacity.HumanFormat(name, amounts...)
	return func(text string) string {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return text
		}
		return format(quantity.AmountOf(name, q, quantity.Down))
	}
}

// reasonOf returns the sentence of the first resource whose amount has changed, or the first
// sentence if only the policy has changed.
func reasonOf(was, is offered) []string {
	for _, name := range names(is.amounts) {
		if was.amounts[name] == is.amounts[name] {
			continue
		}
		for _, sentence := range is.because {
			if strings.HasPrefix(sentence, name+" ") {
				return []string{sentence}
			}
		}
	}
	return firstOf(is.because)
}

func firstOf(sentences []string) []string { return sentences[:min(1, len(sentences))] }

// names returns the resources of these amounts: cpu, memory and pods first, then the others by
// name.
func names(lists ...map[string]string) []string {
	all := map[string]string{}
	for _, amounts := range lists {
		maps.Copy(all, amounts)
	}
	var sorted []string
	for _, name := range []string{capacity.CPU, capacity.Memory, capacity.Pods} {
		if _, there := all[name]; there {
			sorted = append(sorted, name)
			delete(all, name)
		}
	}
	return append(sorted, slices.Sorted(maps.Keys(all))...)
}

// nameOf returns the policy without the index of its override.
func nameOf(policy string) string {
	name, _, _ := strings.Cut(policy, "[")
	return name
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
