package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a machine as packages.sh sees it: PATH has these programs, which are shell scripts.
func machine(t *testing.T, programs map[string]string) (path string) {
	t.Helper()
	path = t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestMissingPackagesAreInstalledOrNamed(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	const calls = `echo "$(basename "$0") $*" >>"$(dirname "$0")/calls"`
	debian := map[string]string{"postgres": "", "apt-get": calls, "service": calls, "basename": `echo "${1##*/}"`, "dirname": `echo "${1%/*}"`}
	with := func(more map[string]string) map[string]string {
		out := map[string]string{}
		for _, programs := range []map[string]string{debian, more} {
			maps.Copy(out, programs)
		}
		return out
	}
	for name, tc := range map[string]struct {
		programs   map[string]string
		out, calls string
		fails      bool
	}{
		"nothing is missing": {programs: map[string]string{"gcc": "", "google-chrome": "", "mariadbd": "", "postgres": "", "pgbouncer": ""}},
		"root on Debian": {
			programs: with(map[string]string{"id": "echo 0"}),
			out:      "installing gcc libc6-dev chromium mariadb-server pgbouncer (a minute)\n",
			calls: "apt-get update -qq\napt-get install -qq --no-install-recommends gcc libc6-dev chromium mariadb-server pgbouncer\n" +
				"service mariadb stop\nservice pgbouncer stop\n",
		},
		"a user on Debian": {
			programs: with(map[string]string{"id": "echo 1000", "gcc": ""}), fails: true,
			out: "The tests need packages that only root can install. Type this, and start again:\n" +
				"  sudo apt-get install --no-install-recommends chromium mariadb-server pgbouncer\n",
		},
		"another system": {
			programs: map[string]string{"postgres": "", "gcc": "exit 1", "chromium": ""}, fails: true,
			out: "The tests need, and this machine lacks:\n" +
				"- a C compiler, with the headers of the C library: in PATH, or named by CC\n" +
				"- the server of MariaDB, with Galera 4 and rsync: mariadbd in PATH\n" +
				"- the pooler of PostgreSQL: pgbouncer in PATH\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := machine(t, tc.programs)
			// Debian has mariadbd in a directory that the script adds to PATH.
			script, err := os.ReadFile("packages.sh")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), bash, "-c",
				strings.ReplaceAll(string(script), ":/usr/sbin:/usr/local/sbin", ""))
			cmd.Env = []string{"PATH=" + path}
			out, err := cmd.CombinedOutput()
			if (err != nil) != tc.fails || string(out) != tc.out {
				t.Errorf("got %v and:\n%s\nwant:\n%s", err, out, tc.out)
			}
			called, _ := os.ReadFile(filepath.Join(path, "calls")) // No call, no file.
			if string(called) != tc.calls {
				t.Errorf("called:\n%s\nwant:\n%s", called, tc.calls)
			}
		})
	}
}
