package filter

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// maxPattern bounds a regular expression, in instructions of Go's engine. CEL accounts for the
// length of its text, which says little: ".{1,1000}" has 2,000.
const maxPattern = 200

// literalAmount is a quantity whose number is not astronomical: to read "1e-999999999" takes longer
// than anybody waits, and CEL does not account for it.
var literalAmount = regexp.MustCompile(`^[+-]?[0-9.]{1,32}([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

// check returns the regular expressions of an expression with the number of their instructions in Go's
// engine, or an error for the first part of an expression whose time or memory CEL's cost does
// not bound:
//   - quantities and regular expressions that are not literals, because a label may say anything, or
//     that are too large;
//   - functions that may make a list or text of mebibytes before its cost counts, those that compare
//     each element of a list with each, findAll, which may read the rest of a text for each match of a
//     pattern, and time zones, which are read from files;
//   - lists and maps that could be doubled again and again. CEL keeps [x, x] and x + x as references
//     to x, at the cost of 1; but to compare 40 such steps takes 2^40 comparisons.
func check(of *ast.AST) (instructions map[string]int, _ error) {
	var first error
	instructions = map[string]int{}
	fail := func(e ast.Expr, err error) {
		if err != nil && first == nil {
			where := of.SourceInfo().GetStartLocation(e.ID())
			first = fmt.Errorf("%s%w", at(where.Line(), where.Column()), err)
		}
	}
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind {
			fail(e, checkCall(e.AsCall(), instructions))
			if addsLists(of, e) {
				fail(e, errors.New("lists cannot be added in a filter"))
			}
		}
		fail(e, checkElements(elementsOf(e)))
	}))
	return instructions, first
}

// addsLists reports whether the expression adds lists. The expansion of the macro filter does too:
// it adds elements to its result, whose name no expression can use.
func addsLists(of *ast.AST, e ast.Expr) bool {
	reference := of.ReferenceMap()[e.ID()]
	if reference == nil || !slices.Contains(reference.OverloadIDs, overloads.AddList) {
		return false
	}
	first := e.AsCall().Args()[0]
	return first.Kind() != ast.IdentKind || first.AsIdent() != parser.HiddenAccumulatorName
}

// elementsOf returns the elements of a list, or the keys and values of a map, nil for anything else.
func elementsOf(e ast.Expr) (elements []ast.Expr) {
	if e.Kind() == ast.ListKind {
		return e.AsList().Elements()
	}
	if e.Kind() == ast.MapKind {
		for _, entry := range e.AsMap().Entries() {
			elements = append(elements, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	}
	return elements
}

// checkElements returns an error if more than one element is not a literal.
func checkElements(elements []ast.Expr) error {
	others := 0
	for _, e := range elements {
		if e.Kind() != ast.LiteralKind {
			others++
		}
	}
	if others > 1 {
		return errors.New("a list or map in a filter has at most one element that is not a literal")
	}
	return nil
}

func checkCall(call ast.CallExpr, instructions map[string]int) error {
	name, args := call.FunctionName(), call.Args()
	switch name {
	case "lists.range", "replace", "join", "format", "flatten", "findAll", "distinct",
		"sets.contains", "sets.equivalent", "sets.intersects":
		return fmt.Errorf("%s is not available in a filter", name)
	case "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds":
		if len(args) > 0 {
			return fmt.Errorf("%s takes no time zone in a filter", name)
		}
	case "quantity", "isQuantity":
		text, ok := literal(args, 0)
		if !ok || !literalAmount.MatchString(text) {
			return fmt.Errorf("%s takes an amount in quotes, such as '8' or '16Gi', "+
				"with an exponent of at most two digits", name)
		}
	case "matches", "find":
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
		program, err := syntax.Compile(pattern.Simplify())
		if err != nil || len(program.Inst) > maxPattern {
			return fmt.Errorf("the regular expression of %s is too large: write fewer repetitions", name)
		}
		instructions[text] = len(program.Inst)
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
