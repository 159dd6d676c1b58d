package dashboard

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// maxConnections bounds the connections of the user's own programs, maxStrangers the connections of
	// others, which get no more than a refusal.
	maxConnections = 64
	maxStrangers   = 4
	// maxTogether bounds the connections whose users are looked up at once, togetherWithin how long one
	// waits for others that are here already.
	maxTogether    = 1024
	togetherWithin = time.Millisecond
)

// guard accepts connections, and knows whose they are. One beyond the bound is closed at once, so that the
// connections of other users do not take the places of the browser's. It looks up all that have arrived
// together: the kernel takes as long for one as for all.
type guard struct {
	*net.TCPListener
	own, strangers chan struct{}
	accepted       []*guarded // Only the one goroutine that accepts uses it.
}

func newGuard(listener *net.TCPListener) *guard {
	return &guard{
		TCPListener: listener, own: make(chan struct{}, maxConnections), strangers: make(chan struct{}, maxStrangers),
	}
}

// Accept implements net.Listener.
func (g *guard) Accept() (net.Conn, error) {
	for len(g.accepted) == 0 {
		arrived, err := g.arrived()
		if err != nil {
			return nil, err
		}
		others := newOthers(g.Addr().String())
		for _, connection := range arrived {
			g.admit(connection, others.has(connection.RemoteAddr().String()))
		}
	}
	first := g.accepted[0]
	g.accepted = g.accepted[1:]
	return first, nil
}

// arrived waits for a connection, and returns it with the others that are here within togetherWithin. Their error is
// left to the next call.
func (g *guard) arrived() (all []net.Conn, err error) {
	err = g.SetDeadline(time.Time{})
	for err == nil && len(all) < maxTogether {
		var connection net.Conn
		if connection, err = g.TCPListener.Accept(); err != nil {
			break
		}
		if all = append(all, connection); len(all) == 1 {
			err = g.SetDeadline(time.Now().Add(togetherWithin))
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// admit lets the server have a connection if there is a place for it.
func (g *guard) admit(connection net.Conn, stranger bool) {
	c := &guarded{Conn: connection, stranger: stranger, places: g.own}
	if stranger {
		c.places = g.strangers
	}
	select {
	case c.places <- struct{}{}:
		g.accepted = append(g.accepted, c)
	default:
		_ = connection.Close()
	}
}

// guarded is a connection that takes a place until it is closed.
type guarded struct {
	net.Conn
	stranger bool
	places   chan struct{}
	once     sync.Once
}

// Close implements net.Conn.
func (c *guarded) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}

// strangerKey is the key in the context of a connection that belongs to another user.
type strangerKey struct{}

// identify notes in the context of a connection whose it is. Other users can see the first address in
// the arguments of the browser, and get the cookie if it opens a page of theirs: cookies are of a host,
// with all of its ports.
func identify(ctx context.Context, connection net.Conn) context.Context {
	c, known := connection.(*guarded)
	return context.WithValue(ctx, strangerKey{}, !known || c.stranger)
}
