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
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
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
	// maxWhy bounds what is repeated of an error of CEL, in bytes.
	maxWhy = 200
)

// The variables of an expression.
const nodeVariable, consumerVariable = "node", "consumer"

// environments returns the environments of expressions on nodes and on consumers.
var environments = sync.OnceValues(func() (nodes, consumers *cel.Env) {
	labels := apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
	amounts := apiservercel.NewMapType(apiservercel.StringType, apiservercel.QuantityDeclType, -1)
	return with(nodeVariable, "proffer.Node", map[string]*apiservercel.DeclType{
			"name": apiservercel.StringType, "labels": labels, "allocatable": amounts,
		}), with(consumerVariable, "proffer.Consumer", map[string]*apiservercel.DeclType{
			"labels": labels,
		})
})

// with returns Kubernetes' environment with a variable that has these fields. It panics if
// Kubernetes' packages do not accept that, which does not depend on any input.
func with(variable, kind string, types map[string]*apiservercel.DeclType) *cel.Env {
	fields := map[string]*apiservercel.DeclField{}
	for name, t := range types {
		fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	object := apiservercel.NewObjectType(kind, fields)
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(variable, object.CelType()), cel.Macros(refusedOf(base.NewExpressionsEnv())...),
			cel.ParserRecursionLimit(maxDepth),
		},
		DeclTypes: []*apiservercel.DeclType{object},
	})
	if err != nil {
		panic(fmt.Errorf("environment of %s: %w", variable, err))
	}
	return set.NewExpressionsEnv()
}

// compile returns the program of an expression. The error names the positions of mistakes, and the
// fields if one of them is that another is read.
func compile(env *cel.Env, text, fields string) (cel.Program, error) {
	if length := len([]rune(text)); length > MaxLength {
		return nil, fmt.Errorf("it has %d characters: write at most %d", length, MaxLength)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, mistakes(issues.Errors(), fields)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("its result is of type %s: write an expression that is true or false",
			short(ast.OutputType().String()))
	}
	instructions, err := check(ast.NativeRep())
	if err != nil {
		return nil, err
	}
	return env.Program(ast, cel.CostTracking(&pricing{instructions: instructions}), cel.CostLimit(CostLimit),
		cel.InterruptCheckFrequency(maxSteps))
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// evaluate returns the result of a program for an object with these labels and other fields, and why it
// has none.
func evaluate(
	p cel.Program, variable string, labels map[string]string, value map[string]any,
) (ok bool, failure string) {
	if len(labels) > maxLabels {
		return false, fmt.Sprintf("%d labels are more than %d", len(labels), maxLabels)
	}
	value["labels"] = orderedLabels(labels)
	// CEL looks at the context at each step of a loop whose number is a multiple of maxSteps.
	out, _, err := p.ContextEval(ended, map[string]any{variable: value})
	switch {
	case errors.Is(err, interpreter.InterruptError{}):
		return false, fmt.Sprintf("its loops take more than %d steps", maxSteps)
	case err != nil:
		return false, short(err.Error())
	}
	ok, _ = out.Value().(bool)
	return ok, ""
}
