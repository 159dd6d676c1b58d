package grant

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

// BenchmarkSeats decides on 10,000 slices with a seat each on 5,000 nodes of three kinds: from scratch, when no slice has
// anything, and again, when each keeps its seat.
func BenchmarkSeats(b *testing.B) {
	w := newWorld(fitting())
	for i := range 5000 {
		gpus := int64(2 + 2*(i%3))
		w.host(fmt.Sprintf("n%04d", i), capacity.Amounts{"cpu": 16000 * gpus, "memory": gpus << 36, "pods": 110, "nvidia.com/gpu": gpus})
	}
	for i := range 10_000 {
		w.slice(Slice{
			Key: fmt.Sprint("s", i), Consumer: fmt.Sprint("c", i%200), Class: "gold", Created: int64(i % 977),
			Request: capacity.Amounts{"cpu": 16000, "memory": 1 << 36, "pods": 20, "nvidia.com/gpu": int64(1 + i%2)},
		})
	}
	terms := w.terms()
	b.Run("from scratch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Allocate(terms, w.slices)
		}
	})
	answers := w.step()
	seated := 0
	for i := range answers {
		if answers[i].Seat.Node != "" && answers[i].Whole() {
			seated++
		}
	}
	if seated != len(answers) {
		b.Fatalf("%d of %d slices are seated", seated, len(answers))
	}
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Allocate(terms, w.slices)
		}
	})
}
