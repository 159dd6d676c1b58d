package filter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

func gpuNode() *capacity.Node {
	return &capacity.Node{
		Name: "gpu-1", Labels: map[string]string{"pool": "gold", "example.com/rack": "r7"}, State: capacity.Ready,
		Allocatable: capacity.Amounts{capacity.CPU: 7500, capacity.Memory: 32 << 30, capacity.Pods: 110, "nvidia.com/gpu": 4},
	}
}

func TestAFilterOfNodesReadsNameLabelsAndAmounts(t *testing.T) {
	for expression, want := range map[string]string{
		"true":  "",
		"false": "left out by the filter",
		"node.allocatable['cpu'].isGreaterThan(quantity('7')) && !('maintenance' in node.labels)": "",
		"node.allocatable['cpu'].isGreaterThan(quantity('7500m'))":                                "left out by the filter",
		"node.allocatable['memory'].compareTo(quantity('32Gi')) == 0":                             "",
		"node.allocatable[?'nvidia.com/gpu'].orValue(quantity('0')).asInteger() >= 4":             "",
		"node.allocatable[?'amd.com/gpu'].hasValue()":                                             "left out by the filter",
		"node.labels['example.com/rack'].matches('^r[0-9]+$')":                                    "",
		"node.name.startsWith('gpu-')":                                                            "",
		"node.labels.exists(k, k.startsWith('example.com/') && node.labels[k] == 'r7')":           "",
		"node.labels.filter(k, k.contains('/')).size() == 1":                                      "",
		"node.labels.pool in ['gold', 'silver']":                                                  "",
		"node.labels['zone'] == 'a'":                                                              "left out by the filter, which fails on it: no such key: zone",
	} {
		f, err := Nodes(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if ok, why := f.Admits(gpuNode()); ok != (want == "") || why != want {
			t.Errorf("%s: %v, %q, want %q", expression, ok, why, want)
		}
		if f.String() != expression {
			t.Errorf("%s is written as %s", expression, f)
		}
	}
	f, err := Nodes("size(node.labels) == 0 && size(node.allocatable) == 0")
	test.Must(t, err)
	if ok, why := f.Admits(&capacity.Node{}); !ok {
		t.Errorf("a node without labels and amounts: %s", why)
	}
}

// A node of 200 labels is more than a loop may cost. Whether it ends before that must not differ
// between two evaluations, nor between two replicas.
func TestALoopOverLabelsHasOneResult(t *testing.T) {
	n := gpuNode()
	for i := range 200 {
		n.Labels[fmt.Sprintf("feature-%d.example.com/on", i)] = "true"
		n.Allocatable[fmt.Sprintf("example.com/device-%d", i)] = 1
	}
	for _, expression := range []string{
		"node.labels.exists(k, k == 'pool')",
		"node.labels.exists(k, v, v == 'gold')",
		"node.labels.all(k, int(node.labels[k]) > 0)",
		"node.allocatable.exists(k, k == 'nvidia.com/gpu')",
		"node.allocatable.exists(k, v, k == 'example.com/device-90')",
		"node.labels.filter(a, node.labels.exists_one(b, false)).size() == 0",
	} {
		f, err := Nodes(expression)
		test.Must(t, err)
		first, whyFirst := f.Admits(n)
		for range 50 {
			if ok, why := f.Admits(n); ok != first || why != whyFirst {
				t.Fatalf("%s: %v %q, and %v %q", expression, first, whyFirst, ok, why)
			}
		}
	}
}

func TestAFilterOfConsumersReadsLabels(t *testing.T) {
	gold, none := offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}, offer.Consumer{ID: "oslo"}
	for expression, want := range map[string][2]string{
		"consumer.labels[?'tier'].orValue('') in ['gold', 'silver']": {"", "its filter leaves this consumer out"},
		"!has(consumer.labels.tier)":                                 {"its filter leaves this consumer out", ""},
		"consumer.labels.tier == 'gold'":                             {"", "its filter leaves this consumer out, because it fails: no such key: tier"},
	} {
		f, err := Consumers(expression)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		for range 2 { // The second answer is remembered.
			_, first := f.Admits(gold)
			_, second := f.Admits(none)
			if diff := cmp.Diff(want, [2]string{first, second}); diff != "" {
				t.Errorf("%s: %s", expression, diff)
			}
		}
	}
}

