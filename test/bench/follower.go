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

// running is a process that comes to know a cluster.
type running interface {
	pid() int
	// ready returns when the process knows all there is.
	ready(context.Context) error
	// heap has the process collect its garbage, and returns the bytes that are live then.
	heap(context.Context) (float64, error)
	// stop ends the process. Its error holds what the process printed if something has failed already.
	stop(failed bool) error
}

// child is a process of this program. It answers lines with lines, and ends with its input.
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

// end ends the process.
func (c *child) end() error { return errors.Join(c.in.Close(), c.process.Wait()) }

// follower is a process that follows a cluster in one of the ways of followCluster.
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

// stop ends the process. What it has to say of a failure it says itself.
func (f *follower) stop(bool) error { return f.end() }
