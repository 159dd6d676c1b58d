package filter

import (
	"github.com/google/cel-go/common/ast"

	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
)

// requests implements offer.SliceFilter.
type requests struct {
	*program
	memo.Memo[result]
}

// Slices compiles a filter of the requests of ResourceSlices. Its expression has the variables request,
// with labels, age and, as quantities, resources, and consumer, with labels.
func Slices(expression string) (offer.SliceFilter, error) {
	const reads = "request.resources, request.labels, request.age and consumer.labels"
	return sliceFilters.filterOf(environments().slices, expression, reads, func(p *program) *requests {
		return &requests{program: p}
	})
}

var sliceFilters shared[requests]

// Rule implements offer.SliceFilter. It refuses a request that the expression fails on.
func (f *requests) Rule(r *offer.Request) (ruling offer.Ruling, why string) {
	asked := *r
	if !f.readsAge {
		asked.Age = 0 // The result is for any age.
	}
	answer := f.Of(r.Key, asked.Digest(), func() result {
		ok, failure := evaluate(f.program, map[string]fields{
			requestVariable:  {"resources": quantities(asked.Resources), "labels": asked.Labels, ageField: asked.Age},
			consumerVariable: {"labels": asked.Consumer.Labels},
		})
		if failure != "" {
			return result{why: "slices.filter fails on it: " + failure}
		}
		return result{ok: ok}
	})
	if !answer.ok {
		ruling = offer.Refused
	}
	return ruling, answer.why
}

// readsAge reports whether the result of an expression may depend on the age of a request: unless each
// use of the variable reads another field.
func readsAge(of *ast.AST) bool {
	uses := 0
	isRequest := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == requestVariable }
	ast.PreOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if isRequest(e) {
			uses++
		}
		if e.Kind() == ast.SelectKind && isRequest(e.AsSelect().Operand()) && e.AsSelect().FieldName() != ageField {
			uses--
		}
	}))
	return uses > 0
}
