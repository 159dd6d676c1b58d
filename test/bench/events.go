package main

import (
	"context"
	"io"

	"proffer.dev/proffer/internal/capacity"
)

// measureEvents measures what the ledger does at each event of a pod.
func measureEvents(ctx context.Context, o options, r *report, _ io.Writer) error {
	sizes, n, times := []int{1_000, 10_000, 100_000}, 21, 20_000
	if o.short {
		sizes, n, times = []int{10, 100, 1000}, 2, 1000
	}
	var variants []variant
	for _, pods := range sizes {
		variants = append(variants, events(pods, times)...)
	}
	costs, err := rounds(ctx, n, variants)
	if err != nil {
		return err
	}
	t := r.section("One pod event in the ledger", append([]string{"what"}, costColumns...)...)
	t.describe(variants, costs)
	smallest, largest := costs[:eventKinds], costs[len(costs)-eventKinds:]
	few, many := "among "+thousands(sizes[0]), ", among "+thousands(sizes[len(sizes)-1])
	r.ratio("a pod that changes"+many, few, beside(largest[podChanges], smallest[podChanges], cpu))
	r.ratio("a pod that goes and one that comes"+many, few, beside(largest[podReplaced], smallest[podReplaced], cpu))
	r.ratio("a write to a plain map"+many, few, beside(largest[plainMap], smallest[plainMap], cpu))
	r.ratio("a pod that changes"+many, "a write to a plain map of as many", beside(largest[podChanges], largest[plainMap], cpu))
	return nil
}

// The variants of one size.
const (
	podChanges = iota
	podReplaced
	plainMap
	eventKinds
)

// events returns the events measured in a ledger with so many pods, ten on each node.
func events(pods, times int) []variant {
	s := size{nodes: max(1, pods/10), pods: pods, consumers: max(1, pods/50), busy: max(1, pods/50)}
	ledger := newLedger(s)
	known := make([]capacity.Pod, pods)
	for i := range known {
		known[i] = newPod(i, s)
	}
	requests := []capacity.Amounts{{capacity.CPU: 500, capacity.Memory: gi}, known[0].Requests}
	// A step that is prime to the number of pods leads to all of them, and never to a neighbour in memory.
	step, at, turn := 7919, 0, 0
	next := func() *capacity.Pod {
		if at += step; at >= pods {
			at %= pods
		}
		return &known[at]
	}
	seen := 0
	// A map from the same keys shows what any account by key would cost: with more keys than fit into the CPU's caches, most of it
	// is waiting for memory.
	plain := make(map[string]int, pods)
	for i := range known {
		plain[known[i].Key] = i
	}
	among := ", among " + thousands(pods)
	return []variant{
		podChanges: {name: "a pod changes its requests" + among, times: times, op: func() {
			if seen++; seen > pods {
				seen, turn = 1, 1-turn
			}
			p := *next()
			p.Requests = requests[turn]
			ledger.SetPod(p)
		}},
		podReplaced: {name: "a pod goes and one comes" + among, times: times, op: func() {
			p := next()
			ledger.DeletePod(p.Key)
			ledger.SetPod(*p)
		}},
		plainMap: {name: "a plain map is written" + among, times: times, op: func() { plain[next().Key]++ }},
	}
}
