package plugin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
)

// onTerminal runs a line of a shell whose output is a terminal of this width, and returns what the
// terminal shows.
func onTerminal(t *testing.T, width int, kubeconfig, line string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer func() { _ = master.Close() }()
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	test.Must(t, err)
	test.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil { //nolint:gosec // it is small
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	test.Must(t, err)
	var stderr bytes.Buffer
	cmd := shellCommand(t.Context(), kubeconfig, line)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdout, cmd.Stderr = slave, &stderr
	test.Must(t, cmd.Start())
	_ = slave.Close()
	// When the last writer has closed the terminal, reading fails with EIO.
	out, _ := io.ReadAll(master)
	_ = cmd.Wait() // simulate has a status of its own.
	if stderr.Len() > 0 {
		t.Errorf("%s: %s", line, &stderr)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

func TestATerminalShowsWhatFits(t *testing.T) {
	kubeconfig := editor(t)
	startOperator(t)
	populate(t, kubeconfig)
	t.Run("tables at 80 and 160 columns", func(t *testing.T) { testTables(t, kubeconfig) })
	t.Run("colours, and none with NO_COLOR", func(t *testing.T) { testColors(t, kubeconfig) })
}

// testTables compares what terminals of two widths show with testdata.
func testTables(t *testing.T, kubeconfig string) {
	for _, width := range []int{80, 160} {
		var shown strings.Builder
		for _, command := range []string{
			"offers", "offers rome -o wide", "explain rome", "top", "top consumers", "top nodes", "simulate --drain worker-2", "version",
		} {
			out := onTerminal(t, width, kubeconfig, "kubectl proffer "+command)
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
					t.Errorf("%s: %d characters in a terminal of %d: %s", command, n, width, line)
				}
			}
			fmt.Fprintf(&shown, "$ kubectl proffer %s\n%s\n", command, out)
		}
		golden.File(t, filepath.Join("testdata", fmt.Sprintf("terminal-%d.txt", width)), normalised(shown.String())+"\n")
	}
}

// testColors has evictions simulated, which a terminal shows in red.
func testColors(t *testing.T, kubeconfig string) {
	const policy = "{apiVersion: proffer.dev/v1alpha1, kind: ResourcePolicy, metadata: {name: gold-pool}, " +
		"spec: {class: gold, reclaim: Evict, offer: {nodes: {selector: {matchLabels: {pool: none}}}}}}"
	const line, red = "echo '" + policy + "' | kubectl proffer simulate -f -", "\x1b[31m"
	if got := onTerminal(t, 80, kubeconfig, line); !strings.Contains(got, red+"oslo ") {
		t.Errorf("no red row in %q", got)
	}
	if got := onTerminal(t, 80, kubeconfig, "export NO_COLOR=1; "+line); strings.Contains(got, red) || !strings.Contains(got, "\noslo ") {
		t.Errorf("colours in %q", got)
	}
}
