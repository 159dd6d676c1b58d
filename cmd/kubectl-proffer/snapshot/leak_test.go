package snapshot

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/config"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// fill sets every text of a value to its own path, and every key of a map. Lists and maps get one
// element.
func fill(v reflect.Value, path string) {
	switch at := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*at = resource.MustParse("7")
		return
	case *time.Time:
		*at = time.Unix(1_700_000_000, 0).UTC()
		return
	case *metav1.TypeMeta, *metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("<" + path + ">")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, path+"{}")
		fill(value, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), path+"."+f.Name)
			}
		}
	default: // A number names nobody.
	}
}

// What stays of a snapshot is an amount, a number, a time, or listed here.
func TestNothingButTheDocumentedNamesStays(t *testing.T) {
	var world rest.World
	fill(reflect.ValueOf(&world).Elem(), "")
	world.Nodes[0].Taints[0] = "<taint.key>=<taint.value>:NoSchedule"
	_, text := anonymised(t, world)
	var plain any
	test.Must(t, json.Unmarshal([]byte(text), &plain))
	got := regexp.MustCompile(`<[^<>]*>`).FindAllString(fmt.Sprint(plain), -1)
	slices.Sort(got)
	want := strings.Fields(`
		<.Answers.Policy> <.Answers.Resources{}>
		<.Consumers.Labels{}> <.Filters>
		<.Levels{}>
		<.NodeGroups.Given{}> <.Nodes.Allocatable{}> <.Nodes.Labels{}> <.Nodes.State>
		<.Offers.Class> <.Offers.LastPolicy> <.Offers.Policy> <.Offers.Reclaim> <.Offers.Resources{}>
		<.Pods.Requests{}>
		<.Policies.ObjectMeta.Name> <.Policies.Spec.Class>
		<.Policies.Spec.Consumers.Selector.MatchExpressions.Key>
		<.Policies.Spec.Consumers.Selector.MatchExpressions.Operator>
		<.Policies.Spec.Consumers.Selector.MatchLabels{}> <.Policies.Spec.Mode>
		<.Policies.Spec.Offer.External.Form> <.Policies.Spec.Offer.External.OnFailure>
		<.Policies.Spec.Offer.Fixed.Written> <.Policies.Spec.Offer.Fixed{}>
		<.Policies.Spec.Offer.Max.Written> <.Policies.Spec.Offer.MaxPercentages{}> <.Policies.Spec.Offer.Max{}>
		<.Policies.Spec.Offer.Nodes.Count> <.Policies.Spec.Offer.Nodes.Selector.MatchExpressions.Key>
		<.Policies.Spec.Offer.Nodes.Selector.MatchExpressions.Operator>
		<.Policies.Spec.Offer.Nodes.Selector.MatchLabels{}>
		<.Policies.Spec.Offer.Nodes.Tolerations.Effect> <.Policies.Spec.Offer.Nodes.Tolerations.Key>
		<.Policies.Spec.Offer.Nodes.Tolerations.Operator>
		<.Policies.Spec.Offer.Peers.Count> <.Policies.Spec.Offer.Peers.Selector.MatchExpressions.Key>
		<.Policies.Spec.Offer.Peers.Selector.MatchExpressions.Operator>
		<.Policies.Spec.Offer.Peers.Selector.MatchLabels{}> <.Policies.Spec.Offer.Percentages{}>
		<.Policies.Spec.Offer.Reserve.Written> <.Policies.Spec.Offer.Reserve{}>
		<.Policies.Spec.Offer.Resources>
		<.Policies.Spec.Overrides.Consumers.Selector.MatchExpressions.Key>
		<.Policies.Spec.Overrides.Consumers.Selector.MatchExpressions.Operator>
		<.Policies.Spec.Overrides.Consumers.Selector.MatchLabels{}>
		<.Policies.Spec.Overrides.Offer.Fixed.Written> <.Policies.Spec.Overrides.Offer.Fixed{}>
		<.Policies.Spec.Overrides.Offer.Max.Written>
		<.Policies.Spec.Overrides.Offer.MaxPercentages{}> <.Policies.Spec.Overrides.Offer.Max{}>
		<.Policies.Spec.Reclaim> <.Policies.Spec.Slices.Defaults.Written>
		<.Policies.Spec.Slices.Defaults{}> <.Policies.Spec.Slices.Fit> <.Policies.Spec.Slices.IngressClasses>
		<.Policies.Spec.Slices.LoadBalancerClasses> <.Policies.Spec.Slices.NodeKey> <.Policies.Spec.Slices.NodeLabels{}>
		<.Policies.Spec.Slices.NodeSelector{}> <.Policies.Spec.Slices.OnExcess> <.Policies.Spec.Slices.RequestKeys>
		<.Policies.Spec.Slices.StorageClasses> <.Policies.Status.Conditions.Reason>
		<.Policies.Status.Conditions.Status> <.Policies.Status.Conditions.Type>
		<.Policies.Status.OfferedResources>
		<.Proffer>
		<.Slices.Asked{}> <.Slices.Falling{}> <.Slices.GrantedBy> <.Slices.Granted{}>
		<.Slices.Labels{}> <.Slices.Nodes{}> <.Slices.Reclaim> <.Slices.Recorded{}> <.Slices.Used{}>
		<.Unavailable{}>
		<taint.key>
	`)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whoever adds a field to policies need not know that snapshots are anonymised.
func TestAFieldThatIsAddedToPoliciesIsAnonymised(t *testing.T) {
	type word string
	for _, tc := range []struct {
		added any
		tag   reflect.StructTag
	}{
		{"secret", ""},
		{"secret", `text:"node filter"`},
		{"secret:1", `text:"host"`},
		{word("secret"), ""},
		{[]string{"secret"}, ""},
		{map[string]string{"key": "secret"}, ""},
		{&struct{ Inner []word }{[]word{"secret"}}, ""},
		{v1alpha1.Labels{"key": "secret"}, ""},
		{&metav1.LabelSelector{MatchLabels: map[string]string{"key": "secret"}}, ""},
		{[]v1alpha1.ClusterID{"secret"}, ""},
		{&v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"secret"}, Filter: "secret"}, ""},
	} {
		spec := kubetest.SpecWith(tc.added, tc.tag)
		policy.Visit(spec, newAnonymiser().value)
		text, err := json.Marshal(spec)
		test.Must(t, err)
		if strings.Contains(string(text), "secret") {
			t.Errorf("a %T tagged %s stays: %s", tc.added, tc.tag, text)
		}
	}
}

