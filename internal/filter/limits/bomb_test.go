// Package limits holds filters to the time and the memory that they may take. Its tests run without the race
// detector, which takes 20 times as long.
package limits

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

const (
	// maxCompile bounds the time of the processor for the compilation of a filter, maxEvaluation that for one object,
	// which the docs call a few milliseconds.
	maxCompile, maxEvaluation = 100 * time.Millisecond, 5 * time.Millisecond
	// maxMemory bounds what either allocates in all, of which most is garbage at once.
	maxMemory = 16 << 20
	// attempts is how often something is tried that takes longer: other work on the machine extends also the time of
	// the processor.
	attempts = 30
	// maxLabels is the number of labels that a filter takes.
	maxLabels = 1000
)

// threadTime returns how long the processor has worked for this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// fastest returns the time of the processor and the memory of the first attempt within the bound, or of the fastest.
func fastest(bound time.Duration, do func()) (took time.Duration, memory uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took = time.Hour
	for try := 0; try < attempts && took > bound; try++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := threadTime()
		do()
		took = min(took, threadTime()-began)
		runtime.ReadMemStats(&after)
		memory = after.TotalAlloc - before.TotalAlloc
	}
	return took, memory
}

func gpuNode() *capacity.Node {
	return &capacity.Node{
		Name: "gpu-1", Labels: map[string]string{"pool": "gold", "example.com/rack": "r7"}, State: capacity.Ready,
		Allocatable: capacity.Amounts{capacity.CPU: 7500, capacity.Memory: 32 << 30, capacity.Pods: 110, "nvidia.com/gpu": 4},
	}
}

