package deploy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

var (
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	identifier = regexp.MustCompile(`^[a-z]+(\.[A-Z]\w*)+$`)
)

// TestTheArchitecturePageNamesWhatExists checks the paths and Go identifiers on the page.
func TestTheArchitecturePageNamesWhatExists(t *testing.T) {
	const root, page = "../..", "../../docs/explanation/architecture.md"
	text := test.Read(t, page)
	declared := declarations(t, root)
	paths, names := 0, 0
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		name := match[1]
		switch {
		case strings.Contains(name, "/") && !strings.HasPrefix(name, "/"):
			paths++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s: %v", page, name, err)
			}
		case identifier.MatchString(name):
			names++
			if !declared[name] {
				t.Errorf("%s names %s, which no package declares", page, name)
			}
		}
	}
	if paths < 20 || names < 10 {
		t.Errorf("%s names %d paths and %d identifiers, too few: the test no longer finds them", page, paths, names)
	}
}

// TestTheWalkOfASliceNamesWhatExists checks that each step names functions of the folder it begins with, or of a
// package that it names.
func TestTheWalkOfASliceNamesWhatExists(t *testing.T) {
	const root, page = "../..", "../../docs/explanation/architecture.md"
	text := test.Read(t, page)
	_, walk, _ := strings.Cut(text, "## How a slice gets its answer")
	walk, _, _ = strings.Cut(walk, "\n## ")
	steps, declared := regexp.MustCompile(`(?m)^\d+\. `).Split(walk, -1)[1:], declarations(t, root)
	checked := 0
	for i, step := range steps {
		names := quoted.FindAllStringSubmatch(step, -1)
		if len(names) < 2 || strings.Count(step, "`")%2 != 0 {
			t.Fatalf("step %d names %v: write the folder and a function of it, each in one line", i+1, names)
		}
		folder := names[0][1]
		for _, match := range names[1:] {
			name := match[1]
			if strings.Contains(name, " ") || strings.HasPrefix(name, "/") {
				continue
			}
			checked++
			if !declared[name] && !declared[path.Base(folder)+"."+name] {
				t.Errorf("step %d names %s, which neither %s nor a package of this name declares", i+1, name, folder)
			}
		}
	}
	if len(steps) < 7 || checked < 20 {
		t.Errorf("%s has %d steps and %d names, too few: the test no longer finds them", page, len(steps), checked)
	}
}

// declarations returns the names of this module, as package.Name or package.Type.Method.
func declarations(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, dir := range []string{"api", "internal", "operator"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range parsed.Decls {
				for _, name := range namesOf(d) {
					all[parsed.Name.Name+"."+name] = true
				}
			}
			return nil
		})
		test.Must(t, err)
	}
	return all
}

func namesOf(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		receiver := d.Recv.List[0].Type
		if pointer, ok := receiver.(*ast.StarExpr); ok {
			receiver = pointer.X
		}
		if of, ok := receiver.(*ast.Ident); ok {
			return []string{of.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}
