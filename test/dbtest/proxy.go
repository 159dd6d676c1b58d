package dbtest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// dialTimeout is the timeout of the proxy's connection to the server, which is on the same machine.
const dialTimeout = 10 * time.Second

// Proxy forwards connections to the server, and disturbs them as a network does. Its address stays
// the same when the server is started again.
type Proxy struct {
	// target returns the address of the server, or "" while the server is down.
	target  func() string
	running sync.WaitGroup

	mu       sync.Mutex
	address  string
	listener net.Listener // nil while connections are refused
	// links are the connections of clients that are open, each with its connection to the server, which is
	// nil at first.
	links map[net.Conn]net.Conn
	// heldRequests and heldAnswers are set while the proxy holds what clients and the server send.
	heldRequests, heldAnswers bool
	// changed is told of each change of links and of what is held.
	changed sync.Cond
}

func newProxy(target func() string) (*Proxy, error) {
	p := &Proxy{target: target, links: map[net.Conn]net.Conn{}}
	p.changed.L = &p.mu
	return p, p.listen("127.0.0.1:0")
}

func (p *Proxy) listen(address string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.running.Go(func() { p.serve(l) })
	return nil
}

// Address returns host and port of the proxy.
func (p *Proxy) Address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// Cut resets all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.links {
		p.reset(client)
	}
}

// Pause holds what clients and the server send, as a network that loses every packet. Connections
// are still accepted.
func (p *Proxy) Pause() { p.hold(true, true) }

// PauseAnswers holds only what the server sends. After a Cut, clients cannot know whether the server
// has done what they asked for last.
func (p *Proxy) PauseAnswers() { p.hold(false, true) }

// Resume forwards what Pause or PauseAnswers has held, and everything that follows.
func (p *Proxy) Resume() { p.hold(false, false) }

func (p *Proxy) hold(requests, answers bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heldRequests, p.heldAnswers = requests, answers
	p.changed.Broadcast()
}

// Refuse resets all connections and refuses new ones until Accept, as a machine without a server.
func (p *Proxy) Refuse(t testing.TB) {
	t.Helper()
	test.Must(t, p.refuse())
}

func (p *Proxy) refuse() error {
	p.mu.Lock()
	l := p.listener
	p.listener = nil
	p.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	p.Cut()
	return err
}

// Accept ends Refuse.
func (p *Proxy) Accept(t testing.TB) {
	t.Helper()
	test.Must(t, p.listen(p.Address()))
}

// Connections returns how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// close ends the proxy.
func (p *Proxy) close() {
	_ = p.refuse()
	p.running.Wait()
}

func (p *Proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.carry(l, client) })
	}
}

// carry forwards a connection until either side closes it.
func (p *Proxy) carry(from net.Listener, client net.Conn) {
	p.mu.Lock()
	p.links[client] = nil
	if p.listener != from {
		p.reset(client)
	}
	p.mu.Unlock()
	if !p.pass(client, &p.heldRequests) {
		return
	}
	server, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", p.target())
	p.mu.Lock()
	if err != nil {
		p.reset(client)
	} else if _, open := p.links[client]; open {
		p.links[client] = server
	} else {
		_ = server.Close()
	}
	p.mu.Unlock()
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.forward(client, server, client, &p.heldRequests) })
	both.Go(func() { p.forward(client, client, server, &p.heldAnswers) })
	both.Wait()
}

// forward copies from one connection of a link to the other, and ends both when one ends.
func (p *Proxy) forward(client, to, from net.Conn, held *bool) {
	_, _ = io.Copy(gate{to, func() bool { return p.pass(client, held) }}, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(client)
}

// pass waits while the proxy holds data. It returns false if the link has ended.
func (p *Proxy) pass(client net.Conn, held *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if _, open := p.links[client]; !open || !*held {
			return open
		}
		p.changed.Wait()
	}
}

// reset ends a link without delivering what is under way. It needs the lock.
func (p *Proxy) reset(client net.Conn) {
	for _, c := range []net.Conn{client, p.links[client]} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	p.end(client)
}

// end closes both connections of a link that is open. It needs the lock.
func (p *Proxy) end(client net.Conn) {
	server, open := p.links[client]
	if !open {
		return
	}
	delete(p.links, client)
	p.changed.Broadcast()
	_ = client.Close()
	if server != nil {
		_ = server.Close()
	}
}

// gate writes to a connection what may pass.
type gate struct {
	net.Conn
	pass func() bool
}

func (g gate) Write(data []byte) (int, error) {
	if !g.pass() {
		return 0, net.ErrClosed
	}
	return g.Conn.Write(data)
}
