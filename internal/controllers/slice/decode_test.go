package slice

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test/kubetest"
)

// etcdLimit is roughly the size of the largest object that an API server stores, in bytes.
const etcdLimit = 3 << 19

// many returns as many entries as an object of the size etcdLimit holds.
func many(entry func(i int) (key string, value any)) map[string]any {
	out := map[string]any{}
	for size, i := 0, 0; size < etcdLimit; i++ {
		key, value := entry(i)
		text, _ := json.Marshal(value)
		size += len(key) + len(text) + len(`"":,`)
		out[key] = value
	}
	return out
}

func manyOf(element func(i int) any) []any {
	var out []any
	for size, i := 0, 0; size < etcdLimit; i++ {
		text, _ := json.Marshal(element(i))
		size += len(text) + 1
		out = append(out, element(i))
	}
	return out
}

func quantityEntry(i int) (string, any) { return fmt.Sprint("x.y/", i), "1" }

// filled is a way for a consumer to fill a slice up to etcdLimit: a value, and the field for it.
type filled struct {
	value func() any
	path  []string
}

func longText() any { return strings.Repeat("x", etcdLimit) }

func manyEntries() any { return many(quantityEntry) }

func manyLike(element func(i int) any) func() any {
	return func() any { return manyOf(element) }
}

// fillings are the ways to fill a slice, by name.
var fillings = map[string]filled{
	"labels":                  {manyEntries, []string{"metadata", "labels"}},
	"annotations":             {manyEntries, []string{"metadata", "annotations"}},
	"one annotation":          {longText, []string{"metadata", "annotations", "a"}},
	"finalizers":              {manyLike(func(i int) any { return fmt.Sprint("example.com/", i) }), []string{"metadata", "finalizers"}},
	"owners":                  {manyLike(func(i int) any { return map[string]any{"uid": fmt.Sprint(i)} }), []string{"metadata", "ownerReferences"}},
	"the class":               {longText, []string{"spec", "class"}},
	"the consumer":            {longText, []string{"spec", "consumerClusterID"}},
	"the request":             {longText, []string{"spec", "csr"}},
	"resource names":          {manyEntries, []string{"spec", "resources"}},
	"one resource name":       {func() any { return map[string]any{longText().(string): "1"} }, []string{"spec", "resources"}},
	"one quantity":            {longText, []string{"spec", "resources", "cpu"}},
	"a list for a request":    {manyLike(func(int) any { return "9" }), []string{"spec", "resources"}},
	"the class in the status": {longText, []string{"status", "class"}},
	"conditions": {manyLike(func(i int) any { return map[string]any{"type": fmt.Sprint(i), "status": "Accepted"} }),
		[]string{"status", "conditions"}},
	"conditions Resources": {manyLike(func(int) any { return map[string]any{"type": "Resources", "status": "Accepted"} }),
		[]string{"status", "conditions"}},
	"a message": {func() any {
		return []any{map[string]any{"type": "Resources", "status": "Accepted", "message": longText()}}
	},
		[]string{"status", "conditions"}},
	"a type":        {func() any { return []any{map[string]any{"type": longText(), "status": longText()}} }, []string{"status", "conditions"}},
	"a condition":   {func() any { return []any{manyEntries()} }, []string{"status", "conditions"}},
	"amounts":       {manyEntries, []string{"status", "resources"}},
	"storage":       {manyLike(func(i int) any { return map[string]any{"storageClassName": fmt.Sprint(i)} }), []string{"status", "storageClasses"}},
	"empty ingress": {manyLike(func(int) any { return map[string]any{} }), []string{"status", "ingressClasses"}},
	"one class":     {func() any { return []any{manyEntries()} }, []string{"status", "loadBalancerClasses"}},
	"node labels":   {manyEntries, []string{"status", "nodeLabels"}},
	"a selector":    {func() any { return map[string]any{"a": longText()} }, []string{"status", "nodeSelector"}},
	"a certificate": {longText, []string{"status", "authParams", "ca"}},
	"what no Liqo knows": {func() any { return many(func(i int) (string, any) { return fmt.Sprint("f", i), []any{[]any{"deep"}} }) },
		[]string{"status", "ofALaterLiqo"}},
}

