// Package api tests hack/verify/api.sh on a module of its own.
package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

func TestABrokenPublicAPIIsRefusedOnceThereIsARelease(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "api.sh"))
	test.Must(t, err)
	dir := t.TempDir()
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(name string, args ...string) {
		t.Helper()
		if out, err := run(name, args...); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	write := func(file, text string) {
		t.Helper()
		test.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		test.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	check := func(wantFailure bool, want string) {
		t.Helper()
		out, err := run(script, dir, "./plugin", "./added")
		if (err != nil) != wantFailure || !strings.Contains(out, want) {
			t.Errorf("error %v, output\n%s\nwant failure %v and %q", err, out, wantFailure, want)
		}
	}
	write("go.mod", "module example.com/public\n\ngo 1.26\n")
	write("plugin/plugin.go", "package plugin\n\nfunc Old() {}\n")
	must("git", "init", "--quiet")
	must("git", "add", ".")
	must("git", "commit", "--quiet", "-m", "first")
	write("added/added.go", "package added\n\nfunc New() {}\n")
	check(false, "there is no release to compare with")

	must("git", "tag", "v0.1.0")
	check(false, "2 public packages are compatible with v0.1.0")
	write("plugin/plugin.go", "package plugin\n\nfunc Old() {}\n\nfunc New() {}\n")
	check(false, "2 public packages are compatible with v0.1.0")
	write("plugin/plugin.go", "package plugin\n\nfunc Old(int) {}\n")
	check(true, "./plugin differs from v0.1.0:\n- Old: changed from func() to func(int)")
}
