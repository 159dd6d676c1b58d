package slice

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// anAnswer draws an answer that could be written.
func anAnswer(t *rapid.T, label string) sliceAnswer {
	names := rapid.SampledFrom([]string{"cpu", "memory", "pods", "storage", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"})
	value := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 100_000), rapid.SampledFrom([]int64{0, 1, 1000, 1 << 40, math.MaxInt64 - 1, math.MaxInt64}))
	classes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) namedClass {
		return namedClass{rapid.SampledFrom([]string{"fast", "slow", "example.com/internal"}).Draw(t, "name"), rapid.Bool().Draw(t, "default")}
	}), 0, 3)
	texts := rapid.MapOfN(rapid.StringMatching(`[a-z./]{1,8}`), rapid.StringMatching(`[a-z]{0,8}`), 0, 3)
	return rapid.Custom(func(t *rapid.T) sliceAnswer {
		a := sliceAnswer{
			verdict:        rapid.SampledFrom([]verdict{unanswered, accepted, denied}).Draw(t, "verdict"),
			resources:      rapid.MapOfN(names, value, 0, 7).Draw(t, "resources"),
			storageClasses: classes.Draw(t, "storage"), ingressClasses: classes.Draw(t, "ingress"), loadBalancerClasses: classes.Draw(t, "load balancer"),
			nodeLabels: texts.Draw(t, "labels"), nodeSelector: texts.Draw(t, "selector"),
		}
		if a.verdict != unanswered {
			a.reason, a.message = rapid.StringMatching(`[A-Z][a-z]{0,9}`).Draw(t, "reason"), rapid.String().Draw(t, "message")
		}
		return a
	}).Draw(t, label)
}

// writeTo returns a copy of a complete ResourceSlice with the answer in its status. All other
// fields are unchanged. A patch must have the same result.
func (a sliceAnswer) writeTo(u *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	out := u.DeepCopy()
	if out.Object == nil {
		out.Object = map[string]any{}
	}
	status, ok := out.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		out.Object["status"] = status
	}
	put(status, "conditions", a.conditions(conditionsOf(out), now))
	put(status, "storageClasses", classesAs(a.storageClasses, "storageClassName"))
	put(status, "ingressClasses", classesAs(a.ingressClasses, "ingressClassName"))
	put(status, "loadBalancerClasses", classesAs(a.loadBalancerClasses, "loadBalancerClassName"))
	for field, texts := range map[string]map[string]string{
		"resources": quantityTexts(a.resources), "nodeLabels": a.nodeLabels, "nodeSelector": a.nodeSelector,
	} {
		delete(status, field)
		if len(texts) > 0 {
			values := make(map[string]any, len(texts))
			for key, text := range texts {
				values[key] = text
			}
			status[field] = values
		}
	}
	return out
}

func put(status map[string]any, field string, list []any) {
	delete(status, field)
	if len(list) > 0 {
		status[field] = list
	}
}

func TestAnAnswerReadsAsItWasWrittenAndLiqoReadsTheSame(t *testing.T) {
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	rapid.Check(t, func(t *rapid.T) {
		earlier, a := anAnswer(t, "earlier"), anAnswer(t, "answer")
		written := a.writeTo(earlier.writeTo(u, time.Unix(1_700_000_050, 0)), time.Unix(1_700_000_100, 0))
		if got := readAnswer(written); !equal(a, got) {
			t.Fatalf("wrote %+v, read %+v", a, got)
		}
		var ofLiqo authv1beta1.ResourceSlice
		test.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(written.Object, &ofLiqo, true))
		back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ofLiqo)
		test.Must(t, err)
		if got := readAnswer(&unstructured.Unstructured{Object: back}); !equal(a, got) {
			t.Fatalf("wrote %+v, read from Liqo's type %+v", a, got)
		}
		want := kubetest.Slice("s")
		if diff := cmp.Diff(want.Status.AuthParams, ofLiqo.Status.AuthParams); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want.Status.Conditions, ofLiqo.Status.Conditions[:1]); diff != "" {
			t.Fatal(diff)
		}
		if equal(earlier, a) != equal(a, earlier) || !equal(a, a) {
			t.Fatal("equal is not symmetric and reflexive")
		}
	})
}