// TestNoExpressionTakesLongOrMuchMemory tries expressions that are hostile on purpose. Each is refused, fails
// or has a result, within the bounds for its compilation and for one node.
func TestNoExpressionTakesLongOrMuchMemory(t *testing.T) {
	list := "[" + strings.Repeat("0,", 39) + "0]"
	long := "'" + strings.Repeat("a", 200) + "'"
	n := gpuNode()
	n.Labels["amount"], n.Labels["pattern"], n.Labels["number"] = "1e-999999999", strings.Repeat("a?", 30), "999999999"
	for name, expression := range map[string]string{
		"nested loops":              list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c == 0)))",
		"many nested loops":         "[0,1,2,3,4,5,6,7].all(a, [0,1,2,3,4,5,6,7].all(b, [0,1,2,3,4,5,6,7].all(c, [0,1,2,3,4,5,6,7].all(d, [0,1,2,3,4,5,6,7].all(e, true)))))",
		"a list of lists":           "[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, " + list + "))).size() == 8",
		"doubled text":              nested("'aaaaaaaa'", "v+v", "v.contains('ab')"),
		"doubled bytes":             nested("b'aaaaaaaa'", "v+v", "v.size()>0"),
		"doubled lists":             nested("[0]", "v+v", "v==v"),
		"doubled lists of any type": nested("[0]", "dyn(v)+dyn(v)", "v==v"),
		"nested lists":              nested("[0]", "dyn([v,v])", "v==v"),
		"nested maps":               nested("{'a':0}", "dyn({'a':v,'b':v})", "v==v"),
		"nested optional lists":     nested("[0]", "dyn([?optional.of(v),?optional.of(v)])", "v==v"),
		"nested calls of map":       "[0]" + strings.Repeat(".map(x,dyn([x,x]))", 20) + ".all(x,x==x)",
		"nested flat lists":         nested("[0]", "[v,v].flatten()", "v.size()>0"),
		"nested lists of one":       nested("[0]", "dyn([v])", "v==v"),
		"doubled amounts":           nested("quantity('9E')", "v.add(v)", "v.isInteger()"),
		"time zones":                list + ".all(a, " + list + ".all(b, timestamp('2024-01-01T00:00:00Z').getHours(node.name) > 0))",
		"loops at no cost":          "[[" + strings.Repeat("0,", 399) + "0]].all(l, l.exists_one(a, l.exists_one(b, l.exists_one(c, false))))",
		"large equalities":          list + ".all(a, " + list + ".all(b, node == node))",
		"replaced text":             "(" + long + ").replace('a', " + long + ").replace('a', " + long + ").size() > 0",
		"joined text":               list + ".map(x, " + long + ").join(" + long + ").size() > 0",
		"split text":                "(" + long + ").split('').map(x, (" + long + ").split('')).size() > 0",
		"formatted text":            "'%s%s%s%s'.format([" + strings.Join([]string{long}, ",") + ", 1, 2, 3]).size() > 0",
		"a wide format":             "'%.999999999f'.format([1.0]).size() > 0",
		"a long range":              "lists.range(999999999).size() > 0",
		"a range of a label":        "lists.range(int(node.labels['number'])).size() > 0",
		"a tiny amount":             "quantity('1e-999999999').isInteger()",
		"a large amount":            "quantity('1e999999999').isInteger()",
		"an amount of a label":      "quantity(node.labels['amount']).isInteger()",
		"is that an amount":         "isQuantity(node.labels['amount'])",
		"a pattern of a label":      "node.name.matches(node.labels['pattern'])",
		"a large pattern":           "(" + long + ").matches('" + strings.Repeat(".{1,1000}", 9) + "')",
		"a pattern on long text":    "(" + long + ").matches('(a*)*(a*)*(a*)*b$')",
		"all matches":               "(" + long + " + " + long + ").findAll('a*a*a*').size() > 0",
		"all matches of all":        "[" + long + "].all(a, [a+a].all(b, [b+b].all(c, c.findAll('a(((.?){40})*b)?').size() > 0)))",
		"one match in all":          "[" + long + "].all(a, [a+a].all(b, [b+b].all(c, c.find('((.?){40})*b') == '')))",
		"a sorted list":             list + ".map(x, " + list + ".sort()).size() > 0",
		"a flat list":               "[[[[" + list + "]]]].flatten(9).size() > 0",
		"distinct elements":         list + ".map(x, " + list + ".distinct()).size() > 0",
		"large sets":                "sets.intersects('" + strings.Repeat("a", 480) + "'.split(''), '" + strings.Repeat("b", 480) + "'.split(''))",
		"sets":                      list + ".all(x, sets.contains(" + list + ", " + list + "))",
		"repeated maps":             "optional.of(1)" + strings.Repeat(".optMap(x,x)", 10) + ".hasValue()",
		"repeated flat maps":        "optional.of(1)" + strings.Repeat(".optFlatMap(x,optional.of(x))", 10) + ".hasValue()",
		"repeated sorting":          "[1]" + strings.Repeat(".sortBy(x,x)", 20) + ".size() > 0",
		"deep lists":                strings.Repeat("[", 200) + strings.Repeat("]", 200) + " == []",
		"deep maps":                 strings.Repeat("{'a':", 165) + "0" + strings.Repeat("}", 165) + " == {}",
		"deep types":                strings.Repeat("type(", 165) + "0" + strings.Repeat(")", 165) + " == type",
		"deep parentheses":          strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500),
		"many negations":            strings.Repeat("!", 1000) + "true",
		"a huge number in a string": "int('" + strings.Repeat("9", 900) + "') > 0",
		"an address":                "isIP(" + long + ") || isCIDR(" + long + ") || isURL(" + long + ")",
		"a version":                 "isSemver('1." + strings.Repeat("9", 900) + ".0')",
	} {
		var f capacity.NodeFilter
		var err error
		compiled, memory := fastest(maxCompile, func() { f, err = filter.Nodes(expression) })
		outcome, evaluated, more := fmt.Sprint("refused: ", err), time.Duration(0), uint64(0)
		if err == nil {
			evaluated, more = fastest(maxEvaluation, func() { _, outcome = f.Admits(n) })
		}
		t.Logf("%s: %v, %v and %d KiB: %.120s", name, compiled, evaluated, (memory+more)>>10, outcome)
		tooDeep := strings.Contains(outcome, "recursion") && !strings.HasPrefix(name, "deep")
		if tooDeep || strings.Contains(outcome, "write at most") || strings.Contains(outcome, "Syntax error") {
			t.Errorf("%s is no attack: %s", name, outcome)
		}
		if compiled > maxCompile || evaluated > maxEvaluation || memory+more > maxMemory {
			t.Errorf("%s: compiled in %v, evaluated in %v, with %d MiB", name, compiled, evaluated, (memory+more)>>20)
		}
	}
}

