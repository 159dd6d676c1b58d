package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// peak runs the plugin as a process of its own, and returns the largest memory that it used, in
// bytes.
func peak(t *testing.T, s *operatortest.Server, args ...string) int64 {
	t.Helper()
	return peakOf(t, 0, s, args...)
}

// peakOf is peak for a command that ends with this status.
func peakOf(t *testing.T, status int, s *operatortest.Server, args ...string) int64 {
	t.Helper()
	self, err := os.Executable()
	test.Must(t, err)
	cmd := exec.CommandContext(t.Context(), self, append(args, "--kubeconfig="+s.Kubeconfig)...)
	cmd.Env, cmd.Stdout = append(os.Environ(), asPlugin+"=1"), io.Discard
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != status {
		t.Fatal(err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// Package snapshot tests the same of --anonymise, which makes more garbage.
func TestASnapshotOf50000PodsTakesNoMoreMemoryThanASmallOne(t *testing.T) {
	const tolerance = 8 << 20 // The snapshot has 17 MB.
	large, creator := operatortest.World(), strings.Repeat("x", 200)
	for i := range 50_000 {
		large.Pods = append(large.Pods, rest.WorldPod{
			UID: fmt.Sprintf("11111111-2222-3333-4444-%012d", i), Node: fmt.Sprintf("worker-%d", i%5000), Consumer: "rome", Creator: creator,
			Requests: operatortest.Amounts("cpu", "1500m", "memory", "8Gi"),
		})
	}
	s := operatortest.Start(t)
	small := peak(t, s, "snapshot")
	s.Refuse(operatortest.OperatorPath("GET", rest.SnapshotPath), operatortest.Refusal{Code: http.StatusOK, Body: large})
	if got := peak(t, s, "snapshot"); got > small+tolerance {
		t.Errorf("it takes %d bytes, and %d for a small snapshot", got, small)
	}
}

func TestProvidersThatAnswerWithoutEndTakeLittleMemory(t *testing.T) {
	const tolerance = 128 << 20 // Ten are read at a time.
	s := operatortest.Start(t)
	small := peak(t, s, "catalog")
	for i, h := range []hostile{
		hostileProviders["endless"], hostileProviders["zipped"], hostileProviders["deep"], hostileProviders["crowd"],
		hostileBrokers["many"], hostileBrokers["vast"], hostileBrokers["fat"],
	} {
		for n := range 4 {
			addHostile(t, s, fmt.Sprintf("hostile-%d-%d", i, n), h.serve)
		}
	}
	for _, command := range []string{"catalog", "providers"} {
		got := peakOf(t, 1, s, command)
		t.Logf("%s: %d MB, %d MB without them", command, got>>20, small>>20)
		if got > small+tolerance {
			t.Errorf("%s takes %d bytes, and %d without them", command, got, small)
		}
	}
}
