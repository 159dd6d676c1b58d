package dbtest

import (
	"context"

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
	target            func() string
	address           string
	requests, answers gate

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	running  sync.WaitGroup
}

func newProxy(target func() string) (*Proxy, error) {
	p := &Proxy{target: target, links: map[*link]struct{}{}}
	p.requests.open()
	p.answers.open()
	if err := p.listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return p, nil
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
	for l := range p.links {
		l.reset()
	}
}

// Pause holds what clients and the server send, as a network that loses every packet. Connections
// are still accepted.
func (p *Proxy) Pause() {
	p.requests.shut()
	p.answers.shut()
}

// PauseAnswers holds only what the server sends. After a Cut, clients cannot know whether the server
// has done what they asked for last.
func (p *Proxy) PauseAnswers() { p.answers.shut() }

// Resume forwards what Pause or PauseAnswers has held, and everything that follows.
func (p *Proxy) Resume() {
	p.requests.open()
	p.answers.open()
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
	l := &link{done: make(chan struct{})}
	l.add(client)
	defer l.close()
	p.mu.Lock()
	if p.listener != from {
		p.mu.Unlock()
		l.reset()
		return
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()

	if !p.requests.wait(l.done) {
		return
	}
	server, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "tcp", p.target())
	if err != nil {
		l.reset()
		return
	}
	l.add(server)
	var both sync.WaitGroup
	both.Go(func() { l.forward(server, client, &p.requests) })
	both.Go(func() { l.forward(client, server, &p.answers) })
	both.Wait()
}

// link is a connection of a client with its connection to the server.
type link struct {
	done chan struct{} // closed when the link is

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// add adds a connection, which is closed with the link, also if the link is closed already.
func (l *link) add(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	if l.closed {
		_ = c.Close()
	}
}

// forward copies from one connection to the other while the gate is open.
func (l *link) forward(to, from net.Conn, g *gate) {
	defer l.close()
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		if n > 0 {
			if !g.wait(l.done) {
				return
			}
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// reset closes both connections without delivering what is under way.
func (l *link) reset() {
	l.mu.Lock()
	for _, c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	l.mu.Unlock()
	l.close()
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.done)
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// gate lets data pass or holds them.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.opened == nil:
		g.opened = make(chan struct{})
		close(g.opened)
	case !g.isOpen():
		close(g.opened)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen() {
		g.opened = make(chan struct{})
	}
}

func (g *gate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// wait returns true once the gate is open, and false once done is closed.
func (g *gate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-done:
		return false
	default:
	}
	select {
	case <-opened:
		return true
	case <-done:
		return false
	}
}
