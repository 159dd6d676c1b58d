package grant

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// BenchmarkAllocate decides on 10,000 slices of 2,000 consumers under 20 policies that select 5
// zones.
func BenchmarkAllocate(b *testing.B) {
	w := newWorld()
	for i := range 20 {
		w.policies = append(w.policies, offer.Policy{
			Name: fmt.Sprint("p", i), Class: fmt.Sprint("c", i), Nodes: &offer.Nodes{Percent: 50, Selection: inZone(fmt.Sprint("z", i%5))},
		})
	}
	for i := range 500 {
		w.node(fmt.Sprint("n", i), fmt.Sprint("z", i%5), capacity.Amounts{"cpu": 64000, "memory": 1 << 38, "pods": 110})
	}
	for i := range 10_000 {
		w.slice(Slice{
			Key: fmt.Sprint("s", i), Consumer: fmt.Sprint("c", i%2000), Class: fmt.Sprint("c", i%20), Created: int64(i % 977),
			Request: capacity.Amounts{"cpu": 4000, "memory": 1 << 33, "pods": 10},
		})
	}
	w.step()
	terms := w.terms()
	b.ReportAllocs()
	for b.Loop() {
		Allocate(terms, w.slices)
	}
}
