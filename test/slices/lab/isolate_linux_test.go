package lab

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if !Isolated() {
		os.Exit(m.Run())
	}
	// A program takes a second, and then says so and stays.
	busy := exec.Command("sh", "-c", "(ulimit -t 1; while :; do :; done); echo; sleep 1000")
	out, err := busy.StdoutPipe()
	if err == nil {
		err = busy.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if endAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestProcessorTimeOfALabsProgramsIsCounted(t *testing.T) {
	before := children(t)
	if code, err := Isolate(); code != 0 || err != nil {
		t.Fatalf("ended with %d: %v", code, err)
	}
	// The kernel ends the program by a coarser clock, which also counts what a hypervisor took from the processor. Nothing
	// else here takes as long.
	if took := children(t) - before; took < 500*time.Millisecond {
		t.Errorf("counted %v, and a program took a second", took)
	}
}

// children returns the processor time of all processes that this one has awaited.
func children(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	Must(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
