package broker

import (
	"context"
	"strings"
	"testing"

	"proffer.dev/proffer/test/slices/lab"
)

// TestTheTour types what the lab says, with a check after the commands that need time. It has no drain:
// TestPodsMoveToABetterProviderAfterTheDrain waits for one.
func TestTheTour(t *testing.T) {
	settle(t, "oslo", 0)
	t.Cleanup(func() {
		change(t, map[string]any{"disabled": nil})
		lab.Check(t, Apply(context.WithoutCancel(t.Context()), clusters.Oslo, "provider"))
	})
	commands := 0
	for line := range strings.Lines(strings.ReplaceAll(Tour.Text, "\\\n", "")) {
		command, isCommand := strings.CutPrefix(line, "  ")
		if !isCommand {
			continue
		}
		commands++
		shell, err := clusters.Shell(t.Context(), t.TempDir(), Tour.Text, "-eu", "-o", "pipefail", "-c", command)
		lab.Must(t, err)
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s%v\n%s", command, err, out)
		}
		switch {
		case strings.Contains(command, " logs ") && !strings.Contains(string(out), lab.LogLine+"oslo"):
			t.Errorf("%s%s", command, out)
		case strings.Contains(command, "create deployment"):
			deleteAfter(t, "web")
			awaitRunOn(t, "web", 2, "oslo")
		case strings.Contains(command, "paris price"):
			awaitRunOn(t, "web", 2, "paris")
		case strings.Contains(command, "disabled"):
			awaitRunOn(t, "web", 2, "oslo")
		case strings.Contains(command, `"cpu":"2"`):
			lab.Eventually(t, "milan resells less", func(ctx context.Context) error {
				return granted(ctx, 9000)
			})
		}
	}
	if commands < 9 {
		t.Errorf("the tour has %d commands", commands)
	}
}
