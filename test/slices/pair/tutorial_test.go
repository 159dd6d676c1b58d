package pair

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start.
const startTimeout = 5 * time.Minute

// running has the clusters of the test.
var running *lab.Lab

func TestMain(m *testing.M) {
	lab.Test(m, startTimeout, func(ctx context.Context, l *lab.Lab) error {
		running = l
		return Start(ctx, l)
	})
}

var (
	block = regexp.MustCompile("(?ms)^```(console|yaml)\n(.*?)^```$")
	// name is the file that the text before a block of YAML names.
	name = regexp.MustCompile("`([a-z]+\\.yaml)`")
)

// The tutorial is typed as it is written. What it shows must come, at once or a moment later.
func TestTheTutorialIsTrue(t *testing.T) {
	content, err := os.ReadFile("../../../docs/tutorials/first-slice.md")
	lab.Must(t, err)
	page := string(content)
	dir, functions, commands, last := t.TempDir(), "", 0, 0
	for _, at := range block.FindAllStringSubmatchIndex(page, -1) {
		kind, text, before := page[at[2]:at[3]], page[at[4]:at[5]], page[last:at[0]]
		last = at[1]
		if kind == "yaml" {
			names := name.FindAllStringSubmatch(before, -1)
			if len(names) == 0 {
				t.Fatalf("no file is named before\n%s", text)
			}
			lab.Must(t, os.WriteFile(filepath.Join(dir, names[len(names)-1][1]), []byte(text), 0o600))
			continue
		}
		for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, shown, _ := strings.Cut(step, "\n")
			switch {
			case command == "make lab":
			case strings.Contains(command, "() {"):
				functions += command + "\n"
			default:
				commands++
				typed(t, dir, functions, command, strings.TrimSpace(shown))
			}
		}
	}
	if commands < 20 {
		t.Errorf("the tutorial has %d commands", commands)
	}
}

// typed types a command until it prints what is shown. A command that changes something is typed once.
func typed(t *testing.T, dir, functions, command, shown string) {
	t.Helper()
	reads := regexp.MustCompile(`^answer$| get `).MatchString(command)
	run := func(ctx context.Context) error {
		shell, err := running.Shell(ctx, t.TempDir(), Tour.Text, "-eu", "-o", "pipefail", "-c", functions+command)
		if err != nil {
			return err
		}
		shell.Dir = dir
		out, err := shell.CombinedOutput()
		got := strings.TrimSpace(string(out))
		nothing := got == "" || strings.HasPrefix(got, "No resources found")
		switch {
		case err != nil:
			return fmt.Errorf("%s\n%w: %s", command, err, got)
		case shown != "" && got != shown || reads && nothing:
			return fmt.Errorf("%s\nprints %q, want %q", command, got, shown)
		}
		return nil
	}
	if reads {
		lab.Eventually(t, command, run)
		return
	}
	lab.Must(t, run(t.Context()))
}
