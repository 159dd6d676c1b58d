package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// usageEnv names the file to which measure adds a line for each test binary.
const usageEnv = "GOTEST_USAGE"

// usage collects the processor time of the test binaries of a module.
type usage struct{ wrapper, env, file string }

func newUsage() (*usage, error) {
	wrapper, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "gotest-usage-")
	if err != nil {
		return nil, err
	}
	return &usage{wrapper: wrapper, env: usageEnv + "=" + file.Name(), file: file.Name()}, file.Close()
}

// read returns the processor time by directory of a package.
func (u *usage) read() map[string]time.Duration {
	out := map[string]time.Duration{}
	file, err := os.Open(u.file)
	if err != nil {
		return out
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		duration, dir, _ := strings.Cut(lines.Text(), " ")
		if d, err := time.ParseDuration(duration); err == nil {
			out[dir] += d
		}
	}
	return out
}

func (u *usage) remove() { _ = os.Remove(u.file) }

// measure runs a test binary in the directory of its package, and writes down how much processor time
// it took together with the programs that it started. It returns the exit status.
func measure(args []string) int {
	file := os.Getenv(usageEnv)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The tests themselves build without cgo.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", usageEnv+"=")
	// go test signals this process, and Ctrl-C the whole group: the binary decides what follows.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGCHLD && s != syscall.SIGURG && s != syscall.SIGINT {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	err := cmd.Wait()
	if dir, wdErr := os.Getwd(); wdErr == nil {
		appendLine(file, fmt.Sprintf("%v %s\n", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), dir))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// appendLine adds a line to a file. Lines of processes that run at the same time do not mix.
func appendLine(name, line string) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // The table lacks one number.
	}
	_, _ = file.WriteString(line)
	_ = file.Close()
}
