package filter

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// maxPattern bounds a regular expression, in instructions of Go's engine. CEL accounts for the
// length of its text, which says little: ".{1,1000}" has 2,000.
const maxPattern = 200

// literalAmount is a quantity whose number is not astronomical: to read "1e-999999999" takes longer
// than anybody waits, and CEL does not account for it.
var literalAmount = regexp.MustCompile(`^[+-]?[0-9.]{1,32}([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

// checkCalls returns an error for the first call whose time or memory CEL's cost does not bound:
// quantities and regular expressions that are not literals, because a label may say anything, or
// that are too large; and functions that may make a list or text of mebibytes before its cost counts.
func checkCalls(of *ast.AST) error {
	var first error
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || first != nil {
			return
		}
		if err := checkCall(e.AsCall()); err != nil {
			where := of.SourceInfo().GetStartLocation(e.ID())
			first = fmt.Errorf("%s%w", at(where.Line(), where.Column()), err)
		}
	}))
	return first
}

func checkCall(call ast.CallExpr) error {
	name, args := call.FunctionName(), call.Args()
	switch name {
	case "lists.range", "replace", "join", "format":
		return fmt.Errorf("%s is not available in a filter", name)
	case "quantity", "isQuantity":
		text, ok := literal(args, 0)
		if !ok || !literalAmount.MatchString(text) {
			return fmt.Errorf("%s takes an amount in quotes, such as '8' or '16Gi', with an exponent of at most two digits", name)
		}
	case "matches", "find", "findAll":
		at := 0
		if !call.IsMemberFunction() {
			at = 1 // After the text that is matched.
		}
		text, ok := literal(args, at)
		if !ok {
			return fmt.Errorf("%s takes a regular expression in quotes", name)
		}
		pattern, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if program, err := syntax.Compile(pattern.Simplify()); err != nil || len(program.Inst) > maxPattern {
			return fmt.Errorf("the regular expression of %s is too large: write fewer repetitions", name)
		}
	}
	return nil
}

// literal returns an argument that is a string literal.
func literal(args []ast.Expr, index int) (text string, ok bool) {
	if index >= len(args) || args[index].Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := args[index].AsLiteral().(types.String)
	return string(value), ok
}
