package nodes

import (
	"sync"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// maxRequests bounds the number of entries in a requestCache.
	maxRequests = 4096
	// maxKept bounds the size of an entry's key, in bytes. A few hundred are usual.
	maxKept = 4096
	// maxRemembered bounds the memory of all entries, in bytes: see sizeOf.
	maxRemembered = 4 << 20
)

// requestCache caches the requests of pods. The pods of one Deployment have equal keys, and so have
// the many events of one pod.
type requestCache struct {
	mu sync.Mutex
	// byKept maps the bytes that requestsMask keeps of a pod to its requests.
	byKept map[string]capacity.Amounts
	// size is the memory of all entries, in bytes.
	size int
}

// sizeOf estimates the memory of an entry: a map has 24 bytes for each name, in slots that are half
// full at worst, and a copy of the name.
func sizeOf(kept []byte, requests capacity.Amounts) int { return 2*len(kept) + 48*len(requests) + 128 }

func (c *requestCache) find(kept []byte) (capacity.Amounts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, ok := c.byKept[string(kept)]
	return requests, ok
}

// remember adds an entry, unless its key is too large.
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
		clear(c.byKept) // Entries in use are added again with their next pod.
		c.size = 0
	}
	c.byKept[string(kept)] = requests
	c.size += size
}
