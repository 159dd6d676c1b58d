package main

import (
	"context"
	"io"
	"slices"
	"strconv"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

const (
	// goalTime and goalBytes are what an evaluation may take in which nothing changed for most: it runs up to ten times a second.
	goalTime  = 10e6
	goalBytes = 1 << 20
	// goalBatch is a tenth of a second's 0.5 % of a core, which is what pods that come and go may cost.
	goalBatch = 0.5e6
	// churned is how many nodes have a pod changed in one batch: 200 events a second.
	churned = 20
)

// measureEvaluate measures the evaluation that follows each batch of events.
func measureEvaluate(ctx context.Context, o options, r *report, _ io.Writer) error {
	sizes, n := []size{
		{nodes: 5_000, pods: 50_000, consumers: 20, busy: 20},
		{nodes: 5_000, pods: 50_000, consumers: 1_000, busy: 100},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 1_000},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 10_000},
	}, 21
	if o.short {
		sizes, n = []size{{20, 200, 5, 5}, {20, 200, 20, 2}, {20, 200, 40, 4}, {20, 200, 40, 40}}, 2
	}
	var variants []variant
	for _, s := range sizes {
		variants = append(variants, evaluations(s)...)
	}
	costs, err := rounds(ctx, n, variants)
	if err != nil {
		return err
	}
	per := len(variants) / len(sizes)
	bySize := slices.Collect(slices.Chunk(costs, per))
	for i, s := range sizes {
		t := r.section("One evaluation: "+s.String(), append([]string{"what"}, costColumns...)...)
		t.describe(variants[i*per:(i+1)*per], bySize[i])
	}
	few, some, many, busy := bySize[0], bySize[1], bySize[2], bySize[3]
	goals := func(what string, costs []cost) {
		r.ratio(what, "the goal of 10 ms of CPU", spreadOf(each(costs, func(c cost) float64 { return c.cpu / goalTime })))
		r.ratio("the same, memory allocated", "the goal of 1 MiB", spreadOf(each(costs, func(c cost) float64 { return c.bytes / goalBytes })))
	}
	goals("evaluation, nothing changed, 10,000 consumers", many[unchanged])
	goals("view and evaluation, pods of 20 nodes changed, all of 10,000 have pods", busy[batch])
	goals("evaluation, a policy edited that changes one of 10,000", many[edited])
	r.ratio("events, view and evaluation, pods of 20 nodes changed, 20 consumers", "0.5 % of a core",
		spreadOf(each(few[batch], func(c cost) float64 { return c.cpu / goalBatch })))
	r.ratio("view, pods of 20 nodes changed, 10,000 consumers", "20 consumers", beside(many[viewed], few[viewed], cpu))
	r.ratio("evaluation, nothing changed, 10,000 consumers", "the first time", beside(many[unchanged], many[first], cpu))
	r.ratio("the same", "1,000 consumers", beside(many[unchanged], some[unchanged], cpu))
	r.ratio("evaluation, every offer of nodes changed, 10,000 consumers", "the first time", beside(many[everything], many[first], cpu))
	r.ratio("view and evaluation, pods of 20 nodes changed, all of 10,000 have pods", "a tenth of them", beside(busy[batch], many[batch], cpu))
	return nil
}

// The variants of one size.
const (
	viewed = iota
	first
	unchanged
	edited
	batch
	everything
)

// evaluations returns what is measured with one size of cluster.
func evaluations(s size) []variant {
	// What did not change is the same list, as it is in the operator.
	ledger, policies, consumers := newLedger(s), newPolicies(s.consumers), newConsumers(s.consumers)
	selections := offer.Selections(policies)
	input := func() offer.Input {
		return offer.Input{Policies: policies, Consumers: consumers, View: ledger.View(selections)}
	}
	before := input()
	// A fifth of the nodes goes: every pool shrinks by more than the threshold.
	for i := range s.nodes / 5 {
		ledger.DeleteNode(newNode(i).Name)
	}
	smaller := input()
	for i := range s.nodes / 5 {
		ledger.SetNode(newNode(i))
	}
	edits := [2]offer.Input{before, before}
	for i := range edits {
		edits[i].Policies = append(slices.Clone(policies), offer.Policy{
			Name: "edited", Version: strconv.Itoa(i), Priority: 100, Consumers: offer.Scope{IDs: map[string]struct{}{consumerID(1): {}}},
			Fixed: capacity.Amounts{capacity.CPU: int64(1000 * (1 + i)), capacity.Memory: gi, capacity.Pods: 10},
		})
	}

	// alternate evaluates two inputs in turn, each after the other.
	alternate := func(a, b offer.Input) func() {
		inputs := []offer.Input{a, b}
		prev, turn := offer.Evaluate(b), 0
		return func() {
			prev = offer.Evaluate(inputs[turn%2].After(prev))
			turn++
		}
	}
	change, prev := alternating(ledger, s), offer.Evaluate(before)
	return []variant{
		viewed:     {name: "20 pods on as many nodes change, View", times: 200, op: func() { change(); ledger.View(selections) }},
		first:      {name: "Evaluate, the first time", times: 2, op: func() { offer.Evaluate(before) }},
		unchanged:  {name: "Evaluate, nothing changed", times: 100, op: alternate(before, before)},
		edited:     {name: "Evaluate, a policy edited that changes one consumer", times: 40, op: alternate(edits[0], edits[1])},
		batch:      {name: "20 pods on as many nodes change, View, Evaluate", times: 40, op: func() { change(); prev = offer.Evaluate(input().After(prev)) }},
		everything: {name: "Evaluate, a fifth of the nodes goes or comes", times: 4, op: alternate(before, smaller)},
	}
}

// alternating returns what brings a batch of events to the ledger: pods, each on another node, that change what they request. A fifth of them are
// consumers'.
func alternating(ledger *capacity.Ledger, s size) func() {
	var batches [2][]capacity.Pod
	for i := range batches {
		for k := range min(churned, s.nodes) {
			p := newPod(k*(s.pods/churned+1)%s.pods, s)
			p.Requests = capacity.Amounts{capacity.CPU: int64(250 + i), capacity.Memory: gi / 2}
			batches[i] = append(batches[i], p)
		}
	}
	turn := 0
	return func() {
		turn++
		for _, p := range batches[turn%2] {
			ledger.SetPod(p)
		}
	}
}

// sums is a figure of two costs, round by round.
func sums(a, b []cost, figure func(a, b cost) float64) spread {
	figures := make([]float64, len(a))
	for i := range a {
		figures[i] = figure(a[i], b[i])
	}
	return spreadOf(figures)
}
