package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test"
)

// asDemo is the environment variable that makes the test binary run the demo.
const asDemo = "PROFFER_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Args = os.Args[:1]
		main()
		return
	}
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set.
	os.Exit(m.Run())
}

// However the demo ends, the programs that it started end too.
func TestNoProgramOutlivesTheDemo(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, demo *exec.Cmd, table *os.File){
		"its terminal is closed": func(t *testing.T, demo *exec.Cmd, _ *os.File) {
			t.Helper()
			signalTo(t, demo, syscall.SIGHUP)
		},
		"it is killed": func(t *testing.T, demo *exec.Cmd, _ *os.File) {
			t.Helper()
			signalTo(t, demo, syscall.SIGKILL)
		},
		"its output is closed": func(_ *testing.T, _ *exec.Cmd, table *os.File) { _ = table.Close() },
		// As with `2>&1 | tee log` and Ctrl-C: tee ends first.
		"its output is closed, then Ctrl-C": func(t *testing.T, demo *exec.Cmd, table *os.File) {
			t.Helper()
			_ = table.Close()
			signalTo(t, demo, syscall.SIGINT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			work := shortTempDir(t)
			demo := exec.Command(os.Args[0])
			demo.Env = append(os.Environ(), asDemo+"=1", "TMPDIR="+work)
			table, written, err := os.Pipe()
			test.Must(t, err)
			demo.Stdout, demo.Stderr = written, written
			test.Must(t, demo.Start())
			_ = written.Close()
			ended := make(chan struct{})
			go func() { defer close(ended); _ = demo.Wait() }()
			t.Cleanup(func() { _ = demo.Process.Kill(); <-ended })
			await(t, bufio.NewScanner(table), `^oslo +<unnamed> +cpu +5 .* spare$`)
			if run := runningIn(t.Context(), t, work); len(run) < 3 {
				t.Fatalf("%d programs run, want etcd, kube-apiserver and the operator:\n%s",
					len(run), strings.Join(run, "\n"))
			}
			end(t, demo, table)
			select {
			case <-ended:
			case <-time.After(waitTimeout):
				t.Fatal("the demo keeps running")
			}
			var left []string
			err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) {
					left = runningIn(ctx, t, work)
					files, err := os.ReadDir(work)
					for _, f := range files {
						if strings.HasPrefix(f.Name(), "proffer-") {
							left = append(left, f.Name())
						}
					}
					return len(left) == 0, err
				})
			if err != nil {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func signalTo(t *testing.T, demo *exec.Cmd, signal syscall.Signal) {
	t.Helper()
	test.Must(t, demo.Process.Signal(signal))
}

// runningIn returns the programs whose arguments name the directory.
func runningIn(ctx context.Context, t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "ps", "-A", "-ww", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(fmt.Errorf("listing programs: %w", err))
	}
	var in []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, dir) {
			in = append(in, line)
		}
	}
	return in
}
