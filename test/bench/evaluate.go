package main

import (
	"context"
	"io"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// goal is what an evaluation in which nothing changed may take: it runs up to ten times a second.
const (
	goalTime  = 10e6
	goalBytes = 1 << 20
)

// measureEvaluate measures the evaluation that follows each batch of events.
func measureEvaluate(ctx context.Context, o options, r *report, _ io.Writer) error {
	sizes, n := []size{
		{nodes: 5_000, pods: 50_000, consumers: 1_000, busy: 100},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 1_000},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 10_000},
	}, 21
	if o.short {
		sizes, n = []size{{20, 200, 20, 2}, {20, 200, 40, 4}, {20, 200, 40, 40}}, 2
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
	for i, s := range sizes {
		t := r.section("One evaluation: "+s.String(), append([]string{"what"}, costColumns...)...)
		t.describe(variants[i*per:(i+1)*per], costs[i*per:(i+1)*per])
	}
	few, many, busy := costs[:per], costs[per:2*per], costs[2*per:]
	r.ratio("view and evaluation, nothing changed, 10,000 consumers", "the goal of 10 ms of CPU",
		sums(many[view], many[unchanged], func(a, b cost) float64 { return (a.cpu + b.cpu) / goalTime }))
	r.ratio("the same, memory allocated", "the goal of 1 MiB",
		sums(many[view], many[unchanged], func(a, b cost) float64 { return (a.bytes + b.bytes) / goalBytes }))
	r.ratio("evaluation, nothing changed, 10,000 consumers", "1,000 consumers", beside(many[unchanged], few[unchanged], cpu))
	r.ratio("evaluation, one pod changed", "nothing changed", beside(many[onePod], many[unchanged], cpu))
	r.ratio("evaluation, every offer of nodes changed", "nothing changed", beside(many[everything], many[unchanged], cpu))
	r.ratio("first evaluation", "nothing changed", beside(many[first], many[unchanged], cpu))
	r.ratio("evaluation, nothing changed, all of 10,000 have pods", "a tenth of them", beside(busy[unchanged], many[unchanged], cpu))
	return nil
}

// The variants of one size.
const (
	view = iota
	first
	unchanged
	onePod
	everything
)

// evaluations returns what is measured with one size of cluster.
func evaluations(s size) []variant {
	ledger, policies, consumers := newLedger(s), newPolicies(s.consumers), newConsumers(s.consumers)
	selections := offer.Selections(policies)
	input := func() offer.Input {
		return offer.Input{Policies: policies, Consumers: consumers, View: ledger.View(selections)}
	}
	before := input()
	changed := newPod(0, s)
	changed.Requests = capacity.Amounts{capacity.CPU: 500, capacity.Memory: gi}
	ledger.SetPod(changed)
	after := input()
	// A fifth of the nodes goes: every pool shrinks by more than the threshold.
	for i := range s.nodes / 5 {
		ledger.DeleteNode(newNode(i).Name)
	}
	smaller := input()
	for i := range s.nodes / 5 {
		ledger.SetNode(newNode(i))
	}

	// alternate evaluates two inputs in turn, each after the other.
	alternate := func(a, b offer.Input) func() {
		inputs := []offer.Input{a, b}
		prev, turn := offer.Evaluate(b, nil), 0
		return func() {
			prev = offer.Evaluate(inputs[turn%2], prev)
			turn++
		}
	}
	return []variant{
		view:       {name: "Ledger.View alone", times: 4, op: func() { ledger.View(selections) }},
		first:      {name: "Evaluate, the first time", times: 2, op: func() { offer.Evaluate(before, nil) }},
		unchanged:  {name: "Evaluate, nothing changed", times: 4, op: alternate(before, before)},
		onePod:     {name: "Evaluate, one pod changed", times: 4, op: alternate(before, after)},
		everything: {name: "Evaluate, a fifth of the nodes goes or comes", times: 4, op: alternate(before, smaller)},
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
