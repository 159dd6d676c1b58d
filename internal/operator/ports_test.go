package operator

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/bounded"
)

// What one connection can keep is bounded in size and in time, and so is the number of connections: a pod
// without credentials takes little of the memory that the operator is allowed.
func TestThePortsForStrangersAreBounded(t *testing.T) {
	for name, b := range map[string]bounded.Bounds{"metrics": metricsBounds, "probes": probeBounds} {
		const ofNetHTTP = 4 << 10 // Added to each header, and its two buffers.
		if most := b.Connections * (b.Header + 3*ofNetHTTP); b.Connections < 1 || b.Header < 1 || most > 16<<20 {
			t.Errorf("%s: %d connections of %d bytes of headers keep %d MiB", name, b.Connections, b.Header, most>>20)
		}
		for what, bound := range map[string]struct{ is, most time.Duration }{
			"a header": {b.HeaderTimeout, 5 * time.Second}, "a request": {b.ReadTimeout, 30 * time.Second},
			"an answer": {b.WriteTimeout, 5 * time.Minute}, "the next request": {b.IdleTimeout, 90 * time.Second},
		} {
			if bound.is <= 0 || bound.is > bound.most {
				t.Errorf("%s: %s may take %v, want a bound of at most %v", name, what, bound.is, bound.most)
			}
		}
	}
}