// hostile returns a slice of at least etcdLimit bytes.
func hostile(t testing.TB, what string) *unstructured.Unstructured {
	t.Helper()
	with := fillings[what]
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	parent := u.Object
	for _, field := range with.path[:len(with.path)-1] {
		parent, _ = parent[field].(map[string]any)
	}
	parent[with.path[len(with.path)-1]] = with.value()
	return u
}

// TestWhatIsKeptOfASliceIsBoundedWhateverItIsFilledWith checks the decoder by itself;
// TestSlicesOfAnySizeTakeLittleMemory does the same with an API server.
func TestWhatIsKeptOfASliceIsBoundedWhateverItIsFilledWith(t *testing.T) {
	const most = 256 << 10        // bytes for each
	count := kubetest.Fewer(4, 4) // The race detector makes decoding many times as slow.
	for what := range fillings {
		u := hostile(t, what)
		text, err := json.Marshal(u.Object)
		if err != nil || len(text) < etcdLimit {
			t.Fatalf("%s: %d bytes: %v", what, len(text), err)
		}
		kept := make([]slice, count)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i] = parseSlice(decodedFrom(t, text))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(count); each > most {
			t.Errorf("%s: %d bytes are kept of each slice of %d bytes, want at most %d", what, each, len(text), most)
		}
		runtime.KeepAlive(kept)
	}
}

