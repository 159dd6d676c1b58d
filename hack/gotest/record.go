package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// durationFile has the duration of the last run of all tests that passed.
const durationFile = "duration"

// record keeps what a run did, in files of a directory. Without a directory it keeps nothing.
type record struct{ dir string }

func openRecord(dir string) (*record, error) {
	if dir == "" {
		return &record{}, nil
	}
	return &record{dir: dir}, os.MkdirAll(dir, 0o755)
}

// estimate says how long a run takes: as long as the last one here, if one was recorded.
func (r *record) estimate() string {
	if r.dir == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(r.dir, durationFile))
	if last, parseErr := time.ParseDuration(strings.TrimSpace(string(text))); err == nil && parseErr == nil {
		return fmt.Sprintf("The last run here took %s.", minutes(last))
	}
	return "On two cores this takes half an hour, and a quarter more to compile the tests if\nGo's build cache is empty."
}

// events returns the file for the events of go test in a run.
func (r *record) events(run *moduleRun) (io.WriteCloser, error) {
	if r.dir == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	name := "module"
	if run.module != "." {
		name = strings.ReplaceAll(strings.Trim(filepath.ToSlash(run.module), "/"), "/", "-")
	}
	if run.race {
		name += "-race"
	}
	return os.Create(filepath.Join(r.dir, name+".json"))
}

// write writes names, a line for each test: a comparison of two of these files shows which tests a
// change adds and drops. If all tests ran and passed, it also writes the duration.
func (r *record) write(runs []*moduleRun, flags []string, took time.Duration) error {
	if r.dir == "" {
		return nil
	}
	var names []string
	passed := !slices.ContainsFunc(flags, selects)
	for _, run := range runs {
		passed = passed && run.err == nil
		for _, t := range run.tests() {
			names = append(names, t.Package+" "+t.Test.Name())
		}
	}
	slices.Sort(names)
	text := strings.Join(slices.Compact(names), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(r.dir, "names"), []byte(text), 0o644); err != nil || !passed {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, durationFile), []byte(took.Round(time.Second).String()+"\n"), 0o644)
}

// selects reports whether a flag of go test selects tests.
func selects(flag string) bool {
	return slices.ContainsFunc([]string{"-run", "-skip", "-short"}, func(name string) bool {
		return flag == name || strings.HasPrefix(flag, name+"=")
	})
}
