package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A summary counts tests and the packages that have some.
type summary struct {
	passed, failed, packages int
	skipped                  []string
}

func (s summary) verdict() error {
	switch {
	case s.failed > 0:
		return fmt.Errorf("%d tests failed", s.failed)
	case s.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}

// An event is one line of go test -json, see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

// summarize reads the events of go test and writes what a reader wants to see.
func summarize(events io.Reader, w io.Writer) (summary, error) {
	var sum summary
	tested := map[string]bool{}
	pending := map[[2]string]*strings.Builder{} // By package and test.
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(w, "%s", line) // Not of the tests: the go command itself.
			} else {
				sum.add(e, tested, pending, w)
			}
		}
		if errors.Is(err, io.EOF) {
			sum.packages = len(tested)
			return sum, nil
		} else if err != nil {
			return sum, err
		}
	}
}

func (s *summary) add(e event, tested map[string]bool, pending map[[2]string]*strings.Builder, w io.Writer) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		if e.Test == "" && closes(e.Output) {
			fmt.Fprint(w, e.Output)
			return
		}
		if pending[key] == nil {
			pending[key] = &strings.Builder{}
		}
		pending[key].WriteString(e.Output)
	case "pass", "skip", "fail":
		if out := pending[key]; out != nil && e.Action == "fail" {
			fmt.Fprint(w, out)
		}
		delete(pending, key)
		s.count(e, tested)
	}
}

func (s *summary) count(e event, tested map[string]bool) {
	if e.Test == "" {
		return
	}
	tested[e.Package] = true
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
	case "skip":
		s.skipped = append(s.skipped, e.Package+" "+e.Test)
	}
}

// closes says whether a line is the one that ends a package.
func closes(line string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "?   \t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