func TestWhatIsKeptOfASliceSaysThatThereIsMore(t *testing.T) {
	usual := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s")))
	count := len(hostile(t, "resource names").Object["spec"].(map[string]any)["resources"].(map[string]any))
	for what, want := range map[string]func(*slice){
		"labels": func(s *slice) {
			s.originOK, s.labels = false, map[string]string{}
			for _, key := range slices.Sorted(maps.Keys(many(quantityEntry)))[:maxKeptLabels] {
				s.labels[key] = "1"
			}
		},
		"annotations":       func(*slice) {},
		"one annotation":    func(*slice) {},
		"finalizers":        func(*slice) {},
		"owners":            func(*slice) {},
		"the request":       func(*slice) {},
		"a certificate":     func(*slice) {},
		"the class":         func(s *slice) { s.class = strings.Repeat("x", maxField) },
		"the consumer":      func(s *slice) { s.consumer = "" },
		"amounts":           func(s *slice) { s.answer.inexact = true },
		"storage":           func(s *slice) { s.answer.inexact = true },
		"empty ingress":     func(s *slice) { s.answer.inexact = true },
		"node labels":       func(s *slice) { s.answer.inexact = true },
		"a selector":        func(s *slice) { s.answer.inexact = true },
		"one class":         func(s *slice) { s.answer.inexact = true },
		"conditions":        func(s *slice) { s.authenticated = false },
		"one resource name": func(s *slice) { s.request = nil },
		"one quantity":      func(s *slice) { s.request = nil },
		"resource names": func(s *slice) {
			s.request = capacity.Amounts{}
			for _, name := range slices.Sorted(maps.Keys(many(quantityEntry)))[:64] {
				s.request[name] = 1
			}
			s.problems = []string{fmt.Sprintf("asks for %d resources: write at most 64", count)}
		},
	} {
		wanted := usual
		want(&wanted)
		got := parseSlice(stripped(t, hostile(t, what)))
		ignore := cmp.FilterPath(func(p cmp.Path) bool {
			switch p.String() {
			case "problems":
				return what != "resource names"
			case "answer.resources", "answer.storageClasses", "answer.ingressClasses", "answer.loadBalancerClasses", "answer.nodeLabels", "answer.nodeSelector":
				return wanted.answer.inexact
			}
			return false
		}, cmp.Ignore())
		if diff := cmp.Diff(wanted, got, comparing, ignore); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func TestOfManyConditionsThoseThatAreDecidedByAreKept(t *testing.T) {
	u := hostile(t, "conditions")
	conditions := u.Object["status"].(map[string]any)["conditions"].([]any)
	for _, c := range []map[string]any{
		{"type": "Authentication", "status": "Accepted", "message": "of Liqo"}, {"type": "Authentication", "status": "Denied"},
		{"type": "Resources", "status": "Denied"}, {"type": "Resources", "status": "Accepted"}, {"type": "Resources", "status": "Accepted"},
	} {
		conditions = append(conditions, any(c))
	}
	u.Object["status"].(map[string]any)["conditions"] = conditions
	k := stripped(t, u)
	s := parseSlice(k)
	if !s.authenticated || s.answer.verdict != denied || !s.answer.inexact || !keptOf(k).conditionsCut {
		t.Errorf("authenticated %t, answer %+v, cut %t", s.authenticated, s.answer, keptOf(k).conditionsCut)
	}
	if got := len(conditionsOf(k)); got != maxConditions+3 {
		t.Errorf("%d conditions are kept, want %d", got, maxConditions+3)
	}
}

func TestASliceThatIsDecodedWhileItArrivesSaysTheSameAsTheWholeOne(t *testing.T) {
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	rapid.Check(t, func(rt *rapid.T) {
		u := u.DeepCopy()
		for _, field := range []string{"resources", "class", "consumerClusterID", "csr"} {
			_ = unstructured.SetNestedField(u.Object, anyValue(1).Draw(rt, field), "spec", field)
		}
		for _, field := range []string{"class", "conditions", "resources", "storageClasses", "ingressClasses", "loadBalancerClasses", "nodeLabels", "nodeSelector"} {
			_ = unstructured.SetNestedField(u.Object, anyValue(2).Draw(rt, field), "status", field)
		}
		if rapid.Bool().Draw(rt, "another status") {
			u.Object["status"] = anyValue(2).Draw(rt, "status")
		}
		text, err := json.Marshal(u.Object)
		if err != nil {
			rt.Fatal(err)
		}
		whole := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &whole.Object); err != nil {
			rt.Fatal(err)
		}
		want, got := parseSlice(whole), parseSlice(decodedFrom(t, text))
		if got.answer.inexact && len(text) > maxField {
			want.answer, got.answer = sliceAnswer{}, sliceAnswer{} // A text of the answer may be cut.
		}
		if diff := cmp.Diff(want, got, comparing); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// If the largest answer were read back differently, it would be written over and over.
func TestTheLargestAnswerReadsAsItWasWritten(t *testing.T) {
	texts := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("%s.example.com/%s%05d", strings.Repeat("d", 230), strings.Repeat("n", 50), i)] = strings.Repeat("v", 63)
		}
		return out
	}
	amounts := capacity.Amounts{}
	for name := range texts(200) {
		amounts[name] = math.MaxInt64
	}
	classes := func(n int) (out []namedClass) {
		for i := range n {
			out = append(out, namedClass{fmt.Sprintf("%s%05d", strings.Repeat("c", 248), i), i == 0})
		}
		return out
	}
	for name, a := range map[string]sliceAnswer{
		"of what a policy may say at most": {
			verdict: accepted, resources: amounts, nodeLabels: texts(64), nodeSelector: texts(64),
			storageClasses: classes(64), ingressClasses: classes(64), loadBalancerClasses: classes(64),
		},
		"of very many resources": {verdict: accepted, resources: func() capacity.Amounts {
			out := capacity.Amounts{}
			for i := range 10_000 {
				out[fmt.Sprint("r", i)] = int64(i)
			}
			return out
		}()},
		"of very many StorageClasses": {verdict: accepted, storageClasses: classes(2000)},
		"of usual size":               {verdict: accepted, resources: capacity.Amounts{"cpu": 1}, storageClasses: classes(8), nodeLabels: texts(3)},
	} {
		written := a.bounded()
		if got := readAnswer(stripped(t, written.writeTo(kubetest.Unstructured(t, kubetest.Slice("s")), atNoon))); !equal(written, got) {
			t.Errorf("%s: %s", name, cmp.Diff(written, got, comparing))
		}
		if name == "of usual size" && !equal(a, written) {
			t.Errorf("an answer %s was cut", name)
		}
		for name, v := range written.resources {
			if a.resources[name] != v {
				t.Errorf("the amount of %s is %d, want %d", name, v, a.resources[name])
			}
		}
	}
}