func TestAnAnswerLeavesAllElseOfTheStatusAsItIs(t *testing.T) {
	const unknown = "ofALaterLiqo"
	u := kubetest.Unstructured(t, kubetest.Slice("s", func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = []authv1beta1.ResourceSliceCondition{
			kubetest.Condition("First", "Accepted"), kubetest.Condition("Resources", "Denied"), kubetest.Condition("Authentication", "Accepted"), kubetest.Condition("Resources", "Accepted"),
		}
		s.Status.Resources, s.Status.NodeLabels = nodestest.List("cpu", "9", "memory", "1Gi"), map[string]string{"old": "label"}
	}))
	test.Must(t, unstructured.SetNestedField(u.Object, map[string]any{"deep": []any{int64(1), "two"}}, "status", unknown))
	now := time.Unix(1_700_000_100, 0)
	out := sliceAnswer{verdict: accepted, reason: "Granted", resources: capacity.Amounts{"cpu": 4000}}.writeTo(u, now)

	conditions := conditionsOf(out)
	var order []any
	for _, c := range conditions {
		order = append(order, c.(map[string]any)["type"])
	}
	if diff := cmp.Diff([]any{"First", "Resources", "Authentication"}, order); diff != "" {
		t.Errorf("order of the conditions: %s", diff)
	}
	was := conditionsOf(u)
	want := []any{
		was[0],
		map[string]any{"type": "Resources", "status": "Accepted", "reason": "Granted", "lastTransitionTime": "2023-11-14T22:15:00Z"},
		was[2],
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("conditions: %s", diff)
	}
	before, after := u.DeepCopy(), out.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		for _, field := range []string{"conditions", "resources", "nodeLabels"} {
			unstructured.RemoveNestedField(object.Object, "status", field)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("fields other than the answer: %s", diff)
	}
	resources, _, _ := unstructured.NestedMap(out.Object, "status", "resources")
	if diff := cmp.Diff(map[string]any{"cpu": "4"}, resources); diff != "" {
		t.Errorf("resources: %s", diff)
	}
}

func TestTheTransitionOfAnAnswerIsWhenItsStatusChanged(t *testing.T) {
	transition := func(u *unstructured.Unstructured) string {
		c, _ := findCondition(u, resourcesCondition)
		text, _ := c["lastTransitionTime"].(string)
		return text
	}
	first, later := time.Unix(1_700_000_100, 0), time.Unix(1_700_000_200, 0)
	u := sliceAnswer{verdict: accepted, reason: "Granted"}.writeTo(kubetest.Unstructured(t, kubetest.Slice("s")), first)
	for _, tc := range []struct {
		name string
		a    sliceAnswer
		want time.Time
	}{
		{"accepted", sliceAnswer{verdict: accepted, reason: "Capped", message: "less", resources: capacity.Amounts{"cpu": 1}}, first},
		{"denied", sliceAnswer{verdict: denied, reason: "Denied"}, later},
	} {
		if got := transition(tc.a.writeTo(u, later)); got != tc.want.UTC().Format(time.RFC3339) {
			t.Errorf("accepted, then %s: transition at %s, want %s", tc.name, got, tc.want.UTC())
		}
	}
	c, _ := findCondition(u, resourcesCondition)
	c["lastTransitionTime"] = "yesterday"
	if got := transition(sliceAnswer{verdict: accepted}.writeTo(u, later)); got != later.UTC().Format(time.RFC3339) {
		t.Errorf("an invalid transition time was kept: %s", got)
	}
}

