package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// shell runs a script in a directory.
func shell(t *testing.T, dir, script string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-euc", script, "bash"}, args...)...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestTestsThatAreGoneOrNewAreListed(t *testing.T) {
	script, err := filepath.Abs("names.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := shell(t, dir, `
		git init -q
		mkdir -p a b bin/test
		printf 'package a\nfunc TestMain(m *testing.M) {}\nfunc TestGone(t *testing.T) {}\nfunc TestMoved(*testing.T) {}\n' >a/a_test.go
		printf 'package b\nfunc TestStays(t *testing.T) {}\nfunc Testing() {}\n' >b/b_test.go
		git add .
		git -c user.name=n -c user.email=e commit -qm before
		rm a/a_test.go
		printf 'package b\nfunc FuzzNew(f *testing.F) {}\nfunc TestMoved(t *testing.T) {}\n' >b/untracked_test.go
		printf 'a TestOne\na TestOne/gone\na TestTwo\n' >before
		printf 'a TestOne\na TestOne/new\nb TestTwo\n' >bin/test/names`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for base, want := range map[string]string{
		"HEAD":           "+ FuzzNew b\n- TestGone a\n- TestMoved a\n+ TestMoved b\n2 tests less, 2 tests more\n",
		"before":         "- TestOne/gone a\n+ TestOne/new a\n- TestTwo a\n+ TestTwo b\n2 tests less, 2 tests more\n",
		"bin/test/names": "0 tests less, 0 tests more\n",
	} {
		if out, err := shell(t, dir, `"$@"`, script, base); err != nil || out != want {
			t.Errorf("%s: got %v and:\n%s\nwant:\n%s", base, err, out, want)
		}
	}
	if out, err := shell(t, dir, `"$@"`, script, "none"); err == nil || out != "none is neither a revision nor a file\n" {
		t.Errorf("got %v and:\n%s", err, out)
	}
}
