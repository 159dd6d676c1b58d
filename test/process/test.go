package process

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// grace is how long a process may take to end when its test does.
const grace = 30 * time.Second

// StartTest is Start for a test: env is added to the environment, and the process ends with the test.
// The test fails if the race detector finds something in the process. A test that failed shows what
// the process printed.
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
			// SIGTERM first, so that the next leader need not wait for the lease to expire.
			_ = p.Stop(grace)
		}
		if strings.Contains(p.Log(), "WARNING: DATA RACE") {
			t.Error("the race detector has found something in the operator")
		}
		if t.Failed() {
			t.Logf("log of the operator at %s:\n%s", p.Address("grpc"), p.Log())
		}
	})
	return p
}

// FreeAddress returns an address of the loopback device at which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}
