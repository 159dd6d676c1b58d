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

// answers is a connection whose server cannot answer without end. An answer begins with the first
// byte after something was sent.
type answers struct {
	net.Conn
	// within is how long an answer may take, 0 for what the deadlines say.
	within time.Duration
	// received is how much of the answer was read, and began is when it began, in nanoseconds. A driver
	// may read while it writes.
	received, began atomic.Int64
}

// boundAnswers bounds the answers on a connection.
func boundAnswers(within time.Duration) func(net.Conn, error) (net.Conn, error) {
	return func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		a := &answers{Conn: c, within: within}
		a.began.Store(time.Now().UnixNano())
		return a, nil
	}
}

// Write begins a new answer.
func (a *answers) Write(b []byte) (int, error) {
	a.received.Store(0)
	a.began.Store(time.Now().UnixNano())
	return a.Conn.Write(b)
}

func (a *answers) Read(b []byte) (int, error) {
	switch {
	case a.received.Load() > maxAnswer:
		return 0, errLongAnswer
	case a.within > 0 && time.Since(time.Unix(0, a.began.Load())) > a.within:
		return 0, os.ErrDeadlineExceeded
	}
	n, err := a.Conn.Read(b)
	a.received.Add(int64(n))
	return n, err
}

// SyscallConn lets the drivers see whether an idle connection has ended.
func (a *answers) SyscallConn() (syscall.RawConn, error) {
	c, ok := a.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}
