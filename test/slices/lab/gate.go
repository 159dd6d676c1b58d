package lab

import (
	"context"
	"net"
	"sync"
)

// A gate forwards TCP connections to an address until the namespaces end. While it is silent it accepts
// connections and keeps those that are open, and forwards nothing.
type gate struct {
	target string
	// silent is locked while the gate is silent.
	silent sync.RWMutex
}

// openGate opens a gate at an address.
func openGate(ctx context.Context, address, target string) (*gate, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	g, ctx := &gate{target: target}, context.WithoutCancel(ctx)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.serve(ctx, conn)
		}
	}()
	return g, nil
}

func (g *gate) serve(ctx context.Context, near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", g.target)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	var both sync.WaitGroup
	both.Go(func() { g.forward(far, near) })
	both.Go(func() { g.forward(near, far) })
	both.Wait()
}

// forward ends both connections when one ends.
func (g *gate) forward(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !g.pass(to, buffer[:n]) || err != nil {
			return
		}
	}
}

func (g *gate) pass(to net.Conn, data []byte) bool {
	g.silent.RLock()
	defer g.silent.RUnlock()
	_, err := to.Write(data)
	return err == nil
}

// Silence has the cluster not answer its peers any more, until Answer is called.
func (c *Cluster) Silence() { c.gate.silent.Lock() }

// Answer ends Silence.
func (c *Cluster) Answer() { c.gate.silent.Unlock() }
