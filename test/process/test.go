package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// grace is how long a process may take to stop at the end of its test.
const grace = 30 * time.Second

// The operators that the tests of a package share, without and with the race detector.
var program, raceProgram = buildOnce(Build), buildOnce(BuildRace)

// Program returns the operator of Build, which the first test of a package builds. TestMain must call test.Main.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	test.Must(t, err)
	return path
}

// RaceProgram is Program with the race detector.
func RaceProgram(t testing.TB) string {
	t.Helper()
	path, err := raceProgram()
	test.Must(t, err)
	return path
}

func buildOnce(build func(ctx context.Context, dir string) (string, error)) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "proffer-program-")
		if err != nil {
			return "", err
		}
		test.AtEnd(func() error { return os.RemoveAll(dir) })
		return build(context.Background(), dir)
	})
}

// StartTest is Start for a test. It adds env to the environment and ends the process with the test.
// The test fails if the race detector reports a race in the process. A failed test logs what the
// process has printed.
func StartTest(t testing.TB, program string, args []string, env ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Env = append(os.Environ(), env...)
	p, err := Start(cmd)
	test.Must(t, err)
	t.Cleanup(func() {
		if p.Alive() == nil {
			_ = p.Resume() // A suspended process would not handle SIGTERM.
			// On SIGTERM it releases the lease, so that the next leader does not have to wait.
			_ = p.Stop(grace)
		}
		if strings.Contains(p.Log(), "WARNING: DATA RACE") {
			t.Error("the race detector reported a race in the operator")
		}
		if t.Failed() {
			t.Logf("log of the operator at %s:\n%s", p.Address("grpc"), p.Log())
		}
	})
	return p
}

// AwaitReady is Ready for a test.
func (p *Process) AwaitReady(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), test.Timeout)
	defer cancel()
	test.Must(t, p.Ready(ctx))
}

// AwaitLog waits until a line that the process has printed matches a regular expression.
func (p *Process) AwaitLog(t testing.TB, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	test.Eventually(t, func() error {
		if !wanted.MatchString(p.Log()) {
			return fmt.Errorf("the process has printed nothing like %s", pattern)
		}
		return nil
	})
}

// FreeAddress returns an address of the loopback device whose port is free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	test.Must(t, err)
	return addresses[0]
}
