// Package process builds, starts, awaits and ends the operator as a process of its own. Tests,
// benchmarks and the demo share it.
//
//	program, err := process.Build(ctx, dir)
//	p, err := process.Start(exec.Command(program, args...)) // or StartTest, in a test
//	err = p.Ready(ctx)
//	err = p.Stop(30 * time.Second)
//
// It imports only the standard library. test/interop and test/slices have their own code for this:
// they pin the libraries of the Liqo that they test, and must not require the operator's module.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that was started.
type Process struct {
	// Exited is closed when the process has ended.
	Exited chan struct{}
	// Err is valid once Exited is closed; nil means exit status 0.
	Err error

	cmd *exec.Cmd
	log buffer
}

// Start starts a command after OnLoopback has replaced its bind addresses. Log collects Stdout and
// Stderr, unless the caller has set one of them. The caller must end the process with Stop or Kill.
func Start(cmd *exec.Cmd) (*Process, error) {
	args, err := OnLoopback(cmd.Args)
	if err != nil {
		return nil, err
	}
	cmd.Args = args
	p := &Process{Exited: make(chan struct{}), cmd: cmd}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = &p.log, &p.log
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	go func() {
		defer close(p.Exited)
		p.Err = cmd.Wait()
	}()
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns what the process has printed so far.
func (p *Process) Log() string { return p.log.String() }

// Address returns the value of the flag --<name>-bind-address, or "" if the process has none.
func (p *Process) Address(name string) string {
	for _, arg := range p.cmd.Args {
		if address, ok := strings.CutPrefix(arg, "--"+name+"-bind-address="); ok {
			return address
		}
	}
	return ""
}

// Alive returns nil while the process runs, and then an EndedError.
func (p *Process) Alive() error {
	select {
	case <-p.Exited:
		return &EndedError{p.Err}
	default:
		return nil
	}
}

// EndedError reports that a process has ended. Err is nil for exit status 0.
type EndedError struct{ Err error }

func (e *EndedError) Error() string { return fmt.Sprintf("the operator ended: %v", e.Err) }

func (e *EndedError) Unwrap() error { return e.Err }

// Stop ends the process as the kubelet does: SIGTERM, then SIGKILL if it still runs after grace. It
// returns an error if the process had to be killed or its exit status is not 0.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.Exited:
	case <-timer.C:
		return errors.Join(fmt.Errorf("the operator still runs %v after SIGTERM", grace), p.Kill())
	}
	if p.Err != nil {
		return fmt.Errorf("the operator ended with %w, want status 0", p.Err)
	}
	return nil
}

// Kill sends SIGKILL and returns once the process has ended.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Exited
	return nil
}

// Suspend sends SIGSTOP, which the process cannot handle. Resume continues it.
func (p *Process) Suspend() error { return p.signal(syscall.SIGSTOP) }

// Resume continues a suspended process.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending the operator %v: %w", signal, err)
	}
	return nil
}

// buffer allows concurrent writes and reads.
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