func TestAResultIsRememberedUntilTheLabelsChange(t *testing.T) {
	of, err := Consumers("consumer.labels.tier == 'gold'")
	test.Must(t, err)
	f := of.(*consumers)
	for _, tier := range []string{"gold", "silver", "gold"} {
		if ok, _ := f.Admits(offer.Consumer{ID: "rome", Labels: map[string]string{"tier": tier}}); ok != (tier == "gold") {
			t.Errorf("tier %s: %v", tier, ok)
		}
	}
	for i := range memo.Max {
		f.Admits(offer.Consumer{ID: fmt.Sprint("unknown-", i)})
	}
	if f.Len() != 2 {
		t.Errorf("%d results are remembered after calls for one consumer with labels and many without", f.Len())
	}
	for i := range 2 * memo.Max {
		f.Admits(offer.Consumer{ID: fmt.Sprint("peer-", i), Labels: map[string]string{"tier": "gold"}})
	}
	if f.Len() > memo.Max {
		t.Errorf("%d results are remembered", f.Len())
	}
}

// Evaluations, simulations and explanations ask the filters of one snapshot at the same time.
func TestFiltersAreAskedByManyAtOnce(t *testing.T) {
	nodes, err := Nodes("node.labels.exists(k, v, v == 'gold') && node.allocatable.exists(k, k == 'cpu')")
	test.Must(t, err)
	consumers, err := Consumers("consumer.labels.exists(k, v, v == 'gold')")
	test.Must(t, err)
	n := gpuNode()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				if ok, why := nodes.Admits(n); !ok {
					t.Errorf("the node is left out: %s", why)
				}
				tier := []string{"gold", "silver"}[i%2]
				if ok, _ := consumers.Admits(offer.Consumer{ID: "rome", Labels: map[string]string{"tier": tier}}); ok != (tier == "gold") {
					t.Errorf("tier %s: %v", tier, ok)
				}
			}
		})
	}
	all.Wait()
}

func TestAMistakeIsNamedWithItsPosition(t *testing.T) {
	for expression, want := range map[string]string{
		"":                             "1:1: Syntax error: mismatched input '<EOF>'",
		"node.label['a'] == 'b'":       "1:5: undefined field 'label': this filter reads node.name, node.labels and node.allocatable",
		"true &&\n  nodes.name == 'a'": "2:3: undeclared reference to 'nodes' (in container '')",
		"node.name":                    "its result is of type string: write an expression that is true or false",
		"node.labels['a'] > 1":         "1:18: found no matching overload for '_>_' applied to '(string, int)'",
		"node.allocatable['cpu'] > quantity('8')":               "1:25: found no matching overload for '_>_' applied to '(kubernetes.Quantity, kubernetes.Quantity)': compare amounts as in",
		"node.labels[?'a'] == 'b'":                              "1:19: found no matching overload for '_==_' applied to '(optional_type(string), string)': write .orValue('') after [?'label']",
		"has(node.labels['a'])":                                 "1:16: invalid argument to has() macro: write 'label' in node.labels",
		"node.labels.contains('a')":                             "applied to 'map(string, string).(string)': write 'label' in node.labels",
		"node.name = 'a'":                                       "1:11: Syntax error: token recognition error at: '= ': write == to compare",
		"a || b || c || d":                                      "1:11: undeclared reference to 'c' (in container ''): this filter reads node.name, node.labels and node.allocatable; and 1 more",
		"consumer.labels['a'] == 'b'":                           "1:1: undeclared reference to 'consumer' (in container '')",
		"node.name.matches('[')":                                "1:19: invalid matches argument",
		"quantity(node.labels['a']) == quantity('1')":           "1:9: quantity takes an amount in quotes, such as '8' or '16Gi', with an exponent of at most two digits",
		"true || isQuantity('1e-999999999')":                    "1:19: isQuantity takes an amount in quotes",
		"node.name.matches(node.labels['a'])":                   "1:18: matches takes a regular expression in quotes",
		"node.name.matches('(.{1,99}){1,9}')":                   "1:18: the regular expression of matches is too large: write fewer repetitions",
		"[[0]].all(__result__, __result__ + __result__ == [0])": "1:11: iteration variable overwrites accumulator variable",
		"[1] + [2] == [1, 2]":                                   "1:5: lists cannot be added in a filter",
		"[node.name, node.name] == []":                          "1:1: a list or map in a filter has at most one element that is not a literal",
		"['a'].map(x, x) == ['a']":                              "1:10: map is not available in a filter",
		"optional.of(1).optMap(x, x).hasValue()":                "1:22: optMap is not available in a filter",
		strings.Repeat("(", 40) + "true":                        "expression recursion limit exceeded: 32",
		"timestamp('2024-01-01T00:00:00Z').getHours('UTC') > 0": "1:43: getHours takes no time zone in a filter",
		"size(node.name.findAll('a')) == 9":                     "1:23: findAll is not available in a filter",
		"sets.contains([1], [1])":                               "1:14: sets.contains is not available in a filter",
		"size(lists.range(9)) == 9":                             "1:17: lists.range is not available in a filter",
		"'" + strings.Repeat("ü", MaxLength-1) + "' == ''":      "it has 1031 characters: write at most 1024",
	} {
		if _, err := Nodes(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	if _, err := Consumers("node.name == 'a'"); err == nil || !strings.HasSuffix(err.Error(), "undeclared reference to 'node' (in container ''): this filter reads consumer.labels") {
		t.Errorf("a filter of consumers that reads a node: %v", err)
	}
}

func TestAMistakeIsNoLongText(t *testing.T) {
	const most = 3*(maxWhy+100) + 100
	for _, expression := range []string{
		strings.Repeat("-`1u", MaxLength/4), strings.Repeat("@", MaxLength), strings.Repeat(".all(x,true)", MaxLength/12),
		strings.Repeat("[", 30) + strings.Repeat("]", 30), "'" + strings.Repeat("a", 1000) + "' == 1", strings.Repeat("a", MaxLength),
		strings.Repeat("[", 30) + strings.Repeat("]", 30) + " == 1", "quantity('1').isGreaterThan(" + strings.Repeat("[", 30) + strings.Repeat("]", 30) + ")",
	} {
		if _, err := Nodes(expression); err == nil || len(err.Error()) > most {
			t.Errorf("%.40s...: %v", expression, err)
		}
	}
}

func TestAFilterOfSlicesReadsTheRequestAndTheConsumer(t *testing.T) {
	r := &offer.Request{
		Key: "rome/s", Resources: capacity.Amounts{"cpu": 1500, "memory": 1 << 30}, Labels: map[string]string{"team": "a"},
		Age: time.Hour, Consumer: offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}},
	}
	for expression, want := range map[string]string{
		"request.resources['cpu'] == quantity('1500m') && request.resources['memory'].isLessThan(quantity('2Gi'))": "0 ",
		"request.resources['cpu'].isGreaterThan(quantity('2'))":                                                    "1 ",
		"!('nvidia.com/gpu' in request.resources)":                                                                 "0 ",
		"request.labels.team == consumer.labels.tier || request.labels.team == 'a'":                                "0 ",
		"request.age < duration('1h')":                                                                             "1 ", "request.age <= duration('60m')": "0 ",
		"request.labels.project == 'x'":                         "1 slices.filter fails on it: no such key: project",
		"request.resources['gpu'].isGreaterThan(quantity('1'))": "1 slices.filter fails on it: no such key: gpu",
	} {
		f, err := Slices(expression)
		test.Must(t, err)
		ruling, why := f.Rule(r)
		if got := fmt.Sprint(int(ruling), " ", why); got != want || f.String() != expression {
			t.Errorf("%s: %s, want %s", f, got, want)
		}
	}
	if _, err := Slices("node.name == 'a'"); err == nil || !strings.HasSuffix(err.Error(), "this filter reads request.resources, request.labels, request.age and consumer.labels") {
		t.Errorf("a filter of slices that reads a node: %v", err)
	}
}

