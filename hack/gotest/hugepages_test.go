package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settingOf is a setting of huge pages in a file of its own, and the script that changes it.
func settingOf(t *testing.T, before string) (setting, script string) {
	t.Helper()
	dir := t.TempDir()
	setting, script = filepath.Join(dir, "enabled"), filepath.Join(dir, "hugepages.sh")
	if err := os.WriteFile(setting, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../hugepages.sh")
	if err != nil {
		t.Fatal(err)
	}
	const own = "setting=/sys/kernel/mm/transparent_hugepage/enabled\n"
	if !strings.Contains(string(text), own) {
		t.Fatalf("the script lacks %q", own)
	}
	changed := strings.ReplaceAll(string(text), own, "setting="+setting+"\n")
	if err := os.WriteFile(script, []byte(changed), 0o700); err != nil {
		t.Fatal(err)
	}
	return setting, script
}

func TestHugePagesAreSetWhileSomethingRuns(t *testing.T) {
	for _, program := range []string{"bash", "flock", "setsid"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("make run and make test leave the setting alone here: %v", err)
		}
	}
	setting, script := settingOf(t, "always [madvise] never\n")
	is := func(want string) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for now := range time.Tick(10 * time.Millisecond) {
			got, err := os.ReadFile(setting)
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(got)) == want {
				return
			}
			if now.After(deadline) {
				t.Fatalf("the setting is %q, want %q", got, want)
			}
		}
	}
	// start runs the script until the function that it returns is called.
	start := func() (end func()) {
		cmd := exec.CommandContext(t.Context(), script, "-c", "echo started; read; exit 3")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
			t.Fatalf("printed %q: %v", line, err)
		}
		return func() {
			t.Helper()
			_ = in.Close()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 3 {
				t.Errorf("exit code %d, want that of the command: 3", code)
			}
		}
	}
	first := start()
	is("always")
	// What sysfs says then.
	if err := os.WriteFile(setting, []byte("[always] madvise never\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := start()
	first()
	// The second one still holds the lock.
	if err := exec.CommandContext(t.Context(), "flock", "--nonblock", setting, "true").Run(); err == nil {
		t.Error("nobody holds the lock")
	}
	is("[always] madvise never")
	second()
	is("madvise")
}

func TestHugePagesStayAsSomebodyHasSetThem(t *testing.T) {
	for _, before := range []string{"[always] madvise never\n", "always madvise [never]\n"} {
		setting, script := settingOf(t, before)
		out, err := exec.CommandContext(t.Context(), script, "-c", `cat "$0"`, setting).CombinedOutput()
		if err != nil || string(out) != before {
			t.Errorf("set to %q: %v, want %q", out, err, before)
		}
	}
}
