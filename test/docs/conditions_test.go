package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/golden"
)

// conditionsParts are the files with the reasons of each kind of object.
var conditionsParts = []struct{ title, intro, file string }{
	{"ResourcePolicy", "Events have some of these reasons, and `Held` and `Evicting`: see " +
		"[what falls, and when](../explanation/offers.md#what-falls-and-when).", "api/v1alpha1/status_types.go"},
	{"ResourceSlice", "The operator answers a ResourceSlice in its conditions, with one of these reasons after `Proffer`. " +
		"`ProfferNotAnswered` is that of a grant that is lowered or restored while the slice cannot be answered. " +
		"[Answers](answers.md) says what the consumer sees.", "internal/grant/explain.go"},
	{"Offer", "", "api/v1alpha1/catalog_types.go"},
	{"Orchestration", "", "api/v1alpha1/orchestration_status_types.go"},
	{"ProviderChoice", "", "api/v1alpha1/providerchoice_types.go"},
}

// documented are the names of the constants that are conditions and reasons.
var documented = regexp.MustCompile(`^(Condition|Reason|Catalog|Orchestration|ProviderChoice)[A-Z]`)

func TestThePageOfConditionsIsCurrent(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Conditions and reasons\n\n" +
		"What the conditions and the reasons of Proffer's objects mean. [Fields](objects.md) has the rest of their status,\n" +
		"and the [glossary](../explanation/glossary.md) defines the terms.\n")
	for _, part := range conditionsParts {
		page.WriteString("\n## " + part.title + "\n")
		if part.intro != "" {
			page.WriteString("\n" + wrapped(part.intro, "") + "\n")
		}
		n := page.Len()
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, part.file), nil, parser.ParseComments)
		test.Must(t, err)
		for _, decl := range parsed.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
				page.WriteString(constantsOf(group))
			}
		}
		if page.Len() == n {
			t.Errorf("%s has no reasons", part.file)
		}
	}
	golden.File(t, filepath.Join(dir, "conditions.md"), page.String())
}

// constantsOf returns a list of the documented texts in a group of constants, after the comment of the group.
func constantsOf(group *ast.GenDecl) string {
	var items strings.Builder
	for _, spec := range group.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok || len(value.Values) != 1 || !documented.MatchString(value.Names[0].Name) {
			continue
		}
		if literal, ok := value.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			comment := strings.Join(strings.Fields(value.Doc.Text()), " ")
			items.WriteString(wrapped("- `"+text+"`"+strings.TrimPrefix(comment, value.Names[0].Name), "  ") + "\n")
		}
	}
	if items.Len() == 0 {
		return ""
	}
	intro := strings.Join(strings.Fields(group.Doc.Text()), " ")
	if intro != "" {
		intro = "\n" + wrapped(intro, "") + "\n"
	}
	return intro + "\n" + items.String()
}

// wrapped breaks a paragraph into lines of at most 100 columns, and indents those after the first.
func wrapped(text, indent string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch longer := line + " " + word; {
		case line == "":
			line = word
		case utf8.RuneCountInString(longer) > 100:
			lines, line = append(lines, line), indent+word
		default:
			line = longer
		}
	}
	return strings.Join(append(lines, line), "\n")
}
