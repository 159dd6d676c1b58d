package filter

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
)

// macros lists the macros that an expression may have. Others make lists of values of their own choice, or
// repeat what they are called on: 40 calls of optMap in a row would become 2^40 expressions.
var macros = map[string]bool{
	"has": true, "all": true, "exists": true, "exists_one": true, "existsOne": true, "filter": true,
}

// refusedOf returns macros that replace macros of the environment that an expression may not have.
func refusedOf(env *cel.Env) []cel.Macro {
	var refused []cel.Macro
	for _, m := range env.Macros() {
		if !macros[m.Function()] {
			refused = append(refused, refusedMacro{m})
		}
	}
	return refused
}

// refusedMacro is a macro that is a mistake wherever it is called. The parser expands macros, so the
// parser has to refuse them: a check of its result would be too late.
type refusedMacro struct{ cel.Macro }

// Expander implements cel.Macro.
func (m refusedMacro) Expander() parser.MacroExpander {
	return func(parser.ExprHelper, ast.Expr, []ast.Expr) (ast.Expr, *cel.Error) {
		// Without a location, it is at the call.
		return nil, &cel.Error{Message: m.Function() + " is not available in a filter"}
	}
}
