package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a machine as packages.sh sees it: PATH has these programs, which are shell scripts. A name with a
// slash is a file.
func machine(t *testing.T, programs map[string]string) (path string) {
	t.Helper()
	path = t.TempDir()
	for name, script := range programs {
		file := filepath.Join(path, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
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
	debian := map[string]string{
		"apt-get": calls, "service": calls, "basename": `echo "${1##*/}"`, "dirname": `echo "${1%/*}"`,
		"usr/lib/os-release":                 "ID=debian",
		"usr/lib/postgresql/15/bin/postgres": "", "usr/lib/postgresql/15/bin/initdb": "", "psql": "", "pg_dump": "", "ps": "",
	}
	complete := map[string]string{
		"gcc": "", "google-chrome": "", "usr/sbin/mariadbd": "", "mariadb-install-db": "", "mariadb": "", "mariadb-dump": "",
		"usr/lib/galera/libgalera_smm.so": "", "rsync": "", "postgres": "", "initdb": "", "psql": "", "pg_dump": "",
		"pgbouncer": "", "curl": "", "ps": "",
	}
	with := func(base, more map[string]string) map[string]string {
		out := maps.Clone(base)
		maps.Copy(out, more)
		return out
	}
	// Without its snap, chromium-browser of Ubuntu prints a message and fails.
	ubuntu := with(debian, map[string]string{"usr/lib/os-release": "NAME=Ubuntu\nID=ubuntu\nID_LIKE=debian",
		"chromium-browser": "exit 1"})
	const chromeByHand = "Ubuntu has Chromium as a snap, which containers cannot run. Type this, or name a Chromium by\n" +
		"PROFFER_CHROMIUM, and start again:\n" +
		"  curl -fLO https://dl.google.com/linux/direct/google-chrome-stable_current_amd64.deb\n" +
		"  sudo apt-get install ./google-chrome-stable_current_amd64.deb\n"
	elsewhere := with(complete, map[string]string{"opt/browser": "", "opt/galera.so": ""})
	delete(elsewhere, "google-chrome")
	delete(elsewhere, "usr/lib/galera/libgalera_smm.so")
	type testCase struct {
		programs   map[string]string
		env        []string // $PATH is the machine.
		out, calls string
		fails      bool
	}
	cases := map[string]testCase{
		"nothing is missing": {programs: complete},
		"root on Debian": {
			programs: with(debian, map[string]string{"id": "echo 0"}),
			out: "installing gcc libc6-dev chromium mariadb-server mariadb-client galera-4 rsync pgbouncer curl " +
				"(a minute)\n",
			calls: "apt-get update -qq\napt-get install -qq --no-install-recommends gcc libc6-dev chromium mariadb-server " +
				"mariadb-client galera-4 rsync pgbouncer curl\nservice mariadb stop\nservice pgbouncer stop\n",
		},
		"a user on Debian": {
			programs: with(debian, map[string]string{"id": "echo 1000", "gcc": ""}), fails: true,
			out: "The tests need packages that only root can install. Type this, and start again:\n" +
				"  sudo apt-get install --no-install-recommends chromium mariadb-server mariadb-client galera-4 rsync " +
				"pgbouncer curl\n",
		},
		"root on Ubuntu": {
			programs: with(ubuntu, map[string]string{"id": "echo 0", "gcc": ""}), fails: true,
			out: "installing mariadb-server mariadb-client galera-4 rsync pgbouncer curl (a minute)\n" + chromeByHand,
			calls: "apt-get update -qq\napt-get install -qq --no-install-recommends mariadb-server mariadb-client galera-4 " +
				"rsync pgbouncer curl\nservice mariadb stop\nservice pgbouncer stop\n",
		},
		"root on Ubuntu with Chrome": {
			programs: with(ubuntu, map[string]string{"id": "echo 0", "gcc": "", "google-chrome": ""}),
			out:      "installing mariadb-server mariadb-client galera-4 rsync pgbouncer curl (a minute)\n",
			calls: "apt-get update -qq\napt-get install -qq --no-install-recommends mariadb-server mariadb-client galera-4 " +
				"rsync pgbouncer curl\nservice mariadb stop\nservice pgbouncer stop\n",
		},
		"a user on Ubuntu": {
			programs: with(ubuntu, map[string]string{"id": "echo 1000", "gcc": ""}), fails: true,
			out: "The tests need packages that only root can install. Type this, and start again:\n" +
				"  sudo apt-get install --no-install-recommends mariadb-server mariadb-client galera-4 rsync pgbouncer " +
				"curl\n" + chromeByHand,
		},
		"only Chromium is missing on Ubuntu": {
			programs: with(elsewhere, map[string]string{"usr/lib/os-release": "ID=ubuntu"}), fails: true, out: chromeByHand,
			env: []string{"PROFFER_GALERA=$PATH/opt/galera.so"},
		},
		"variables name what is elsewhere": {
			programs: elsewhere,
			env:      []string{"PROFFER_CHROMIUM=$PATH/opt/browser", "PROFFER_GALERA=$PATH/opt/galera.so", "CC=gcc"},
		},
		"variables name what does not exist": {
			programs: complete, env: []string{"PROFFER_CHROMIUM=/none", "PROFFER_GALERA=/none", "CC=/none"}, fails: true,
			out: "The tests need, and this machine lacks:\n" +
				"- a C compiler, with the headers of the C library: in PATH, or named by CC\n" +
				"- Chromium: in PATH, as chromium, google-chrome or chromium-browser, or named by PROFFER_CHROMIUM\n" +
				"- Galera 4: /usr/lib/galera/libgalera_smm.so, or named by PROFFER_GALERA\n",
		},
		"another system": {
			programs: map[string]string{"postgres": "", "gcc": "exit 1", "chromium": ""}, fails: true,
			out: "The tests need, and this machine lacks:\n" +
				"- a C compiler, with the headers of the C library: in PATH, or named by CC\n" +
				"- the server of MariaDB: mariadbd and mariadb-install-db in PATH\n" +
				"- the clients of MariaDB: mariadb and mariadb-dump in PATH\n" +
				"- Galera 4: /usr/lib/galera/libgalera_smm.so, or named by PROFFER_GALERA\n" +
				"- rsync: in PATH\n" +
				"- the server of PostgreSQL: postgres and initdb in PATH\n" +
				"- the clients of PostgreSQL: psql and pg_dump in PATH\n" +
				"- the pooler of PostgreSQL: pgbouncer in PATH\n" +
				"- curl: in PATH\n" +
				"- ps: in PATH\n",
		},
	}
	// Each program by itself is missed.
	for program, name := range map[string]string{
		"google-chrome": "chromium", "usr/sbin/mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server",
		"mariadb": "mariadb-client", "mariadb-dump": "mariadb-client", "usr/lib/galera/libgalera_smm.so": "galera-4",
		"rsync": "rsync", "postgres": "postgresql", "initdb": "postgresql", "psql": "postgresql-client",
		"pg_dump": "postgresql-client", "pgbouncer": "pgbouncer", "curl": "curl", "ps": "procps",
	} {
		programs := with(complete, map[string]string{"apt-get": "", "id": "echo 1000"})
		delete(programs, program)
		cases["a user on Debian without "+program] = testCase{
			programs: programs, fails: true,
			out: "The tests need packages that only root can install. Type this, and start again:\n" +
				"  sudo apt-get install --no-install-recommends " + name + "\n",
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := machine(t, tc.programs)
			script, err := os.ReadFile("packages.sh")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), bash, "-c",
				strings.ReplaceAll(string(script), "/usr/", path+"/usr/"))
			cmd.Env = []string{"PATH=" + path}
			for _, variable := range tc.env {
				cmd.Env = append(cmd.Env, strings.ReplaceAll(variable, "$PATH", path))
			}
			out, err := cmd.CombinedOutput()
			if text := strings.ReplaceAll(string(out), path, ""); (err != nil) != tc.fails || text != tc.out {
				t.Errorf("got %v and:\n%s\nwant:\n%s", err, text, tc.out)
			}
			called, _ := os.ReadFile(filepath.Join(path, "calls")) // No call, no file.
			if string(called) != tc.calls {
				t.Errorf("called:\n%s\nwant:\n%s", called, tc.calls)
			}
		})
	}
}
