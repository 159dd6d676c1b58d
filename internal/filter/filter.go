// Package filter compiles the filters of policies: expressions in CEL, in the environment that
// Kubernetes has for its own, see k8s.io/apiserver/pkg/cel/environment.
//
// An expression is written by an admin of the provider, and is evaluated in the operator: no
// expression takes longer, or more memory, than a few milliseconds and mebibytes for one object. Its
// text has at most MaxLength characters, nested maxDepth deep, an evaluation costs at most CostLimit,
// and its loops take at most maxSteps. Where the cost that Kubernetes accounts for says little about
// the time, it is priced higher, see pricing, or refused, see check and macros.
package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"proffer.dev/proffer/internal/kube"
)

const (
	// MaxLength bounds an expression in characters.
	MaxLength = 1024
	// CostLimit bounds an evaluation, in CEL's units. A comparison of two labels costs about 5.
	CostLimit = 1000
	// maxDepth bounds how deep an expression is nested. The time to check its types grows with the cube
	// of that.
	maxDepth = 32
	// maxSteps bounds the steps of all loops of an evaluation. A step that only reads a variable costs
	// nothing.
	maxSteps = 2000
	// maxLabels bounds the labels of an object that a filter admits. Nodes have a hundred or two. To
	// begin a loop over them costs a few units however many there are.
	maxLabels = 1000
	// maxWhy bounds what is repeated of an error of CEL, which may repeat an expression or a label, in bytes.
	maxWhy = 200
)

// The variables of an expression.
const nodeVariable, consumerVariable, requestVariable, ageField = "node", "consumer", "request", "age"

// environments declare the variables of expressions on nodes, on consumers, and on requests.
var environments = sync.OnceValue(func() (all struct{ nodes, consumers, slices *cel.Env }) {
	labels := apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
	amounts := apiservercel.NewMapType(apiservercel.StringType, apiservercel.QuantityDeclType, -1)
	consumer := object("proffer.Consumer", map[string]*apiservercel.DeclType{"labels": labels})
	all.consumers = with(map[string]*apiservercel.DeclType{consumerVariable: consumer})
	all.nodes = with(map[string]*apiservercel.DeclType{
		nodeVariable: object("proffer.Node", map[string]*apiservercel.DeclType{
			"name": apiservercel.StringType, "labels": labels, "allocatable": amounts,
		}),
	})
	all.slices = with(map[string]*apiservercel.DeclType{
		consumerVariable: consumer,
		requestVariable: object("proffer.Request", map[string]*apiservercel.DeclType{
			"resources": amounts, "labels": labels, ageField: apiservercel.DurationType,
		}),
	})
	return all
})

func object(kind string, of map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range of {
		fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	return apiservercel.NewObjectType(kind, fields)
}

// with returns Kubernetes' environment with variables of these types. It panics if Kubernetes' packages
// do not accept that, which does not depend on any input.
func with(variables map[string]*apiservercel.DeclType) *cel.Env {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	options := []cel.EnvOption{cel.Macros(refusedOf(base.NewExpressionsEnv())...), cel.ParserRecursionLimit(maxDepth)}
	for name, t := range variables {
		options = append(options, cel.Variable(name, t.CelType()))
	}
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options,
		DeclTypes: slices.Collect(maps.Values(variables)),
	})
	if err != nil {
		panic(fmt.Errorf("environment of a filter: %w", err))
	}
	return set.NewExpressionsEnv()
}

// program is a compiled expression.
type program struct {
	cel.Program
	text string
	// readsAge is set if its result may depend on the age of a request.
	readsAge bool
}

// String implements the filters of package offer, and capacity.NodeFilter.
func (p *program) String() string { return p.text }

// result says whether a filter admits an object and, if not, why.
type result struct {
	ok  bool
	why string
}

// compile returns the program of an expression. The error names the positions of mistakes, and the
// fields if one of them is that another is read.
func compile(env *cel.Env, text, fields string) (*program, error) {
	if length := len([]rune(text)); length > MaxLength {
		return nil, fmt.Errorf("it has %d characters: write at most %d", length, MaxLength)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, mistakes(issues.Errors(), fields)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("its result is of type %s: write an expression that is true or false",
			kube.Shorten(ast.OutputType().String(), maxWhy))
	}
	instructions, err := check(ast.NativeRep())
	if err != nil {
		return nil, err
	}
	p, err := env.Program(ast, cel.CostTracking(&pricing{instructions: instructions}), cel.CostLimit(CostLimit),
		cel.InterruptCheckFrequency(maxSteps))
	return &program{p, text, readsAge(ast.NativeRep())}, err
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// fields maps the names of the fields of a variable to their values.
type fields map[string]any

// evaluate returns the result of a program for variables, each with labels of the type map[string]string
// among its fields, and why it has none.
func evaluate(p cel.Program, variables map[string]fields) (ok bool, failure string) {
	values := make(map[string]any, len(variables))
	for name, of := range variables {
		labels, _ := of["labels"].(map[string]string)
		if len(labels) > maxLabels {
			return false, fmt.Sprintf("%d labels are more than %d", len(labels), maxLabels)
		}
		of["labels"] = inOrder(types.NewStringStringMap(types.DefaultTypeAdapter, labels), labels)
		values[name] = map[string]any(of)
	}
	// CEL looks at the context at each step of a loop whose number is a multiple of maxSteps.
	out, _, err := p.ContextEval(ended, values)
	switch {
	case errors.Is(err, interpreter.InterruptError{}):
		return false, fmt.Sprintf("its loops take more than %d steps", maxSteps)
	case err != nil:
		return false, kube.Shorten(err.Error(), maxWhy)
	}
	ok, _ = out.Value().(bool)
	return ok, ""
}
