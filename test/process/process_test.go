package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// actAs is the environment variable that makes the test binary act as a program under test.
const actAs = "PROFFER_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case "":
		os.Exit(m.Run())
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "failing":
		fmt.Println("no such flag")
		os.Exit(3)
	case "polite":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		go func() { <-terminated; os.Exit(0) }()
	}
	address := strings.TrimPrefix(os.Args[len(os.Args)-1], "--health-probe-bind-address=")
	fmt.Println("serving")
	_ = http.ListenAndServe(address, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

func startAs(t *testing.T, name string) *Process {
	t.Helper()
	self, err := os.Executable()
	test.Must(t, err)
	return StartTest(t, self, []string{"--health-probe-bind-address=:8081"}, actAs+"="+name)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAProcessIsReadyThenStops(t *testing.T) {
	p := startAs(t, "polite")
	test.Must(t, p.Ready(within(t, time.Minute)))
	if err := p.Alive(); err != nil || !strings.Contains(p.Log(), "serving") {
		t.Errorf("Alive returns %v and Log %q, want nil and the text serving", err, p.Log())
	}
	test.Check(t, p.Stop(time.Minute))
	if p.Alive() == nil {
		t.Error("Alive returns nil after the process ended")
	}
}

func TestAProcessThatIgnoresSIGTERMIsKilledAndReported(t *testing.T) {
	p := startAs(t, "stubborn")
	test.Must(t, p.Ready(within(t, time.Minute)))
	err := p.Stop(10 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "still runs 10ms after SIGTERM") {
		t.Errorf("got %v, want an error that the process still runs", err)
	}
	if p.Alive() == nil {
		t.Error("the process still runs")
	}
}

func TestWaitingEndsWithTheProcess(t *testing.T) {
	p := startAs(t, "failing")
	err := p.Ready(within(t, time.Minute))
	var ended *EndedError
	var exit *exec.ExitError
	if !errors.As(err, &ended) || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v, want the exit status 3", err)
	}
	if !strings.Contains(p.Log(), "no such flag") {
		t.Errorf("Log returns %q, want the text no such flag", p.Log())
	}
}

// A connection gets a port from 32768 on, or from a higher one.
func TestNoConnectionTakesAFreePort(t *testing.T) {
	addresses, err := FreeAddresses(blockSize / 2)
	test.Must(t, err)
	seen := map[string]bool{}
	for _, address := range addresses {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !at.Addr().IsLoopback() || at.Port() >= 32768 {
			t.Errorf("%s is no address below the ports of connections: %v", address, err)
		}
		if seen[address] {
			t.Errorf("%s is there twice", address)
		}
		seen[address] = true
	}
}

func TestAPortIsNotGivenTwiceBeforeItCanBeUsed(t *testing.T) {
	seen := map[string]bool{}
	for range blockSize / 2 {
		addresses, err := FreeAddresses(1)
		test.Must(t, err)
		if seen[addresses[0]] {
			t.Errorf("%s is given twice", addresses[0])
		}
		seen[addresses[0]] = true
	}
}

func TestNoTwoProcessesHaveABlockOfPorts(t *testing.T) {
	own, err := ownBlock()
	test.Must(t, err)
	other, err := claimBlock() // as another process does
	test.Must(t, err)
	defer func() { _ = other.claim.Close() }()
	if own.first == other.first {
		t.Errorf("both have the block from %d", own.first)
	}
}

func TestEachEnabledServerGetsItsOwnFreePort(t *testing.T) {
	args := []string{
		"--leader-elect", "--grpc-bind-address=:6001", "--metrics-bind-address=", "--pprof-bind-address=0",
		"--health-probe-bind-address=127.0.0.1:8081",
		"--bind-address=192.0.2.1", // Not of the operator.
	}
	before := slices.Clone(args)
	got, err := OnLoopback(args)
	test.Must(t, err)
	if !slices.Equal(args, before) {
		t.Errorf("the caller's arguments became %q", args)
	}
	for i, kept := range []bool{true, false, false, true, true, true} {
		if (got[i] == args[i]) != kept {
			t.Errorf("%s became %s", args[i], got[i])
		}
	}
	if grpc, metrics := got[1], got[2]; strings.TrimPrefix(grpc, "--grpc-bind-address=127.0.0.1:") == grpc ||
		strings.TrimPrefix(grpc, "--grpc") == strings.TrimPrefix(metrics, "--metrics") {
		t.Errorf("got %s and %s, want two ports of the loopback device", grpc, metrics)
	}
}

func TestThePluginIsLinkedToIfItIsBuilt(t *testing.T) {
	built, dir := filepath.Join(t.TempDir(), "built"), t.TempDir()
	test.Must(t, os.WriteFile(built, []byte("the plugin"), 0o600))
	t.Setenv("PROFFER_PLUGIN_BIN", built)
	test.Must(t, AddPlugin(t.Context(), dir))
	for name, want := range map[string]string{"kubectl-proffer": "the plugin", "kubectl_complete-proffer": "#!/"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
