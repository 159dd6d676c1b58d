package filter

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/internal/kubetest"
)

// TestNoExpressionTakesLongOrMuchMemory tries expressions that are hostile on purpose. Each is
// refused, fails or has a result, within these bounds for one node. The memory is what is allocated
// in all, of which most is garbage at once.
func TestNoExpressionTakesLongOrMuchMemory(t *testing.T) {
	const maxMemory, evaluations = 16 << 20, 3
	maxTime := kubetest.Slower(100*time.Millisecond, 20)
	list := "[" + strings.Repeat("0,", 39) + "0]"
	long := "'" + strings.Repeat("a", 200) + "'"
	n := gpuNode()
	n.Labels["amount"], n.Labels["pattern"], n.Labels["number"] = "1e-999999999", strings.Repeat("a?", 30), "999999999"
	for name, expression := range map[string]string{
		"nested loops":              list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c == 0)))",
		"many nested loops":         "[0,1,2,3,4,5,6,7].all(a, [0,1,2,3,4,5,6,7].all(b, [0,1,2,3,4,5,6,7].all(c, [0,1,2,3,4,5,6,7].all(d, [0,1,2,3,4,5,6,7].all(e, true)))))",
		"a list of lists":           "[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, " + list + "))).size() == 8",
		"doubled text":              doubled("x + x", 40),
		"doubled lists":             doubled("x.map(y, [y, y])", 12),
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
		"a sorted list":             list + ".map(x, " + list + ".sort()).size() > 0",
		"a flat list":               "[[[[" + list + "]]]].flatten(9).size() > 0",
		"distinct elements":         list + ".map(x, " + list + ".distinct()).size() > 0",
		"sets":                      list + ".all(x, sets.contains(" + list + ", " + list + "))",
		"deep parentheses":          strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500),
		"many negations":            strings.Repeat("!", 1000) + "true",
		"a huge number in a string": "int('" + strings.Repeat("9", 900) + "') > 0",
		"an address":                "isIP(" + long + ") || isCIDR(" + long + ") || isURL(" + long + ")",
		"a version":                 "isSemver('1." + strings.Repeat("9", 900) + ".0')",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f, err := Nodes(expression)
		outcome := fmt.Sprint("refused: ", err)
		if err == nil {
			for range evaluations {
				start = time.Now()
				_, outcome = f.Admits(n)
			}
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		memory := (after.TotalAlloc - before.TotalAlloc) / evaluations
		t.Logf("%s: %v and %d KiB: %.120s", name, took, memory>>10, outcome)
		if took > maxTime || memory > maxMemory {
			t.Errorf("%s: %v and %d MiB", name, took, memory>>20)
		}
	}
}

// doubled nests an expression of x, as far as fits.
func doubled(of string, times int) string {
	x := "['aaaaaaaa'][0]"
	if strings.Contains(of, "map") {
		x = "[0]"
	}
	for range times {
		next := strings.ReplaceAll(of, "x", x)
		if len(next) > MaxLength-20 {
			break
		}
		x = next
	}
	return "(" + x + ").size() > 0"
}
