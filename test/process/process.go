// Package process builds, starts, awaits and ends the operator as a process of its own. Tests,
// benchmarks and the demo share it.
//
//	program, err := process.Build(ctx, dir)
//	p, err := process.Start(exec.Command(program, args...)) // or StartTest, in a test
//	err = p.Ready(ctx)
//	err = p.Stop(30 * time.Second)
//
// It needs only the standard library, as package test does.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"proffer.dev/proffer/test"
)

// Process is a program that was started.
type Process struct {
	// Exited is closed when the process has ended.
	Exited chan struct{}
	// Err is valid once Exited is closed; nil means exit status 0.
	Err error

	cmd *exec.Cmd
	log test.Buffer
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

func (e *EndedError) Error() string { return fmt.Sprintf("the process ended: %v", e.Err) }

func (e *EndedError) Unwrap() error { return e.Err }

// Final ends test.Until.
func (e *EndedError) Final() {}

// Stop ends the process as the kubelet does: SIGTERM, then SIGKILL if it still runs after grace. It
// returns an error if the process had to be killed or its exit status is not 0.
func (p *Process) Stop(grace time.Duration) error { return p.StopBy(syscall.SIGTERM, grace) }

// StopBy is Stop with another signal than SIGTERM.
func (p *Process) StopBy(signal syscall.Signal, grace time.Duration) error {
	if err := p.signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.Exited:
	case <-timer.C:
		names := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}
		return errors.Join(fmt.Errorf("the process still runs %v after %s", grace, names[signal]), p.Kill())
	}
	if p.Err != nil {
		return fmt.Errorf("the process ended with %w, want status 0", p.Err)
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
		return fmt.Errorf("sending the process %v: %w", signal, err)
	}
	return nil
}

// Ready waits until the operator's /healthz and /readyz answer 200. It returns an error if the
// operator or ctx ends first. The operator must have been started with --health-probe-bind-address.
func (p *Process) Ready(ctx context.Context) error {
	return p.Until(ctx, func(ctx context.Context) error {
		for _, path := range []string{"/healthz", "/readyz"} {
			if _, err := Get(ctx, http.DefaultClient, "http://"+p.Address("health-probe")+path, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// Get returns the body of an answer with status 200. A token, unless empty, authenticates the request.
func Get(ctx context.Context, web *http.Client, url, token string) (body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, err
}

// Until is test.Until, but also returns when the process ends, with an EndedError.
func (p *Process) Until(ctx context.Context, try func(context.Context) error) error {
	return test.Until(ctx, func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		return try(ctx)
	})
}
