package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A process is a program that runs during the tests.
type process struct {
	name   string
	log    string
	exited chan struct{}
	// err is the result of Wait, valid once exited is closed.
	err error
	cmd *exec.Cmd
}

// command returns a command that runs a program, given by its path, until the namespaces end.
func command(program string, args ...string) *exec.Cmd {
	return &exec.Cmd{Path: program, Args: append([]string{program}, args...)}
}

// start runs cmd, which logs to a file in dir.
func start(dir, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{}), cmd: cmd}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// await calls try until it returns nil, or the process or ctx ends.
func (p *process) await(ctx context.Context, what string, try func(context.Context) error) error {
	return Await(ctx, what, func(ctx context.Context) error {
		if p.ended() {
			return &endedError{p}
		}
		return try(ctx)
	})
}

// An endedError reports that a process has ended, so that waiting makes no sense.
type endedError struct{ p *process }

func (e *endedError) Error() string {
	return fmt.Sprintf("%s has ended: %v\n%s", e.p.name, e.p.err, tail(e.p.log))
}

// tail returns the last 8 KiB of a file.
func tail(file string) string {
	const most = 8 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	data, _ := io.ReadAll(f)
	return string(data)
}

// Await calls try until it returns nil or ctx ends. The intervals are a tenth of the time so far, within
// bounds: what takes long must not keep the API servers busy.
func Await(ctx context.Context, what string, try func(context.Context) error) error {
	const least, most = 20 * time.Millisecond, 250 * time.Millisecond
	began := time.Now()
	timer := time.NewTimer(least)
	defer timer.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // an error caused by the end of ctx would hide the last one
		}
		if ended := (*endedError)(nil); errors.As(err, &ended) {
			return fmt.Errorf("%s: %w", what, err)
		}
		timer.Reset(min(max(time.Since(began)/10, least), most))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), last)
		}
	}
}
