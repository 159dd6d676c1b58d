package table

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"proffer.dev/proffer/internal/offer"
)

const (
	benchConsumers   = 10_000
	benchSubscribers = 1_000
)

// benchTable returns a table whose consumers have all been read, and two results in which every
// consumer has different entries.
func benchTable(b *testing.B) (*Table, []string, [2]*offer.Result) {
	ids := make([]string, benchConsumers)
	var results [2]*offer.Result
	anyone := newEntry()
	for r := range results {
		e := entries{}
		for i := range ids {
			ids[i] = fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i)
			e[ids[i]] = newEntry()
		}
		results[r] = result(anyone, e)
	}
	tab := New()
	tab.Publish(Snapshot{Result: results[1]})
	for _, id := range ids {
		if _, err := tab.Own().Lookup(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
	return tab, ids, results
}

func BenchmarkLookup(b *testing.B) {
	tab, ids, _ := benchTable(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			if _, err := tab.Own().Lookup(context.Background(), ids[i%len(ids)]); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkPublish changes one or all of 10,000 consumers, for 1,000 subscribers that either keep
// up or never read.
func BenchmarkPublish(b *testing.B) {
	for _, bc := range []struct {
		name        string
		all, keepUp bool
	}{
		{"one changes, subscribers keep up", false, true},
		{"one changes, subscribers are stuck", false, false},
		{"all change, subscribers keep up", true, true},
		{"all change, subscribers are stuck", true, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			tab, ids, results := benchTable(b)
			if !bc.all {
				e := maps.Collect(results[1].Entries.All)
				e[ids[0]] = newEntry()
				results[0] = result(results[1].Default, e)
			}
			subscriptions := make([]*Subscription, benchSubscribers)
			for i := range subscriptions {
				subscriptions[i] = tab.Own().Subscribe()
				drain(subscriptions[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tab.Publish(Snapshot{Result: results[i%2]})
				if bc.keepUp {
					b.StopTimer()
					for _, s := range subscriptions {
						drain(s)
					}
					b.StartTimer()
				}
			}
		})
	}
}
