package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// waitTimeout is how long a test waits for an event. Only a failing test reaches it.
const waitTimeout = time.Minute

// startEcho starts a relay to a server that answers what it is sent, and ends when its clients have sent all.
func startEcho(t *testing.T, o Options) *Relay {
	t.Helper()
	echo := test.Serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	o.Target = func() string { return echo }
	return Start(t, o)
}

// dial returns a connection through the relay that has been answered once.
func dial(t *testing.T, r *Relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Address())
	test.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if err := ask(c, waitTimeout); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a byte and reads the answer.
func ask(c net.Conn, within time.Duration) error {
	got := make([]byte, 1)
	if _, err := c.Write([]byte{'a'}); err != nil {
		return err
	}
	err := c.SetReadDeadline(time.Now().Add(within))
	if err == nil {
		_, err = c.Read(got)
	}
	if err == nil && got[0] != 'a' {
		err = errors.New("another answer")
	}
	return err
}

func TestResumeDeliversWhatWasHeld(t *testing.T) {
	r := startEcho(t, Options{})
	c := dial(t, r)
	got := make([]byte, 1)
	for name, pause := range map[string]func(){"both ways": r.Pause, "answers": r.PauseAnswers} {
		pause()
		if err := ask(c, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s paused, Read returns %v, want the deadline", name, err)
		}
		r.Resume()
		test.Must(t, c.SetReadDeadline(time.Now().Add(waitTimeout)))
		if _, err := c.Read(got); err != nil || got[0] != 'a' {
			t.Errorf("after Resume, Read returns %q and %v, want a", got, err)
		}
	}
}

func TestASilentConnectionStaysOpenAndNewOnesWork(t *testing.T) {
	r := startEcho(t, Options{})
	c := dial(t, r)
	r.Silence()
	if err := ask(c, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent connection ends with %v, want the deadline", err)
	}
	dial(t, r)
	if n := r.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	r.Cut()
	if err := ask(c, waitTimeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after Cut: %v", err)
	}
}

func TestAfterAHalfCloseTheServerStillAnswers(t *testing.T) {
	for halfClose, want := range map[bool]string{false: "", true: "rest"} {
		r := startEcho(t, Options{HalfClose: halfClose})
		c := dial(t, r)
		r.PauseAnswers()
		_, err := io.WriteString(c, "rest")
		test.Must(t, errors.Join(err, c.(*net.TCPConn).CloseWrite()))
		if !halfClose {
			test.Eventually(t, func() int { return r.Connections() })
		}
		r.Resume()
		if got, _ := io.ReadAll(c); string(got) != want {
			t.Errorf("half close %t: got %q, want %q", halfClose, got, want)
		}
		test.Eventually(t, func() int { return r.Connections() })
	}
}

func TestAnErrorBeforeTheFirstAnswerEndsTheConnection(t *testing.T) {
	r := startEcho(t, Options{BeforeAnswer: func(net.Conn) error { return errors.New("no answer") }})
	c, err := net.Dial("tcp", r.Address())
	test.Must(t, err)
	if err := ask(c, waitTimeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}
