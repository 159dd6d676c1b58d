package deploy

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"proffer.dev/proffer/test"
)

// service forwards like kube-proxy: each new connection goes to the next endpoint and stays there.
type service struct {
	addr string

	mu        sync.Mutex
	endpoints []string
	turn      int
	open      map[net.Conn]struct{}
	closed    bool
	wg        sync.WaitGroup
}

func newService(t *testing.T) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	s := &service{addr: l.Addr().String(), open: map[net.Conn]struct{}{}}
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.forward(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		s.closed = true
		for conn := range s.open {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
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

// forward copies in both directions until both ends have closed theirs.
func (s *service) forward(client net.Conn) {
	defer s.forget(client)
	if !s.track(client) {
		return
	}
	server, err := net.Dial("tcp", s.next())
	if err != nil {
		return
	}
	defer s.forget(server)
	if !s.track(server) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { pipe(server, client) })
	wg.Go(func() { pipe(client, server) })
	wg.Wait()
}

func pipe(to, from net.Conn) {
	// A reset ends both directions, and the caller notices it.
	_, _ = io.Copy(to, from)
	_ = to.(*net.TCPConn).CloseWrite()
}

func (s *service) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[conn] = struct{}{}
	}
	return !s.closed
}

func (s *service) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	_ = conn.Close()
}
