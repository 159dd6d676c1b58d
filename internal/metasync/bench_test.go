package metasync

import (
	"context"
	"fmt"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// crowd is a snapshot of consumers with a slice each, of three resources.
func crowd(consumers int) *table.Snapshot {
	p := newProvider()
	p.policies[0].Parsed.Resources = []string{"cpu", "memory", "pods"}
	p.ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{
		"cpu": 100_000_000, "memory": 1 << 50, "pods": 1_000_000,
	}})
	for i := range consumers {
		id := fmt.Sprintf("consumer-%05d", i)
		p.consumers = append(p.consumers, offer.Consumer{ID: id, Labels: map[string]string{"tier": "gold", "region": "eu", "number": id}})
		p.slices = append(p.slices, table.DecidedSlice{
			Namespace: "liqo-tenant-" + id, Name: "s", UID: "uid-" + id,
			Slice: grant.Slice{
				Key: "liqo-tenant-" + id + "/s", Consumer: id, Class: "gold",
				Request: capacity.Amounts{"cpu": 4000, "memory": 8 << 30, "pods": 10},
			},
		})
		p.ledger.SetPod(capacity.Pod{Key: id, Node: "n", Consumer: id, Requests: capacity.Amounts{"cpu": 1000}})
	}
	return p.snapshot()
}

// BenchmarkPass measures a pass that finds nothing to write, without the database: it is made each second
// while anything changes.
func BenchmarkPass(b *testing.B) {
	for _, consumers := range []int{100, 10_000} {
		now := stateOf(crowd(consumers))
		t := newTables(time.Minute)
		t.want(now.published(t.priceOf), now.used())
		for _, open := range []func(){
			func() { opened(&t.consumers) }, func() { opened(&t.policies) }, func() { opened(&t.offers) },
			func() { opened(&t.grants) }, func() { opened(&t.usage) }, func() { opened(&t.pools) },
		} {
			open()
		}
		b.Run(fmt.Sprint("unchanged/", consumers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := &pass{at: start, endAt: start, left: maxBatch, until: time.Now().Add(time.Hour), budget: &budget{}}
				t.want(now.published(t.priceOf), nil)
				for _, book := range t.all() {
					if err := book.write(context.Background(), p); p.left < maxBatch || err != nil || p.held > 0 {
						b.Fatal(p.left, err, p.held)
					}
				}
			}
			b.ReportMetric(float64(t.offers.rows()+t.grants.rows()+t.usage.rows()), "rows")
		})
		b.Run(fmt.Sprint("use/", consumers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = now.used()
			}
		})
	}
}

// opened has the open rows of a sheet be those that are wanted.
func opened[K, V comparable](s *sheet[K, V]) {
	s.open = map[K]row[V]{}
	for key, value := range s.wanted {
		s.open[key] = row[V]{value, start}
	}
}
