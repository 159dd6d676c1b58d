package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stepTimeout bounds each step. No test depends on the speed of the machine.
const stepTimeout = time.Minute

// process is a program in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
	// err is the result of Wait, valid once exited is closed.
	err error
}

// launch starts cmd. The caller must end it. If the test program dies first, Linux kills it.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: &output{}, exited: make(chan struct{})}
	cmd.Stderr = p.output
	if cmd.Stdout == nil {
		cmd.Stdout = p.output
	}
	cmd.SysProcAttr = ownGroup()
	// A grandchild that keeps the output open must not block Wait.
	cmd.WaitDelay = 10 * time.Second
	started := make(chan error)
	go func() {
		// Pdeathsig is sent when the thread that started the child ends, so this thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// start runs cmd until the test ends. A failed test logs its output.
func start(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, p.output)
		}
	})
	return p
}

// signal sends s to the process only, which has to stop its own children.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// kill kills the whole process group and waits for the process.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
}

// wait returns the result of the process.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.err
	case <-ctx.Done():
		return errors.New("the process does not end")
	}
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// output collects the output of a program.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns the output; of a long one only the beginning and the end.
func (o *output) String() string {
	const most = 32 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.buf.String()
	if len(s) > 2*most {
		s = s[:most] + "\n[...]\n" + s[len(s)-most:]
	}
	return s
}

func (o *output) contains(s string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.buf.String(), s)
}

// deadline returns a context that ends with the test or after stepTimeout.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	t.Cleanup(cancel)
	return ctx
}

// await calls try at short intervals until it returns nil.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx := deadline(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// must ends the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
