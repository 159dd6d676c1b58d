package slice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// stripped returns the object as a watch keeps it.
func stripped(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(u.Object)
	test.Must(t, err)
	return decodedFrom(t, text)
}

// at returns a slice with a value of any type in the field at this path.
func at(t testing.TB, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	test.Must(t, unstructured.SetNestedField(u.Object, value, path...))
	return u
}

// atNoon is an arbitrary time.
var atNoon = time.Unix(1_700_000_100, 0)

// comparing compares slices and answers by their content, without the object that they were read
// from.
var comparing = cmp.Options{cmp.AllowUnexported(slice{}, sliceAnswer{}, namedClass{}), cmpopts.IgnoreFields(slice{}, "object"), cmpopts.EquateEmpty()}

func TestASliceIsReadFromLiqosOwnType(t *testing.T) {
	object := kubetest.Unstructured(t, kubetest.Slice("s", func(s *authv1beta1.ResourceSlice) {
		s.Spec.Resources = nodestest.List("cpu", "1500m", "memory", "1Gi", "pods", "10", "nvidia.com/gpu", "0")
		s.Status.Conditions = append(s.Status.Conditions, kubetest.Condition("Resources", "Accepted"))
		s.Status.Resources = nodestest.List("cpu", "1", "memory", "1G")
		s.Status.StorageClasses = []corev1beta1.StorageType{{StorageClassName: "fast", Default: true}, {StorageClassName: "slow"}}
		s.Status.IngressClasses = []corev1beta1.IngressType{{IngressClassName: "nginx"}}
		s.Status.LoadBalancerClasses = []corev1beta1.LoadBalancerType{{LoadBalancerClassName: "example.com/internal", Default: true}}
		s.Status.NodeLabels, s.Status.NodeSelector = map[string]string{"tier": "gold"}, map[string]string{"dedicated": "liqo"}
	}))
	want := slice{
		key: "default/s", namespace: "default", name: "s", uid: "uid-of-s", created: 1_700_000_000, consumer: "rome", class: "gold",
		request:  capacity.Amounts{"cpu": 1500, "memory": 1 << 30, "pods": 10, "nvidia.com/gpu": 0},
		labels:   object.GetLabels(),
		originOK: true, authenticated: true,
		answer: sliceAnswer{
			verdict: accepted, reason: "Because", message: "as Liqo says", resources: capacity.Amounts{"cpu": 1000, "memory": 1e9},
			storageClasses: []namedClass{{"fast", true}, {"slow", false}}, ingressClasses: []namedClass{{"nginx", false}},
			loadBalancerClasses: []namedClass{{"example.com/internal", true}},
			nodeLabels:          map[string]string{"tier": "gold"}, nodeSelector: map[string]string{"dedicated": "liqo"},
		},
	}
	for name, u := range map[string]*unstructured.Unstructured{"whole": object, "stripped": stripped(t, object)} {
		got := parseSlice(u)
		if diff := cmp.Diff(want, got, comparing); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.object != u || got.version() != "7" {
			t.Errorf("%s: the slice does not hold the object that was read", name)
		}
	}
}

func TestWhatASliceSaysDecides(t *testing.T) {
	for _, tc := range []struct {
		name string
		with func(*authv1beta1.ResourceSlice)
		want func(*slice)
	}{
		{"an ordinary slice", func(*authv1beta1.ResourceSlice) {}, func(*slice) {}},
		{"without a consumer yet", func(s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil }, func(s *slice) { s.consumer = "" }},
		{"without a class", func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "" }, func(s *slice) { s.class = "" }},
		{"not replicated", func(s *authv1beta1.ResourceSlice) { s.Labels[liqo.ReplicatedLabel] = "false" },
			func(s *slice) { s.originOK, s.labels[liqo.ReplicatedLabel] = false, "false" }},
		{"without an origin", func(s *authv1beta1.ResourceSlice) { delete(s.Labels, liqo.OriginIDLabel) },
			func(s *slice) { s.originOK = false; delete(s.labels, liqo.OriginIDLabel) }},
		{"with a label of its own", func(s *authv1beta1.ResourceSlice) { s.Labels["team"] = "a" }, func(s *slice) { s.labels["team"] = "a" }},
		{"not yet authenticated", func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil }, func(s *slice) { s.authenticated = false }},
		{
			"authentication denied",
			func(s *authv1beta1.ResourceSlice) {
				s.Status.Conditions = []authv1beta1.ResourceSliceCondition{kubetest.Condition("Authentication", "Denied"), kubetest.Condition("Authentication", "Accepted")}
			},
			func(s *slice) { s.authenticated = false },
		},
		{"being deleted", func(s *authv1beta1.ResourceSlice) { s.DeletionTimestamp = new(metav1.Now()) }, func(s *slice) { s.deleting = true }},
		{"without a request", func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = nil }, func(s *slice) { s.request = nil }},
	} {
		want := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s")))
		tc.want(&want)
		got := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s", tc.with)))
		if diff := cmp.Diff(want, got, comparing); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		usual := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s")))
		if same(&usual, &got) != cmp.Equal(usual, got, comparing) {
			t.Errorf("%s: same and cmp.Equal disagree", tc.name)
		}
	}
}