func TestAnAnswerTakenAwayLeavesNothingOfIt(t *testing.T) {
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	a := sliceAnswer{verdict: accepted, reason: "Granted", resources: capacity.Amounts{"cpu": 1}, nodeLabels: map[string]string{"a": "b"}}
	if diff := cmp.Diff(u, sliceAnswer{}.writeTo(a.writeTo(u, time.Now()), time.Now())); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerThatSomebodyElseWroteIsReadByItsMeaning(t *testing.T) {
	resources := func(pairs ...string) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for _, tc := range []struct {
		name  string
		value any
		path  []string
		want  sliceAnswer
	}{
		{"other texts for the same amounts", resources("cpu", "1000m", "memory", "1e3"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"cpu": 1000, "memory": 1000}}},
		{"a fraction", resources("cpu", "0.0005"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"cpu": 1}, inexact: true}},
		{"a negative amount", resources("cpu", "-1"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"cpu": 0}, inexact: true}},
		{"the largest amount", resources("cpu", "9223372036854775807m"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"cpu": math.MaxInt64}}},
		{"more than the largest amount", resources("cpu", "9223372036854775808m", "memory", "1e100"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"cpu": math.MaxInt64, "memory": math.MaxInt64}, inexact: true}},
		{"not a quantity", resources("cpu", "much", "memory", "1"), []string{"status", "resources"}, sliceAnswer{resources: capacity.Amounts{"memory": 1}, inexact: true}},
		{"an exponent that would take minutes to parse", resources("cpu", "1e999999999"), []string{"status", "resources"}, sliceAnswer{inexact: true}},
		{"not a resource name", resources("a b", "1"), []string{"status", "resources"}, sliceAnswer{inexact: true}},
		{"an empty list", []any{}, []string{"status", "storageClasses"}, sliceAnswer{}},
		{"a class without a name", []any{map[string]any{"default": true}, map[string]any{"storageClassName": "fast"}, "slow"}, []string{"status", "storageClasses"}, sliceAnswer{storageClasses: []namedClass{{name: "fast"}}, inexact: true}},
		{"a class of a later Liqo", []any{map[string]any{"ingressClassName": "nginx", "more": "x"}}, []string{"status", "ingressClasses"}, sliceAnswer{ingressClasses: []namedClass{{name: "nginx"}}}},
		{"a default that is not a boolean", []any{map[string]any{"loadBalancerClassName": "lb", "default": "yes"}}, []string{"status", "loadBalancerClasses"}, sliceAnswer{inexact: true}},
		{"a label that is not a string", map[string]any{"a": int64(1)}, []string{"status", "nodeLabels"}, sliceAnswer{nodeLabels: map[string]string{"a": ""}, inexact: true}},
		{"an unknown verdict", []any{map[string]any{"type": "Resources", "status": "Maybe"}}, []string{"status", "conditions"}, sliceAnswer{inexact: true}},
		{"a reason that is not a string", []any{map[string]any{"type": "Resources", "status": "Denied", "reason": int64(1)}}, []string{"status", "conditions"}, sliceAnswer{verdict: denied, inexact: true}},
		{
			"two verdicts",
			[]any{map[string]any{"type": "Resources", "status": "Denied"}, map[string]any{"type": "Resources", "status": "Accepted"}}, []string{"status", "conditions"},
			sliceAnswer{verdict: denied, inexact: true},
		},
		{"conditions of the wrong type", []any{"Resources", int64(1), map[string]any{"type": int64(1)}}, []string{"status", "conditions"}, sliceAnswer{}},
	} {
		if diff := cmp.Diff(tc.want, readAnswer(at(t, tc.value, tc.path...)), cmp.AllowUnexported(sliceAnswer{}, namedClass{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestAnswersDifferInEachOfTheirParts(t *testing.T) {
	a := sliceAnswer{
		verdict: accepted, reason: "r", message: "m", resources: capacity.Amounts{"cpu": 1}, storageClasses: []namedClass{{"s", true}},
		ingressClasses: []namedClass{{"i", true}}, loadBalancerClasses: []namedClass{{"l", true}},
		nodeLabels: map[string]string{"a": "b"}, nodeSelector: map[string]string{"c": "d"},
	}
	for i, change := range []func(*sliceAnswer){
		func(a *sliceAnswer) { a.verdict = denied },
		func(a *sliceAnswer) { a.reason = "" },
		func(a *sliceAnswer) { a.message = "" },
		func(a *sliceAnswer) { a.resources = capacity.Amounts{"cpu": 1, "memory": 0} },
		func(a *sliceAnswer) { a.storageClasses = []namedClass{{"s", false}} },
		func(a *sliceAnswer) { a.ingressClasses = nil },
		func(a *sliceAnswer) { a.loadBalancerClasses = slices.Repeat(a.loadBalancerClasses, 2) },
		func(a *sliceAnswer) { a.nodeLabels = map[string]string{"a": ""} },
		func(a *sliceAnswer) { a.nodeSelector = nil },
		func(a *sliceAnswer) { a.inexact = true },
	} {
		b := a
		change(&b)
		if equal(a, b) {
			t.Errorf("equal does not see change %d", i)
		}
	}
	if !equal(sliceAnswer{}, sliceAnswer{resources: capacity.Amounts{}, storageClasses: []namedClass{}, nodeLabels: map[string]string{}}) {
		t.Error("an empty list and an absent one are not equal")
	}
}

func TestItsOwnAnswersAreToldFromOthers(t *testing.T) {
	many := capacity.Amounts{}
	for i := range maxAnswered + 1 {
		many[fmt.Sprint("example.com/r", i)] = 1
	}
	for _, tc := range []struct {
		name string
		sliceAnswer
		want bool
	}{
		{"ours", sliceAnswer{verdict: accepted, reason: "ProfferCapped", resources: capacity.Amounts{"cpu": 1}}, true},
		{"Liqo's", sliceAnswer{verdict: accepted, reason: "ResourceSliceResourcesAccepted"}, false},
		{"none", sliceAnswer{}, false},
		{"more resources than an answer can have", sliceAnswer{verdict: accepted, reason: "ProfferCapped", resources: many}, false},
	} {
		if got := tc.ours(); got != tc.want {
			t.Errorf("%s: ours is %v, want %v", tc.name, got, tc.want)
		}
	}
}
