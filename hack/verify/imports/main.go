// Command imports checks that the packages of this module import each other only as table.go
// allows, and that inner packages import nothing that belongs to the edge. Each problem names the
// rule and its reason.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "proffer.dev/proffer"

func main() {
	packages, err := list()
	if err != nil {
		fmt.Fprintln(os.Stderr, "imports:", err)
		os.Exit(1)
	}
	problems := check(table, packages)
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "imports:", problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d packages import what the table allows\n", len(packages))
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir                             string
	Imports, TestImports, XTestImports, GoFiles []string
}

func list() ([]listed, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// check returns one sentence per import that the rules forbid.
func check(rules []rule, packages []listed) []string {
	var problems []string
	for _, p := range packages {
		place := strings.TrimPrefix(p.ImportPath, module+"/")
		i := slices.IndexFunc(rules, func(r rule) bool { return isAtOrBelow(place, r.place) })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("%s has no rule: add one to hack/verify/imports/table.go", place))
			continue
		}
		r := rules[i]
		for _, imported := range p.Imports {
			if why := r.refuses(place, imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", place, imported, why))
			}
		}
		if r.noClock {
			problems = append(problems, r.readsClock(p, place)...)
		}
		// Tests may also import the test helpers.
		r.may = slices.Concat(r.may, r.tests, testHelpers)
		r.never = nil
		for _, imported := range append(p.TestImports, p.XTestImports...) {
			if why := r.refuses(place, imported); why != "" {
				problems = append(problems, fmt.Sprintf("a test of %s imports %s: %s", place, imported, why))
			}
		}
	}
	return problems
}

// refuses returns why the package at place must not import this, or an empty string.
func (r rule) refuses(place, imported string) string {
	inside, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		for _, prefix := range r.never {
			if isAtOrBelow(imported, prefix) {
				return r.because("%s keeps out of %s", r.place, prefix)
			}
		}
		return ""
	}
	if isAtOrBelow(inside, r.place) && isAtOrBelow(place, r.place) {
		return ""
	}
	for _, prefix := range r.may {
		if prefix == everything || isAtOrBelow(inside, prefix) {
			return ""
		}
	}
	if len(r.may) == 0 {
		return r.because("%s imports nothing of this module", r.place)
	}
	return r.because("%s may import only %s", r.place, strings.Join(r.may, ", "))
}

// because returns a message with the reason of the rule.
func (r rule) because(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if r.why != "" {
		text += ", because " + r.why
	}
	return text
}

// readsClock returns one sentence per use of a function that reads the clock or waits for it.
func (r rule) readsClock(p listed, place string) []string {
	var problems []string
	files := token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, selector.Sel.Name) {
				problems = append(problems, fmt.Sprintf("%s/%s uses time.%s: %s",
					place, name, selector.Sel.Name, r.because("%s takes times as values", r.place)))
			}
			return true
		})
	}
	return problems
}

// isAtOrBelow reports whether path is prefix or below it.
func isAtOrBelow(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