func TestTheClassInTheStatusComesBeforeThatInTheSpec(t *testing.T) {
	for _, tc := range []struct {
		status any
		want   string
	}{{"silver", "silver"}, {"", "gold"}, {int64(7), "gold"}} {
		if got := parseSlice(at(t, tc.status, "status", "class")).class; got != tc.want {
			t.Errorf("%v in the status: %q, want %q", tc.status, got, tc.want)
		}
	}
}

func TestARequestIsReadWhateverItAsksFor(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, tc := range []struct {
		name     string
		asked    map[string]any
		want     capacity.Amounts
		problems []string
	}{
		{"nothing", map[string]any{}, nil, nil},
		{"0", map[string]any{"cpu": "0", "memory": int64(0), "nvidia.com/gpu": int64(0)}, capacity.Amounts{"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}, nil},
		{"numbers", map[string]any{"cpu": int64(2), "pods": 10.0}, capacity.Amounts{"cpu": 2000, "pods": 10}, nil},
		{"parts of what is whole", map[string]any{"cpu": "0.0005", "nvidia.com/gpu": "500m", "pods": 0.5}, nil, []string{
			"asks for 0.0005 cpu: " + v1alpha1.AmountTooFineCPU, "asks for 500m nvidia.com/gpu: " + v1alpha1.AmountNotWhole,
			"asks for 0.5 pods: " + v1alpha1.AmountNotWhole,
		}},
		{"1.1Gi, as a person and as a typed client write it", map[string]any{"memory": "1.1Gi", "ephemeral-storage": "1181116006400m"}, capacity.Amounts{"memory": 1181116007, "ephemeral-storage": 1181116007}, nil},
		{"bytes without their unit", map[string]any{"memory": int64(4), "storage": "500m", "hugepages-2Mi": "1048575"}, nil, []string{
			"asks for 1048575 hugepages-2Mi: less than 1Mi: write an amount with its unit, such as 4Gi",
			"asks for 4 memory: less than 1Mi: write an amount with its unit, such as 4Gi", "asks for 500m storage: less than 1Mi: write an amount with its unit, such as 4Gi",
		}},
		{"1Mi", map[string]any{"memory": "1Mi", "ephemeral-storage": "0"}, capacity.Amounts{"memory": 1 << 20, "ephemeral-storage": 0}, nil},
		{"names as nobody offers them", map[string]any{"cpus": "4", "gpu": "1", "example": "1"}, nil, []string{
			`asks for the resource "cpus": ` + v1alpha1.NameProblem("cpus"), `asks for the resource "example": ` + v1alpha1.NameProblem("example"),
			`asks for the resource "gpu": ` + v1alpha1.NameProblem("gpu"),
		}},
		{"2^63-1", map[string]any{"memory": "9223372036854775807"}, capacity.Amounts{"memory": math.MaxInt64}, nil},
		{"2^63", map[string]any{"cpu": "9223372036854775808", "memory": "9223372036854775808"}, nil, []string{
			"asks for 9223372036854775808 cpu: " + v1alpha1.AmountTooLarge, "asks for 9223372036854775808 memory: " + v1alpha1.AmountTooLarge,
		}},
		{"1e100", map[string]any{"cpu": "1e100", "memory": "1e100", "pods": 1e100}, nil, []string{
			"asks for 1e100 cpu: " + v1alpha1.AmountNotAQuantity, "asks for 1e100 memory: " + v1alpha1.AmountNotAQuantity,
			`asks for "1` + strings.Repeat("0", 60) + `..." pods: ` + v1alpha1.AmountNotAQuantity,
		}},
		{"negative", map[string]any{"cpu": "-1", "memory": "1Gi"}, capacity.Amounts{"memory": 1 << 30}, []string{"asks for -1 cpu: " + v1alpha1.AmountNegative}},
		{"-2^63 and less", map[string]any{"cpu": int64(math.MinInt64), "memory": "-1e99"}, nil, []string{
			"asks for -9223372036854775808 cpu: " + v1alpha1.AmountNegative, "asks for -1e99 memory: " + v1alpha1.AmountNegative,
		}},
		{"an exponent that would take minutes to parse", map[string]any{"cpu": "1e999999999", "memory": "1e-999999999"}, nil, []string{
			"asks for 1e999999999 cpu: " + v1alpha1.AmountNotAQuantity, "asks for 1e-999999999 memory: " + v1alpha1.AmountNotAQuantity,
		}},
		{"not a quantity", map[string]any{"cpu": "much", "memory": "", "pods": true}, nil, []string{
			"asks for much cpu: " + v1alpha1.AmountNotAQuantity, `asks for "" memory: ` + v1alpha1.AmountNotAQuantity,
			"asks for true pods: " + v1alpha1.AmountNotAQuantity,
		}},
		{"a line break", map[string]any{"cpu": "1\nmemory"}, nil, []string{`asks for "1\nmemory" cpu: ` + v1alpha1.AmountNotAQuantity}},
		{"ten thousand digits", map[string]any{"cpu": strings.Repeat("9", 10_000)}, nil, []string{
			`asks for "` + strings.Repeat("9", 61) + `..." cpu: ` + v1alpha1.AmountNotAQuantity,
		}},
		{"an empty resource name", map[string]any{"": "1"}, nil, []string{`asks for the resource "": write a name such as cpu, memory or nvidia.com/gpu`}},
		{"a name that imitates another", map[string]any{"c\u0440u": "1"}, nil, []string{`asks for the resource "c\u0440u": write a name such as cpu, memory or nvidia.com/gpu`}},
		{"a resource name with a line break", map[string]any{"cpu\nmemory": "1"}, nil, []string{`asks for the resource "cpu\nmemory": write a name such as cpu, memory or nvidia.com/gpu`}},
		{"a resource name of 10,000 characters", map[string]any{long: "1"}, nil, []string{
			`asks for the resource "` + long[:61] + `...": write a name such as cpu, memory or nvidia.com/gpu`,
		}},
		{"five problems", map[string]any{"x.y/a": "-1", "x.y/b": "-1", "x.y/c": "-1", "x.y/d": "-1", "x.y/e": "-1", "x.y/f": "1"}, capacity.Amounts{"x.y/f": 1}, []string{
			"asks for -1 x.y/a: " + v1alpha1.AmountNegative, "asks for -1 x.y/b: " + v1alpha1.AmountNegative,
			"asks for -1 x.y/c: " + v1alpha1.AmountNegative, "and 2 more",
		}},
	} {
		got := parseSlice(at(t, tc.asked, "spec", "resources"))
		if diff := cmp.Diff(tc.want, got.request, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.problems, got.problems); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestARequestIsShownAsItWasWritten(t *testing.T) {
	many, first := map[string]any{}, map[string]string{}
	for i := range 500 {
		name := fmt.Sprintf("example.com/r%03d", i)
		if many[name] = "1"; i < holding.MaxRequested {
			first[name] = "1"
		}
	}
	for name, tc := range map[string]struct {
		asked any
		want  map[string]string
	}{
		"valid":               {map[string]any{"cpu": "500m", "memory": "1.50Gi"}, map[string]string{"cpu": "500m", "memory": "1.50Gi"}},
		"a number":            {map[string]any{"cpu": 0.5, "memory": int64(16)}, map[string]string{"cpu": "0.5", "memory": "16"}},
		"hexadecimal":         {map[string]any{"cpu": "0.5", "memory": "0x10"}, map[string]string{"cpu": "0.5", "memory": "0x10"}},
		"a misspelt name":     {map[string]any{"cpus": "4"}, map[string]string{"cpus": "4"}},
		"half a device":       {map[string]any{"nvidia.com/gpu": "500m"}, map[string]string{"nvidia.com/gpu": "500m"}},
		"what is no quantity": {map[string]any{"cpu": true, "memory": "a\u200b"}, map[string]string{"cpu": "true", "memory": "a\u200b"}},
		"a long text":         {map[string]any{"cpu": strings.Repeat("9", 10_000)}, map[string]string{"cpu": strings.Repeat("9", 61) + "..."}},
		"500 resources":       {many, first},
		"nothing":             {map[string]any{}, nil},
		"something else":      {"4 cpu", nil},
	} {
		d := aLeader(t, parseSlice(stripped(t, at(t, tc.asked, "spec", "resources")))).decider
		for s := range d.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) }).All {
			if diff := cmp.Diff(tc.want, s.Written(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if (s.Problem != "") != s.Invalid || !strings.Contains(s.Because(), s.Problem) {
				t.Errorf("%s: the problem is %q, and the answer %q", name, s.Problem, s.Because())
			}
		}
	}
}

func TestAnotherTextOfTheSameAmountIsAChange(t *testing.T) {
	half, same := known(t, "s", "a", 1, asking("500m")), at(t, map[string]any{"cpu": "0.5", "memory": "1Gi"}, "spec", "resources")
	same.SetUID("a")
	same.SetResourceVersion("2")
	cache := newGrantCache()
	if !cache.set(half) || !cache.set(parseSlice(same)) {
		t.Error("it is no change")
	}
}

func TestARequestOf500ResourcesIsCutAndSaysSo(t *testing.T) {
	asked := map[string]any{}
	for i := range 500 {
		asked[fmt.Sprintf("example.com/r%03d", i)] = "1"
	}
	s := parseSlice(at(t, asked, "spec", "resources"))
	if diff := cmp.Diff([]string{"asks for 500 resources: write at most 64"}, s.problems); diff != "" {
		t.Error(diff)
	}
	if len(s.request) != 64 || s.request["example.com/r000"] != 1 {
		t.Errorf("read %d resources, want the first 64", len(s.request))
	}
}

func TestWrongTypesAnywhereAreTakenForNothing(t *testing.T) {
	usual := parseSlice(kubetest.Unstructured(t, kubetest.Slice("s")))
	for _, tc := range []struct {
		path []string
		want func(*slice)
	}{
		{[]string{"metadata", "creationTimestamp"}, func(s *slice) { s.created = 0 }},
		{[]string{"metadata", "deletionTimestamp"}, func(*slice) {}},
		{[]string{"metadata", "annotations"}, func(*slice) {}},
		{[]string{"metadata", "labels"}, func(s *slice) { s.originOK, s.labels = false, nil }},
		{[]string{"spec", "class"}, func(s *slice) { s.class = "" }},
		{[]string{"spec", "consumerClusterID"}, func(s *slice) { s.consumer = "" }},
		{[]string{"spec", "csr"}, func(*slice) {}},
		{[]string{"status", "conditions"}, func(s *slice) { s.authenticated = false }},
		{[]string{"status", "authParams"}, func(*slice) {}},
		{[]string{"status", "resources"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status", "storageClasses"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status", "ingressClasses"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status", "loadBalancerClasses"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status", "nodeLabels"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status", "nodeSelector"}, func(s *slice) { s.answer.inexact = true }},
		{[]string{"status"}, func(s *slice) { s.authenticated = false }},
		{[]string{"spec", "resources"}, func(s *slice) {
			s.request, s.problems = nil, []string{"spec.resources is not a map: write quantities by resource, such as cpu: 2"}
		}},
		{[]string{"spec"}, func(s *slice) { s.class, s.consumer, s.request = "", "", nil }},
	} {
		want := usual
		tc.want(&want)
		if diff := cmp.Diff(want, parseSlice(stripped(t, at(t, int64(7), tc.path...))), comparing); diff != "" {
			t.Errorf("a number for %v: %s", tc.path, diff)
		}
	}
}

// anyValue draws any JSON value. The names that parsing depends on are frequent among the keys.
func anyValue(depth int) *rapid.Generator[any] {
	words := rapid.SampledFrom([]string{
		"type", "status", "Resources", "Authentication", "Accepted", "Denied", "reason", "message", "cpu", "memory", "default",
		"storageClassName", "lastTransitionTime", "1", "-1", "1e100", "1e-999999999", "1e999999999", "", "\x00", "nvidia.com/gpu", "a b",
	})
	scalar := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.Bool(), toAny), rapid.Map(rapid.Int64(), toAny), rapid.Map(rapid.Float64Range(-1e300, 1e300), toAny),
		rapid.Map(words, toAny), rapid.Map(rapid.String(), toAny),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(words, anyValue(depth-1), 0, 6), func(m map[string]any) any { return m }),
	)
}

func toAny[T any](v T) any { return v }

func TestWhateverASliceHoldsItIsReadAndWritten(t *testing.T) {
	u := kubetest.Unstructured(t, kubetest.Slice("s"))
	rapid.Check(t, func(t *rapid.T) {
		u := u.DeepCopy()
		for _, field := range []string{"resources", "class", "consumerClusterID"} {
			_ = unstructured.SetNestedField(u.Object, anyValue(1).Draw(t, field), "spec", field)
		}
		for _, field := range []string{"conditions", "resources", "storageClasses", "ingressClasses", "loadBalancerClasses", "nodeLabels", "nodeSelector"} {
			_ = unstructured.SetNestedField(u.Object, anyValue(2).Draw(t, field), "status", field)
		}
		if rapid.Bool().Draw(t, "another status") {
			u.Object["status"] = anyValue(2).Draw(t, "status")
		}
		before := u.DeepCopy()
		s := parseSlice(u)
		for name, v := range s.request {
			if v < 0 || name == "" || name == "a b" {
				t.Fatalf("the request has %d of %q", v, name)
			}
		}
		if len(s.problems) > maxProblems+1 {
			t.Fatalf("%d problems, want at most %d", len(s.problems), maxProblems+1)
		}
		want := sliceAnswer{verdict: denied, reason: "Denied", message: "no"}
		if got := readAnswer(want.writeTo(u, time.Unix(1_700_000_100, 0))); !equal(want, got) {
			t.Fatalf("wrote %+v, read %+v", want, got)
		}
		if diff := cmp.Diff(before, u); diff != "" {
			t.Fatalf("the object that was read changed: %s", diff)
		}
	})
}

func TestAnEmptyObjectIsRead(t *testing.T) {
	for _, u := range []*unstructured.Unstructured{{}, {Object: map[string]any{}}} {
		if diff := cmp.Diff(slice{}, parseSlice(u), comparing); diff != "" {
			t.Error(diff)
		}
		if got := readAnswer(sliceAnswer{verdict: denied}.writeTo(u, time.Now())); got.verdict != denied {
			t.Errorf("wrote a denial, read verdict %q", got.verdict)
		}
	}
}

// decodedFrom decodes a slice from a stream, like a watch.
func decodedFrom(t testing.TB, text []byte) *unstructured.Unstructured {
	t.Helper()
	out, err := decodeSlice(jsonstream.NewReader(bytes.NewReader(text)))
	test.Must(t, err)
	return out
}

func TestARequestNarrowsNodesByLabels(t *testing.T) {
	const wrong = "the annotation proffer.dev/node-selector is not a list of labels: write at most 8, such as zone=a,disk=ssd"
	for text, want := range map[string]struct {
		nodes    map[string]string
		problems []string
	}{
		"":                                  {},
		"zone=a":                            {nodes: map[string]string{"zone": "a"}},
		"zone=a, example.com/disk=ssd":      {nodes: map[string]string{"zone": "a", "example.com/disk": "ssd"}},
		"zone":                              {problems: []string{wrong}},
		"zone in (a,b)":                     {problems: []string{wrong}},
		"zone!=a":                           {problems: []string{wrong}},
		"zone=a b":                          {problems: []string{wrong}},
		"zone=a,zone=b":                     {problems: []string{wrong}},
		"zone=a,":                           {problems: []string{wrong}},
		"a=,b=,c=,d=,e=,f=,g=,h=,i=":        {problems: []string{wrong}},
		"zone=" + strings.Repeat("a", 2000): {problems: []string{wrong}},
	} {
		s := parseSlice(stripped(t, at(t, map[string]any{"proffer.dev/node-selector": text, "other": "x"}, "metadata", "annotations")))
		if diff := cmp.Diff(want.nodes, s.nodes, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
		if diff := cmp.Diff(want.problems, s.problems, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}
