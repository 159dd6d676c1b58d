package limits

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter"
	"proffer.dev/proffer/internal/offer"
)

// largestNode has as many labels as a filter takes, of the greatest length, and as many resources as count.
func largestNode() *capacity.Node {
	n := &capacity.Node{Name: strings.Repeat("n", 253), Labels: map[string]string{}, Allocatable: capacity.Amounts{}}
	for i := range maxLabels {
		n.Labels[fmt.Sprintf("%s.example/%04d", strings.Repeat("a", 240), i)] = strings.Repeat("v", 63)
	}
	for i := range 256 {
		n.Allocatable[fmt.Sprintf("example.com/%d", i)] = int64(i)
	}
	return n
}

// grammar generates expressions over everything that a filter may use, by the type of their values.
type grammar struct {
	t *rapid.T
	// bound are the variables of the loops around.
	bound []variable
	left  int
}

type variable struct{ name, kind string }

// of returns an expression of a type.
func (g *grammar) of(kind string) string {
	g.left--
	ends := slices.Clone(leaves[kind])
	for _, v := range g.bound {
		if v.kind == kind {
			ends = append(ends, v.name, v.name)
		}
	}
	all := ends
	if g.left > 0 {
		all = slices.Concat(ends, rules[kind])
	}
	rule := rapid.SampledFrom(all).Draw(g.t, kind)
	if slices.Contains(ends, rule) {
		return rule
	}
	return g.expand(rule)
}

// expand replaces each {kind} of a rule by an expression, and {over kind: ...} binds a variable in the rest.
func (g *grammar) expand(rule string) string {
	var b strings.Builder
	bound := len(g.bound)
	for {
		text, rest, found := strings.Cut(rule, "{")
		b.WriteString(text)
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		rule = after
		if kind, ok := strings.CutPrefix(name, "bind "); ok {
			v := fmt.Sprintf("v%d", len(g.bound))
			g.bound = append(g.bound, variable{v, kind})
			b.WriteString(v)
			continue
		}
		b.WriteString(g.of(name))
	}
	g.bound = g.bound[:bound]
	return b.String()
}

var leaves = map[string][]string{
	"bool": {"true", "false"}, "int": {"0", "1", "7"},
	"string": {"node.name", "'a'", "'" + strings.Repeat("a", 100) + "'"},
	"map":    {"node.labels"}, "amounts": {"node.allocatable"}, "node": {"node"},
	"strings": {"node.name.split('')", "['a', 'b', 'c']"}, "amount": {"quantity('8')", "quantity('16Gi')"},
	"ints":  {"[" + strings.Repeat("0,", 39) + "0]", "[1,2,3,4,5,6,7,8]"},
	"forty": {"{40}"}, // It is a part of regular expressions.
	"nodes": {"[node]"}, "maps": {"[node.labels]"},
}

var rules = map[string][]string{
	"bool": {
		"{node} == {node}", "{node} != {node}", "{map} == {map}", "{map} != {map}", "{amounts} == {amounts}", "{strings} == {strings}", "{ints} == {ints}",
		"{nodes} == {nodes}", "{maps} == {maps}", "[{nodes}] == [{nodes}]", "dyn({map}) == dyn({amounts})", "optional.of({map}) == optional.of({map})",
		"{node} in {nodes}", "{map} in {maps}", "{nodes} in [{nodes}]", "{string} in {strings}", "{string} in {map}", "{int} in {ints}", "{string} == {string}", "{int} < {int}", "{string} < {string}",
		"({bool} && {bool})", "({bool} || {bool})", "!({bool})", "({bool} ? {bool} : {bool})", "{string}.contains({string})", "{string}.startsWith({string})", "{string}.endsWith({string})",
		"{string}.matches('^(a|n|v)*b')", "{string}.matches('((.?){forty})*b')", "{string}.matches('(a*)*(n*)*(v*)*c$')", "{ints}.isSorted()", "{strings}.isSorted()", "{strings}.includes({string})", "{nodes}.indexOf({node}) == 0",
		"{map}.all({bind string}, {bool})", "{map}.exists({bind string}, {bool})", "{map}.exists_one({bind string}, {bool})", "{map}.all({bind string}, {bind string}, {bool})", "{amounts}.all({bind string}, {bool})",
		"{ints}.all({bind int}, {bool})", "{ints}.exists({bind int}, {bool})", "{ints}.all({bind int}, {bool})", "{strings}.all({bind string}, {bool})", "{nodes}.all({bind node}, {bool})", "{maps}.all({bind map}, {bool})",
		"[{strings}].all({bind strings}, {ints}.all({bind int}, {bool}))", "[{string}].all({bind string}, {ints}.all({bind int}, {bool}))",
		"{amount}.isGreaterThan({amount})", "{amount} == {amount}", "isIP({string})", "isSemver({string})", "isURL({string})",
	},
	"int": {
		"{string}.size()", "{map}.size()", "{strings}.size()", "{string}.indexOf({string})", "{string}.lastIndexOf({string})", "{strings}.indexOf({string})", "{ints}.indexOf({int})", "{maps}.indexOf({map})",
		"{ints}.sum()", "{ints}.max()", "({int} + {int})", "{ints}.sort()[0]", "int({string})", "{amount}.compareTo({amount})",
	},
	"string": {
		"({string} + {string})", "({string} + {string})", "{string}.lowerAscii()", "{string}.upperAscii()", "{string}.trim()", "{string}.substring(1)", "{string}.charAt({int})", "{string}.find('((.?){forty})*b')",
		"{strings}.max()", "string({int})", "string(bytes({string}))", "{strings}[{int}]", "{strings}.sort()[0]",
	},
	"strings": {"{string}.split('')", "{strings}.filter({bind string}, {bool})", "{map}.filter({bind string}, {bool})", "{strings}.sort()", "{strings}.reverse()", "{strings}.slice(0, 1)"},
	"ints":    {"{ints}.filter({bind int}, {bool})", "{ints}.sort()", "{ints}.reverse()"},
	"nodes":   {"{nodes}.filter({bind node}, {bool})"},
	"maps":    {"{maps}.filter({bind map}, {bool})", "{maps}.reverse()"},
	"amount":  {"{amount}.add({amount})", "node.allocatable[{string}]"},
}

