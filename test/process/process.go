// Package process runs the operator as a process of its own, in tests.
package process

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// grace is how long a process may take to end when its test does.
const grace = 30 * time.Second

// Process is a program that runs until its test ends.
type Process struct {
	// Exited is closed when the process has ended; then Err says how.
	Exited chan struct{}
	Err    error

	args []string
	cmd  *exec.Cmd
	log  buffer
}

// Start runs the program with these arguments, and with env beside the environment of the test. If the test fails, it shows what the
// process printed.
func Start(t *testing.T, program string, args []string, env ...string) *Process {
	t.Helper()
	p := &Process{Exited: make(chan struct{}), args: args}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Exited)
		p.Err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		// One that is suspended would hear of nothing.
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		// Politely, so that the next leader need not wait for the lease to end.
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.Exited:
		case <-time.After(grace):
			_ = p.cmd.Process.Kill()
			<-p.Exited
		}
		if t.Failed() {
			t.Logf("log of the operator at %s:\n%s", p.Address("grpc"), p.Log())
		}
	})
	return p
}

// Log is what the process has printed.
func (p *Process) Log() string { return p.log.String() }

// Address is that of --<what>-bind-address, empty if there is none.
func (p *Process) Address(what string) string {
	for _, arg := range p.args {
		if address, ok := strings.CutPrefix(arg, "--"+what+"-bind-address="); ok {
			return address
		}
	}
	return ""
}

// Terminate ends the process as the kubelet does: SIGTERM, then nothing until the time is over. It fails the test if the process does
// not end by then, or not well.
func (p *Process) Terminate(t *testing.T, within time.Duration) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited:
	case <-time.After(within):
		t.Fatalf("the operator still runs %v after SIGTERM", within)
	}
	if p.Err != nil {
		t.Errorf("the operator ended with %v, want status 0", p.Err)
	}
}

// Kill ends the process as a crash does, and returns when it has ended.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Exited
}

// Suspend has the process stand still until Resume: it is not told, and what it began goes on from there.
func (p *Process) Suspend(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
}

// Resume has a process that was suspended go on.
func (p *Process) Resume(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGCONT)
}

func (p *Process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// OnLoopback returns the arguments with a free port of the loopback device in every --*-bind-address.
func OnLoopback(t *testing.T, args []string) []string {
	t.Helper()
	adapted := make([]string, len(args))
	for i, arg := range args {
		adapted[i] = arg
		if flag, _, ok := strings.Cut(arg, "-bind-address="); ok {
			adapted[i] = flag + "-bind-address=" + FreeAddress(t)
		}
	}
	return adapted
}

// FreeAddress returns an address of the loopback device at which nobody listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// buffer is written by a process while a test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
