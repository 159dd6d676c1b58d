package nodes

import (
	"sync"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// maxRequests bounds how many different requests are remembered, each with the bytes that they
	// were decoded from.
	maxRequests = 4096
	// maxKept bounds these bytes. A few hundred are usual.
	maxKept = 4096
	// maxRemembered bounds the memory of all of them, in bytes: see sizeOf.
	maxRemembered = 4 << 20
)

// requestCache remembers what pods request. The pods of one Deployment do not differ in what this
// depends on, so they share the result of the first; so do the many events of one pod.
type requestCache struct {
	mu sync.Mutex
	// byKept are requests by what requestsMask keeps of a pod.
	byKept map[string]capacity.Amounts
	// size is what they take.
	size int
}

func newRequestCache() *requestCache { return &requestCache{byKept: map[string]capacity.Amounts{}} }

// sizeOf estimates the memory of an entry: a map has 24 bytes for each name, in slots that are half
// full at worst, and a copy of the name.
func sizeOf(kept []byte, requests capacity.Amounts) int { return 2*len(kept) + 48*len(requests) + 128 }

func (c *requestCache) find(kept []byte) (capacity.Amounts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, ok := c.byKept[string(kept)]
	return requests, ok
}

// remember keeps the requests, unless they take much more than usual.
func (c *requestCache) remember(kept []byte, requests capacity.Amounts) {
	if len(kept) > maxKept {
		return
	}
	size := sizeOf(kept, requests)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byKept[string(kept)]; known {
		return
	}
	if len(c.byKept) >= maxRequests || c.size+size > maxRemembered {
		clear(c.byKept) // Those in use come back with the next of their pods.
		c.size = 0
	}
	c.byKept[string(kept)] = requests
	c.size += size
}
