package filter

import (
	"github.com/google/cel-go/common/ast"

	"proffer.dev/proffer/internal/offer"
)

// requests implements offer.SliceFilter.
type requests struct {
	*program
	text string
	results[offer.Request]
}

// Slices compiles a filter of the requests of ResourceSlices. Its expression has the variables request,
// with labels, age and, as quantities, resources, and consumer, with labels.
func Slices(expression string) (offer.SliceFilter, error) {
	return sliceFilters.filterOf(expression, func() (*requests, error) {
		p, err := compile(environments().slices, expression,
			"request.resources, request.labels, request.age and consumer.labels")
		if err != nil {
			return nil, err
		}
		return &requests{
			program: p, text: expression, results: results[offer.Request]{digest: (*offer.Request).Digest, ask: p.askRequest},
		}, nil
	})
}

var sliceFilters shared[requests]

// String implements offer.SliceFilter.
func (f *requests) String() string { return f.text }

// Rule implements offer.SliceFilter. It refuses a request that the expression fails on.
func (f *requests) Rule(r *offer.Request) (ruling offer.Ruling, why string) {
	asked := *r
	if !f.readsAge {
		asked.Age = 0 // The result is for any age.
	}
	ok, why := f.resultOf(r.Key, asked)
	if !ok {
		ruling = offer.Refused
	}
	return ruling, why
}

func (p *program) askRequest(r *offer.Request) result {
	ok, failure := evaluate(p, map[string]fields{
		requestVariable:  {"resources": quantities(r.Resources), "labels": r.Labels, ageField: r.Age},
		consumerVariable: {"labels": r.Consumer.Labels},
	})
	if failure != "" {
		return result{why: "slices.filter fails on it: " + failure}
	}
	return result{ok: ok}
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
