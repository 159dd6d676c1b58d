package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

func TestTheWidthIsThatOfTheTerminalThenOfCOLUMNSThen80(t *testing.T) {
	t.Setenv("COLUMNS", "")
	file := &screen{out: &bytes.Buffer{}}
	for columns, want := range map[string]int{"": 80, "132": 132, "0": 80, "-5": 80, "wide": 80, "7": minWidth} {
		t.Setenv("COLUMNS", columns)
		if got := file.width(); got != want {
			t.Errorf("COLUMNS=%q: got a width of %d, want %d", columns, got, want)
		}
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("COLUMNS", "132")
	for columns, want := range map[uint16]int{200: 200, 80: 80, 10: minWidth, 0: 132} {
		test.Must(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
			&unix.Winsize{Row: 24, Col: columns}))
		if got := (&screen{out: terminal}).width(); got != want {
			t.Errorf("a terminal of %d columns: %d, want %d", columns, got, want)
		}
	}
}

func TestAShellReadsAQuotedTextAsOneWord(t *testing.T) {
	for _, text := range []string{"/tmp/proffer-demo-1/env", "/home/a b/it's $HOME", "~/x", "a;b", "", "é"} {
		out, err := exec.Command("sh", "-c", "printf '[%s]' "+quote(text)).Output()
		if err != nil || string(out) != "["+text+"]" {
			t.Errorf("%q: a shell reads %s: %v", text, out, err)
		}
	}
}

func TestTheHintsForAnExistingClusterNameItsKubeconfig(t *testing.T) {
	c := &cluster{kubeconfig: "/home/me/a file", samples: true}
	hints, err := c.hints()
	test.Must(t, err)
	text := strings.Join(hints, "\n")
	if !strings.Contains(text, "  kubectl --kubeconfig '/home/me/a file' edit rpol nodes-free\n") ||
		strings.Contains(text, "apply") {
		t.Errorf("got:\n%s", text)
	}
	c.samples = false
	if hints, err = c.hints(); err != nil || strings.Contains(strings.Join(hints, "\n"), "edit") {
		t.Errorf("without samples, the hints edit a policy whose name is unknown: %q, %v", hints, err)
	}
}

func TestTheFirstSamplesAreAmongTheSamples(t *testing.T) {
	files, err := filepath.Glob("../../" + samples + "/proffer.dev_*.yaml")
	test.Must(t, err)
	names := map[string]bool{}
	for _, file := range files {
		objects, err := controlplane.ReadObjects(file)
		test.Must(t, err)
		for _, o := range objects {
			names[o.GetName()] = true
		}
	}
	for _, name := range firstSamples {
		if !names[name] {
			t.Errorf("no sample is named %s", name)
		}
	}
}
