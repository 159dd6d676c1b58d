package bounded

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fakeListener accepts connections from these addresses.
type fakeListener struct {
	net.Listener
	from chan string
}

// fakeConn is a connection that comes from an address.
type fakeConn struct {
	net.Conn
	from fakeAddress
}

type fakeAddress string

func (fakeAddress) Network() string  { return "tcp" }
func (a fakeAddress) String() string { return string(a) }

func (c fakeConn) RemoteAddr() net.Addr { return c.from }

func (l fakeListener) Accept() (net.Conn, error) {
	from, ok := <-l.from
	if !ok {
		return nil, net.ErrClosed
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return fakeConn{ours, fakeAddress(from)}, nil
}

// accepted are the connections from these addresses, in this order.
func accepted(t *testing.T, b Bounds, from ...string) (*listener, prometheus.Counter, []net.Conn) {
	t.Helper()
	all := make(chan string, len(from))
	for _, address := range from {
		all <- address
	}
	close(all)
	closed := prometheus.NewCounter(prometheus.CounterOpts{Name: "closed"})
	l := b.Listener(fakeListener{from: all}, closed).(*listener)
	var open []net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			return l, closed, open
		}
		open = append(open, conn)
	}
}

// isOpen reports whether a connection was not closed by its listener.
func isOpen(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1)) // The other end is closed.
	return err == io.EOF              //nolint:errorlint // net.Pipe returns it as it is.
}

func TestTheConnectionsOfOneClientAndOfAllAreBounded(t *testing.T) {
	var from []string
	for i := range 16 + 5 {
		from = append(from, fmt.Sprintf("192.0.2.1:%d", i+1))
	}
	for i := range 128 {
		from = append(from, fmt.Sprintf("10.0.0.%d:1", i))
	}
	l, closed, all := accepted(t, Bounds{Connections: 128, PerClient: 16}, from...)
	// Each of the last 16 takes the place of one of the client with 16, which is the oldest one at the end.
	of := map[string]int{}
	for _, conn := range all {
		if isOpen(conn) {
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			of[host]++
		}
	}
	if l.total != 128 || len(of) != 128 || of["192.0.2.1"] != 0 {
		t.Errorf("%d are open, of %d clients, %d of the first", l.total, len(of), of["192.0.2.1"])
	}
	if n := testutil.ToFloat64(closed); n != 5+16 {
		t.Errorf("%v connections were closed, want 21", n)
	}
	for _, conn := range all {
		_ = conn.Close()
		_ = conn.Close() // It counts once.
	}
	if l.total != 0 || len(l.open) != 0 {
		t.Errorf("%d closed connections are counted, of %d clients", l.total, len(l.open))
	}
}

func TestAClientWithManyConnectionsCostsTheOthersNothing(t *testing.T) {
	from := []string{"10.0.0.1:1", "10.0.0.2:1"}
	for i := range 1000 {
		from = append(from, fmt.Sprintf("192.0.2.1:%d", i+1))
	}
	_, _, all := accepted(t, Bounds{Connections: 8}, append(from, "10.0.0.3:1")...)
	for _, i := range []int{0, 1, len(all) - 1} {
		if !isOpen(all[i]) {
			t.Errorf("connection %d is closed", i)
		}
	}
	if isOpen(all[2]) {
		t.Error("the first one of the client with many is open")
	}
}

func TestAddressesOfANetworkOfIPv6AreOneClient(t *testing.T) {
	l, closed, _ := accepted(t, Bounds{Connections: 8, PerClient: 2},
		"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "[2001:db8:0:1::1]:1", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
	if n := testutil.ToFloat64(closed); n != 1 || l.total != 6 {
		t.Errorf("%v connections were closed, and %d are open", n, l.total)
	}
}

func TestAClientIsAnIPv4AddressOrAnIPv6Network(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:1": "10.0.0.1/32", "[::ffff:10.0.0.1]:2": "10.0.0.1/32", "[2001:db8::1]:3": "2001:db8::/64",
		"[fe80::1%eth0]:4": "fe80::/64",
	} {
		if got, _ := ClientOf(address); got.String() != want {
			t.Errorf("%s belongs to client %v, want %s", address, got, want)
		}
	}
}
