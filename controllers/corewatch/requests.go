package corewatch

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// maxRequests bounds how many different requests are remembered, each with the bytes that they were decoded from.
	maxRequests = 4096
	// maxKept bounds these bytes. Usual are some hundred.
	maxKept = 4096
)

// requestCache decodes what pods request. The pods of one Deployment differ in nothing that this depends on, and so share what the first came to;
// so do the many events of one pod.
type requestCache struct {
	mu sync.Mutex
	// byKept are requests by what requestsMask keeps of a pod.
	byKept map[string]capacity.Amounts
}

var decoded = &requestCache{byKept: map[string]capacity.Amounts{}}

// requests returns what the pod requests of which requestsMask has kept so much. The caller must not change it.
func (c *requestCache) requests(kept []byte) (capacity.Amounts, error) {
	c.mu.Lock()
	known, ok := c.byKept[string(kept)]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	var full corev1.Pod
	if err := full.Unmarshal(kept); err != nil {
		return nil, err
	}
	requests := requestsOf(&full)
	if len(kept) > maxKept {
		return requests, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byKept) >= maxRequests {
		clear(c.byKept) // those in use come back with the next of their pods
	}
	c.byKept[string(kept)] = requests
	return requests, nil
}
