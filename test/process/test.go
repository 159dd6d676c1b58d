package process

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// grace is how long a process may take to stop at the end of its test.
const grace = 30 * time.Second

// StartTest is Start for a test. It adds env to the environment and ends the process with the test.
// The test fails if the race detector reports a race in the process. A failed test logs what the
// process has printed.
func StartTest(t testing.TB, program string, args []string, env ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Env = append(os.Environ(), env...)
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
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

// FreeAddress returns an address of the loopback device whose port is free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// Eventually waits until try returns nil. After this time it fails the test. It can be called in a cleanup.
func Eventually(t testing.TB, within time.Duration, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	if err := Until(ctx, func(context.Context) error { return try() }); err != nil {
		t.Fatal(err)
	}
}
