package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// measureTable measures what the table does: a snapshot published, a consumer looked up.
func measureTable(ctx context.Context, o options, r *report, _ io.Writer) error {
	consumers, subscribers, n, lookups := 10_000, 1_000, 21, 200_000
	if o.short {
		consumers, subscribers, n, lookups = 100, 10, 2, 1_000
	}
	base := newOffers(consumers)
	var variants []variant
	for _, changes := range []int{0, 1, consumers} {
		results := withChanges(consumers, changes)
		for _, p := range []publishing{{results, changes, 0, false}, {results, changes, subscribers, true}, {results, changes, subscribers, false}} {
			v, closeAll, err := p.variant(ctx, fmt.Sprintf("Publish, %s of %s consumers changed", thousands(changes), thousands(consumers)))
			if err != nil {
				return err
			}
			defer closeAll()
			variants = append(variants, v)
			if changes == 0 {
				break
			}
		}
	}
	t := table.New()
	t.Publish(table.Snapshot{Result: base})
	ids := make([]string, consumers)
	for i := range ids {
		ids[i] = consumerID(i)
	}
	lookUp := func(times int) {
		for i := range times {
			if _, err := t.Lookup(ctx, ids[i%len(ids)]); err != nil {
				panic(err) // something is published
			}
		}
	}
	first := len(variants)
	callers := max(2, runtime.GOMAXPROCS(0))
	variants = append(variants,
		variant{name: "Lookup of " + thousands(lookups) + " consumers, one after the other", times: 1, op: func() { lookUp(lookups) }},
		variant{name: fmt.Sprintf("the same by %d callers at a time, each all of them", callers), times: 1, op: func() {
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { lookUp(lookups) })
			}
			all.Wait()
		}})
	costs, err := rounds(ctx, n, variants)
	if err != nil {
		return err
	}
	s := r.section("The table", append([]string{"what"}, costColumns...)...)
	s.describe(variants, costs)
	s.row("one Lookup", span(median(costs[first], wall)/float64(lookups)), span(median(costs[first], cpu)/float64(lookups)),
		memory(median(costs[first], allocated)/float64(lookups)), fmt.Sprintf("%.0f", median(costs[first], objects)/float64(lookups)))
	// The variants are: nothing changed; one changed, before nobody, those who keep up and those who do not; all changed, the same.
	r.ratio(fmt.Sprintf("Publish to %s subscribers, one consumer changed", thousands(subscribers)), "to none", beside(costs[2], costs[1], cpu))
	r.ratio(fmt.Sprintf("Publish to %s subscribers that do not read, everyone changed", thousands(subscribers)), "those that keep up", beside(costs[6], costs[5], cpu))
	r.ratio(fmt.Sprintf("a Lookup by %d callers at a time", callers), "by one",
		sums(costs[first+1], costs[first], func(a, b cost) float64 { return a.cpu / float64(callers) / b.cpu }))
	return nil
}

// withChanges returns what so many consumers are offered before and after a policy for some of them was edited.
func withChanges(consumers, changes int) [2]*offer.Result {
	all := make([]offer.Consumer, consumers)
	for i := range all {
		all[i].ID = consumerID(i)
	}
	some := map[string]struct{}{}
	for i := range changes {
		some[consumerID(i)] = struct{}{}
	}
	var results [2]*offer.Result
	var prev *offer.Result
	for i := range results {
		results[i] = offer.Evaluate(offer.Input{Consumers: all, Policies: []offer.Policy{
			{Name: "standard", Fixed: capacity.Amounts{capacity.CPU: 1000, capacity.Memory: gi, capacity.Pods: 10}},
			{
				Name: "some", Version: strconv.Itoa(i), Priority: 1, Consumers: offer.Scope{IDs: some},
				Fixed: capacity.Amounts{capacity.CPU: int64(2000 + i), capacity.Memory: gi, capacity.Pods: 10},
			},
		}}.After(prev))
		prev = results[i]
	}
	return results
}

// publishing is two results published in turn.
type publishing struct {
	results     [2]*offer.Result
	changes     int
	subscribers int
	// keepUp says that subscribers read all that they are told, between one publication and the next; it is not part of the cost.
	keepUp bool
}

func (p publishing) variant(ctx context.Context, name string) (v variant, closeAll func(), err error) {
	t := table.New()
	t.Publish(table.Snapshot{Result: p.results[1]})
	for id := range p.results[0].Entries.All {
		if _, err := t.Lookup(ctx, id); err != nil {
			return v, nil, err
		}
	}
	subscriptions := make([]*table.Subscription, p.subscribers)
	for i := range subscriptions {
		subscriptions[i] = t.Subscribe()
	}
	v = variant{name: name + ", no subscriber", times: 2}
	if p.subscribers > 0 {
		v.name = name + ", " + thousands(p.subscribers) + " subscribers that do not read"
	}
	turn := 0
	v.op = func() { t.Publish(table.Snapshot{Result: p.results[turn%2]}); turn++ }
	if p.keepUp {
		v.name = name + ", " + thousands(p.subscribers) + " subscribers that keep up"
		// Once in a round, since reading is not to be counted. What waits is the empty ID at first, then what was changed, or the
		// empty ID again where that is too much to be named.
		waiting := 1
		v.times, v.before = 1, func() error {
			for _, s := range subscriptions {
				for range waiting {
					if _, err := s.Next(ctx); err != nil {
						return err
					}
				}
			}
			waiting = p.changes
			if waiting > table.MaxWaiting {
				waiting = 1
			}
			return nil
		}
	}
	return v, func() {
		for _, s := range subscriptions {
			s.Close()
		}
	}, nil
}
