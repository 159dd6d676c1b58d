// Command sleeps finds tests that call time.Sleep. A test waits for what it is
// about; where it is about time, testing/synctest or an injected clock gives it
// some. Inside synctest.Test a sleep only moves the bubble's clock and is fine.
//
//	go run ./hack/verify/sleeps DIRECTORY...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	files, found, err := search(os.Args[1:])
	for _, at := range found {
		fmt.Fprintf(os.Stderr, "%s: time.Sleep in a test: wait for the event, or run it in synctest.Test\n", at)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "sleeps:", err)
		os.Exit(1)
	case files == 0:
		fmt.Fprintln(os.Stderr, "sleeps: no test file to look at: name the directories to search")
		os.Exit(1)
	case len(found) > 0:
		os.Exit(1)
	}
	fmt.Printf("%d test files, no sleep\n", files)
}

// search returns how many test files there are, and where they sleep.
func search(dirs []string) (files int, found []token.Position, err error) {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
				return nil
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			at, err := sleeps(path, src)
			found = append(found, at...)
			return err
		})
		if err != nil {
			return files, found, err
		}
	}
	return files, found, nil
}

// sleeps returns where a file refers to time.Sleep outside of a bubble.
func sleeps(path string, src []byte) ([]token.Position, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	clock, bubble := importedAs(file, "time"), importedAs(file, "testing/synctest")
	var found []token.Position
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, bubble, "Test") {
			return false
		}
		if selector, ok := n.(*ast.SelectorExpr); ok && selects(selector, clock, "Sleep") {
			found = append(found, fset.Position(selector.Pos()))
		}
		return true
	})
	return found, nil
}

// importedAs returns the name that a file gives to a package, "" for none.
func importedAs(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

func selects(expr ast.Expr, pkg, name string) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok || pkg == "" || selector.Sel.Name != name {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg
}
