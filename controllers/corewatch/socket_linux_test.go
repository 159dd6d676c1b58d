package corewatch

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// readable reports whether who waits for the connection would be woken, waiting for so long, in ms.
func readable(t *testing.T, conn *net.TCPConn, wait int) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	failed := raw.Control(func(fd uintptr) {
		for {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return n > 0
}

func TestAReaderIsWokenForAsManyBytesAsItIsToldTo(t *testing.T) {
	const minute = 60_000
	for name, over := range map[string]func(*net.TCPConn) net.Conn{
		"TCP":          func(c *net.TCPConn) net.Conn { return c },
		"TLS over TCP": func(c *net.TCPConn) net.Conn { return tls.Client(c, &tls.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			conn := over(ours)
			wakeAt(conn, 1000)
			if _, err := theirs.Write(make([]byte, 999)); err != nil {
				t.Fatal(err)
			}
			if readable(t, ours, 0) {
				t.Error("woken for too few bytes")
			}
			// What is there can be read all the same.
			if n, err := ours.Read(make([]byte, 9)); n != 9 || err != nil {
				t.Errorf("read %d bytes, %v", n, err)
			}
			read := make(chan int)
			go func() {
				var all [2000]byte
				n := 0
				for n < 1990 {
					more, err := ours.Read(all[:])
					if err != nil {
						t.Error(err)
						break
					}
					n += more
				}
				read <- n
			}()
			if _, err := theirs.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			if n := <-read; n != 1990 {
				t.Errorf("%d bytes are read once there are enough, want 1990", n)
			}

			if _, err := theirs.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
			wakeAt(conn, 1)
			if !readable(t, ours, minute) {
				t.Error("not woken for a byte that came before, when one is enough")
			}
			wakeAt(conn, 1000)
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			if !readable(t, ours, minute) {
				t.Error("not woken for the end")
			}
		})
	}
}

func TestAConnectionThatShowsNoSocketIsLeftAlone(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	wakeAt(ours, 1000)
	wakeAt(tls.Client(ours, &tls.Config{}), 1000)
	closed, _ := pair(t)
	_ = closed.Close()
	wakeAt(closed, 1000)
}
