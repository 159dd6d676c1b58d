package deploy

import (
	"slices"
	"sync"
	"testing"

	"proffer.dev/proffer/test/relay"
)

// service forwards like kube-proxy: each new connection goes to the next endpoint and stays there.
type service struct {
	addr string

	mu        sync.Mutex
	endpoints []string
	turn      int
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.addr = relay.Start(t, relay.Options{Target: s.next, HalfClose: true}).Address()
	return s
}

func (s *service) add(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = append(s.endpoints, endpoint)
}

func (s *service) remove(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(slices.Clone(s.endpoints), func(e string) bool { return e == endpoint })
}

// next returns the next endpoint, or "" if there is none.
func (s *service) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) == 0 {
		return ""
	}
	s.turn++
	return s.endpoints[s.turn%len(s.endpoints)]
}