// TestManyLabelsMakeNoFilterSlow compares and iterates over labels, which a kubelet may set as many of
// as etcd stores.
func TestManyLabelsMakeNoFilterSlow(t *testing.T) {
	often := "[" + strings.Repeat("0,", 99) + "0]"
	for _, expression := range []string{
		often + ".all(x, node == node)", often + ".all(x, !(node != node))", often + ".all(x, node.labels == node.labels)",
		often + ".all(x, [node].indexOf(node) == 0)", "[node.name.split('')].all(l, " + often + ".all(x, l.sort().indexOf('z') < 0))",
		"node in [node]", often + ".all(x, node in [node])", often + ".all(x, node.labels in [node.labels])",
		often + ".all(x, [node.labels] == [node.labels])", often + ".all(x, node.labels.exists(k, true))", "node.labels.all(k, k != '')",
		"node.labels.filter(a, node.labels.filter(b, false) == []).size() == 0",
		"node.labels.exists_one(a, node.labels.exists_one(b, node.labels.exists_one(c, false)))",
	} {
		f, err := filter.Nodes(expression)
		test.Must(t, err)
		for _, labels := range []int{maxLabels, maxLabels + 1, 20_000} {
			n := gpuNode()
			for i := len(n.Labels); i < labels; i++ {
				n.Labels[fmt.Sprint("label-", i)] = "a"
			}
			why := ""
			if took, _ := fastest(maxEvaluation, func() { _, why = f.Admits(n) }); took > maxEvaluation {
				t.Errorf("%s took %v with %d labels", expression, took, labels)
			}
			if labels == maxLabels && !strings.Contains(why, "cost limit exceeded") && !strings.Contains(why, "its loops take more than") {
				t.Errorf("%s with %d labels has no limit: %q", expression, labels, why)
			}
			if want := fmt.Sprintf("left out by the filter, which fails on it: %d labels are more than 1000", labels); labels > maxLabels && why != want {
				t.Errorf("%s with %d labels: %s, want %s", expression, labels, why, want)
			}
		}
	}
	f, err := filter.Consumers("consumer.labels.all(k, k != '') || true")
	test.Must(t, err)
	c := offer.Consumer{ID: "rome", Labels: map[string]string{}}
	for i := range maxLabels + 1 {
		c.Labels[fmt.Sprint("label-", i)] = "a"
	}
	if ok, why := f.Admits(c); ok || !strings.HasSuffix(why, "because it fails: 1001 labels are more than 1000") {
		t.Errorf("a consumer with many labels: %v, %s", ok, why)
	}
	delete(c.Labels, "label-0")
	if f, err = filter.Consumers(often + ".all(x, consumer == consumer)"); err != nil {
		t.Fatal(err)
	}
	if ok, why := f.Admits(c); ok || !strings.HasSuffix(why, "cost limit exceeded") {
		t.Errorf("a consumer that is compared with itself: %v, %s", ok, why)
	}
}

// nested binds v to start, and then again and again to step, which is of v, as often as fits into an
// expression, which is nested two levels deeper by each. End is of the last v.
func nested(start, step, end string) (expression string) {
	const variables = "abcdefghijklmn"
	of := func(text string, i int) string { return strings.ReplaceAll(text, "v", variables[i:i+1]) }
	open := "[" + start + "].all(a,"
	for i := range variables {
		next := open + of(end, i) + strings.Repeat(")", i+1)
		if len(next) > filter.MaxLength || i == len(variables)-1 {
			break
		}
		expression = next
		open += "[" + of(step, i) + "].all(" + variables[i+1:i+2] + ","
	}
	return expression
}
