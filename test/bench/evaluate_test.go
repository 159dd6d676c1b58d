package bench

import (
	"slices"
	"strconv"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/bench/population"
)

// changedPods is the number of pods that change in a batch period, at 200 events a second.
const changedPods = 20

// BenchmarkEvaluate measures one evaluation of 5,000 nodes, 50,000 pods and 20 policies.
func BenchmarkEvaluate(b *testing.B) {
	sizes := []size{
		{nodes: 5_000, pods: 50_000, consumers: 100, busy: 100},
		{nodes: 5_000, pods: 50_000, consumers: 1_000, busy: 100},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 1_000},
		{nodes: 5_000, pods: 50_000, consumers: 10_000, busy: 10_000},
	}
	if testing.Short() {
		sizes = []size{{nodes: 20, pods: 200, consumers: 20, busy: 4}}
	}
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) { benchmarkEvaluate(b, s) })
	}
}

func benchmarkEvaluate(b *testing.B, s size) {
	ledger, policies, consumers := newLedger(s), newPolicies(s.consumers), newConsumers(s.consumers)
	selections := offer.Selections(policies)
	input := func() offer.Input {
		return offer.Input{Policies: policies, Consumers: consumers, View: ledger.View(selections)}
	}
	before := input()
	b.Run("from=scratch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			evaluate(before, nil)
		}
	})
	b.Run("change=none", func(b *testing.B) { alternate(b, before, before) })
	edits := [2]offer.Input{before, before}
	for i := range edits {
		edits[i].Policies = append(slices.Clone(policies), offer.Policy{
			Name: "edited", Version: strconv.Itoa(i), Priority: 100,
			Consumers: offer.Scope{IDs: map[string]struct{}{population.Consumer(1): {}}},
			Fixed:     capacity.Amounts{capacity.CPU: int64(1000 * (1 + i)), capacity.Memory: gi, capacity.Pods: 10},
		})
	}
	b.Run("change=policy", func(b *testing.B) { alternate(b, edits[0], edits[1]) })
	b.Run("change=pods", func(b *testing.B) {
		change, previous := batches(ledger, s), evaluate(before, nil)
		b.ReportAllocs()
		for b.Loop() {
			change()
			previous = evaluate(input(), previous)
		}
	})
}

// BenchmarkEvaluateNamed measures an evaluation after an edit for one consumer, of policies that name
// 10,000 consumers, each as many as it may.
func BenchmarkEvaluateNamed(b *testing.B) {
	const consumers = 10_000
	var policies []offer.Policy
	for i := 0; i < consumers; i += perPolicy {
		p := offer.Policy{Name: "many-" + strconv.Itoa(i/perPolicy), Consumers: offer.Scope{IDs: map[string]struct{}{}}, Fixed: fixedAmounts(1)}
		for k := range perPolicy {
			p.Consumers.IDs[population.Consumer(i+k)] = struct{}{}
		}
		policies = append(policies, p)
	}
	var edits [2]offer.Input
	for i := range edits {
		edits[i].Policies = append(slices.Clone(policies), offer.Policy{
			Name: "edited", Version: strconv.Itoa(i), Priority: 1,
			Consumers: offer.Scope{IDs: map[string]struct{}{population.Consumer(1): {}}}, Fixed: fixedAmounts(int64(2 + i)),
		})
	}
	alternate(b, edits[0], edits[1])
}

func fixedAmounts(cores int64) capacity.Amounts {
	return capacity.Amounts{capacity.CPU: 1000 * cores, capacity.Memory: gi, capacity.Pods: 10}
}

// evaluate works out offers, reusing a previous result if it is not nil.
func evaluate(in offer.Input, previous *offer.Result) *offer.Result {
	return offer.Evaluate(in.After(previous))
}

// alternate evaluates two inputs in turn. Both must offer something to each consumer.
func alternate(b *testing.B, first, second offer.Input) {
	b.Helper()
	for _, in := range []offer.Input{first, second} {
		if offers := evaluate(in, nil).Entries.Of(population.Consumer(1)).Offers; len(offers) == 0 {
			b.Fatal("nothing is offered")
		}
	}
	inputs, turn := [2]offer.Input{first, second}, 0
	previous := evaluate(second, nil)
	b.ReportAllocs()
	for b.Loop() {
		previous = evaluate(inputs[turn%2], previous)
		turn++
	}
}

// batches returns a function that applies one batch of events to the ledger: pods on different
// nodes change their requests. A fifth of the pods belong to consumers.
func batches(ledger *capacity.Ledger, s size) func() {
	var both [2][]capacity.Pod
	for i := range both {
		for k := range min(changedPods, s.nodes) {
			p := newPod(k*(s.pods/changedPods+1)%s.pods, s)
			p.Requests = capacity.Amounts{capacity.CPU: int64(250 + i), capacity.Memory: gi / 2}
			both[i] = append(both[i], p)
		}
	}
	turn := 0
	return func() {
		turn++
		for _, p := range both[turn%2] {
			ledger.SetPod(p)
		}
	}
}

// BenchmarkPodEvent measures one pod event in a ledger with ten pods on each node.
func BenchmarkPodEvent(b *testing.B) {
	sizes := []int{1_000, 50_000}
	if testing.Short() {
		sizes = []int{100}
	}
	for _, pods := range sizes {
		b.Run("pods="+strconv.Itoa(pods), func(b *testing.B) { benchmarkPodEvent(b, pods) })
	}
}

func benchmarkPodEvent(b *testing.B, pods int) {
	s := size{nodes: max(1, pods/10), pods: pods, consumers: max(1, pods/50), busy: max(1, pods/50)}
	ledger := newLedger(s)
	known := make([]capacity.Pod, pods)
	for i := range known {
		known[i] = newPod(i, s)
	}
	requests := []capacity.Amounts{{capacity.CPU: 500, capacity.Memory: gi}, known[0].Requests}
	// The step is coprime to the number of pods, so it visits all of them, and never a neighbour in
	// memory.
	const step = 7919
	at := 0
	next := func() capacity.Pod {
		at = (at + step) % pods
		return known[at]
	}
	b.Run("event=changed", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			p := next()
			p.Requests = requests[n/pods%2]
			ledger.SetPod(p)
		}
	})
	b.Run("event=replaced", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p := next()
			ledger.DeletePod(p.Key)
			ledger.SetPod(p)
		}
	})
}