// An expression that does not read the age has one result for all ages, and any other one for each.
func TestAResultIsRememberedUntilTheRequestChanges(t *testing.T) {
	for expression, want := range map[string]int{
		"request.labels == {'a': 'b'}": 0, "has(request.labels.a) || 'cpu' in request.resources": 0, "consumer.labels == {}": 0,
		"request.age < duration('90s')": 1, "request.?age.orValue(duration('0s')) < duration('90s')": 1,
		"request == request && dyn(request)['a' + 'ge'] < duration('90s')": 1, "[request].all(r, r.age < duration('90s'))": 1,
		"['a'].all(request, request.size() == 1) && [request].exists(request, request.age < duration('90s'))": 1,
	} {
		f, err := Slices(expression)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		asked := 0
		p := f.(*requests).program
		p.Program = countedProgram{p.Program, &asked}
		r := offer.Request{Key: "s", Labels: map[string]string{"a": "b"}, Age: time.Minute}
		first, _ := f.Rule(&r)
		r.Age += time.Minute
		second, why := f.Rule(&r)
		if got := asked - 1; got != want || first != offer.Admitted || want == 1 && second != offer.Refused || why != "" {
			t.Errorf("%s: asked %d times, %v, then %v %s", expression, asked, first, second, why)
		}
		for _, change := range []func(){
			func() { r.Labels = map[string]string{"a": "c"} }, func() { r.Resources = capacity.Amounts{"cpu": 1} },
			func() { r.Consumer.Labels = map[string]string{"a": "b"} }, func() { r.Key = "t" },
		} {
			change()
			before := asked
			f.Rule(&r)
			f.Rule(&r)
			if asked != before+1 {
				t.Errorf("%s: asked %d times after a change", expression, asked-before)
			}
		}
	}
}

// countedProgram counts its evaluations.
type countedProgram struct {
	cel.Program
	asked *int
}

func (p countedProgram) ContextEval(ctx context.Context, variables any) (ref.Val, *cel.EvalDetails, error) {
	*p.asked++
	return p.Program.ContextEval(ctx, variables)
}
