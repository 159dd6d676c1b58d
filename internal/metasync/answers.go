package metasync

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxAnswer bounds what the server sends to one statement, in bytes: the open rows of a table are the
	// longest answer, with about 250 bytes each.
	maxAnswer = 64 << 20
	// maxMessage bounds one message of PostgreSQL, for which the driver reserves memory before it comes.
	maxMessage = 16 << 20
)

var errLongAnswer = errors.New("the database answers with more than 64 MiB")

// boundedConn is a connection that bounds the answers of the server. An answer begins with the first
// byte after something was sent.
type boundedConn struct {
	net.Conn
	// timeout bounds the time of an answer. 0 leaves that to the deadlines.
	timeout time.Duration
	// received is the number of bytes of the answer that were read. began is the time at which it began, in
	// nanoseconds. A driver may read while it writes.
	received, began atomic.Int64
}

// boundAnswers bounds the answers on a connection.
func boundAnswers(timeout time.Duration) func(net.Conn, error) (net.Conn, error) {
	return func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		a := &boundedConn{Conn: c, timeout: timeout}
		a.began.Store(time.Now().UnixNano())
		return a, nil
	}
}

// Write begins a new answer.
func (a *boundedConn) Write(b []byte) (int, error) {
	a.received.Store(0)
	a.began.Store(time.Now().UnixNano())
	return a.Conn.Write(b)
}

func (a *boundedConn) Read(b []byte) (int, error) {
	switch {
	case a.received.Load() > maxAnswer:
		return 0, errLongAnswer
	case a.timeout > 0 && time.Since(time.Unix(0, a.began.Load())) > a.timeout:
		return 0, os.ErrDeadlineExceeded
	}
	n, err := a.Conn.Read(b)
	a.received.Add(int64(n))
	return n, err
}

// SyscallConn lets the drivers see whether an idle connection has ended.
func (a *boundedConn) SyscallConn() (syscall.RawConn, error) {
	c, ok := a.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}
