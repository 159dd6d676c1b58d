package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// resident is the memory of a process, in bytes.
type resident struct{ now, anonymous, peak float64 }

// running is a process that learns the state of a cluster.
type running interface {
	pid() int
	// ready returns when the process knows all objects.
	ready(context.Context) error
	// heap triggers a garbage collection in the process and returns the live bytes after it.
	heap(context.Context) (float64, error)
	// stop ends the process. After a failure its error includes the output of the process.
	stop(failed bool) error
}

// child is a process of this program. It answers each input line with a line, and ends with its
// input.
type child struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startChild(ctx context.Context, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{process: exec.CommandContext(ctx, program, args...)}
	c.process.Stderr = os.Stderr
	if c.in, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.process.Start()
}

func (c *child) end() error { return errors.Join(c.in.Close(), c.process.Wait()) }

// follower is a child that runs followCluster.
type follower struct{ *child }

func (c *cluster) startFollower(ctx context.Context, way string) (running, error) {
	started, err := startChild(ctx, follow, way, c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("starting the %s: %w", way, err)
	}
	return &follower{started}, nil
}

func (f *follower) pid() int { return f.process.Process.Pid }

func (f *follower) ready(context.Context) error {
	_, err := f.out.ReadString('\n')
	return err
}

func (f *follower) heap(context.Context) (float64, error) {
	if _, err := fmt.Fprintln(f.in); err != nil {
		return 0, err
	}
	line, err := f.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// stop ends the process, which has already printed its errors.
func (f *follower) stop(bool) error { return f.end() }