// ofRequests makes an expression on nodes one on requests.
var ofRequests = strings.NewReplacer(
	"node.labels", "request.labels", "node.allocatable", "request.resources", "node.name", "string(request.age)",
	"[node]", "[request]", "node", "request", "true", "(request.age < duration('1h'))", "false", "(consumer == consumer)",
)

// largestRequest has all that a filter admits of what a consumer writes.
func largestRequest() *offer.Request {
	n := largestNode()
	r := &offer.Request{
		Key: "s", Resources: capacity.Amounts{}, Labels: map[string]string{}, Age: 1000 * time.Hour, Consumer: offer.Consumer{Labels: n.Labels},
	}
	for key, value := range n.Labels {
		if len(r.Labels) < offer.MaxRequestLabels {
			r.Labels[key] = value
		}
	}
	for name, amount := range n.Allocatable {
		if len(r.Resources) < 128 { // Those of the request and the defaults.
			r.Resources[name] = amount
		}
	}
	return r
}

// ofConsumers makes an expression on nodes one on consumers. It does not compile if it reads amounts.
var ofConsumers = strings.NewReplacer("node.labels", "consumer.labels", "node.name", "'a'", "node", "consumer")

// TestNoGeneratedExpressionTakesLong evaluates expressions of the grammar on the largest node, the largest
// request and the largest consumer.
func TestNoGeneratedExpressionTakesLong(t *testing.T) {
	n, r := largestNode(), largestRequest()
	compiled, longest, asked := map[string]int{}, time.Duration(0), 0
	rapid.Check(t, func(t *rapid.T) {
		g := &grammar{t: t, left: rapid.IntRange(1, 30).Draw(t, "size")}
		expression := g.of("bool")
		on := rapid.SampledFrom([]string{"nodes", "requests", "consumers"}).Draw(t, "on")
		// Results are remembered by key and ID, so each attempt has its own.
		var evaluate func(attempt string)
		var err error
		switch on {
		case "nodes":
			var f capacity.NodeFilter
			f, err = filter.Nodes(expression)
			evaluate = func(string) { f.Admits(n) }
		case "requests":
			var f offer.SliceFilter
			expression = ofRequests.Replace(expression)
			f, err = filter.Slices(expression)
			evaluate = func(attempt string) { again := *r; again.Key = attempt; f.Rule(&again) }
		case "consumers":
			var f offer.ConsumerFilter
			expression = ofConsumers.Replace(expression)
			f, err = filter.Consumers(expression)
			evaluate = func(attempt string) { f.Admits(offer.Consumer{ID: attempt, Labels: n.Labels}) }
		}
		if err != nil {
			return
		}
		compiled[on]++
		took, memory := fastest(maxEvaluation, func() { asked++; evaluate(fmt.Sprint(asked)) })
		longest = max(longest, took)
		if took > maxEvaluation || memory > maxMemory {
			t.Errorf("%v and %d KiB: %s", took, memory>>10, expression)
		}
	})
	t.Logf("%v expressions are evaluated, each in at most %v", compiled, longest)
	for _, on := range []string{"nodes", "requests", "consumers"} {
		if compiled[on] < 5 {
			t.Errorf("the grammar makes too few expressions on %s that compile", on)
		}
	}
}