// words returns the part of a value of this schema that holds words of the API, nil for none.
func words(schema map[string]any) any {
	if enum, ok := schema["enum"].([]any); ok {
		return enum[len(enum)-1]
	}
	properties, _ := schema["properties"].(map[string]any)
	out := map[string]any{}
	for name, of := range properties {
		if word := words(of.(map[string]any)); word != nil {
			out[name] = word
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// A word that is left out has its default, with which an evaluation may have another outcome.
func TestTheWordsOfPoliciesStay(t *testing.T) {
	var crd struct {
		Spec struct {
			Versions []struct{ Schema map[string]any }
		}
	}
	test.Must(t, yaml.Unmarshal([]byte(config.ResourcePolicies), &crd))
	schema := crd.Spec.Versions[0].Schema["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)
	written, err := json.Marshal(words(schema))
	test.Must(t, err)
	var before v1alpha1.ResourcePolicySpec
	test.Must(t, json.Unmarshal(written, &before))
	before.Catalog = nil
	after := before.DeepCopy()
	policy.Visit(after, newAnonymiser().value)
	after.Offer.External.Address = ""
	if diff := cmp.Diff(&before, after); diff != "" || before.Offer.Peers.Count == "" {
		t.Errorf("%s\n-before +after:\n%s", written, diff)
	}
}

// pods is the JSON of a snapshot with so many pods, each on one of a hundred nodes. It is made as it
// is read.
func pods(n int) io.Reader {
	i := 0
	return io.MultiReader(strings.NewReader(`{"version":1,"pods":[`), reader(func() string {
		if i == n {
			return ""
		}
		i++
		separator := ","
		if i == 1 {
			separator = ""
		}
		return fmt.Sprintf(`%s{"uid":"11111111-2222-3333-4444-%012d","node":"worker-%d","consumer":"rome","creator":"rome-batch",`+
			`"requests":{"cpu":"1500m","memory":"8Gi"}}`, separator, i, i%100)
	}), strings.NewReader(`]}`))
}

// reader reads the texts of a function until one is empty.
func reader(next func() string) io.Reader {
	r, w := io.Pipe()
	go func() {
		for text := next(); text != ""; text = next() {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
		_ = w.Close()
	}()
	return r
}

// heap notes the largest heap that is live while something is written to it.
type heap struct{ written, measured, most int }

func (h *heap) Write(p []byte) (int, error) {
	const every = 1 << 20
	if h.written += len(p); h.written-h.measured > every {
		h.measured = h.written
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.most = max(h.most, int(m.HeapAlloc))
	}
	return len(p), nil
}

func TestAnonymisingHoldsNoMorePodsThanOne(t *testing.T) {
	most := func(n int) int {
		h := &heap{}
		test.Must(t, Anonymise(h, pods(n)))
		if h.most == 0 {
			t.Fatalf("%d pods are only %d bytes", n, h.written)
		}
		return h.most
	}
	few, many := most(10_000), most(50_000)
	t.Logf("live heap: %d KiB with 10,000 pods, %d KiB with 50,000", few>>10, many>>10)
	if many > few+1<<20 {
		t.Errorf("the live heap grows from %d to %d bytes", few, many)
	}
}
