package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// completeSpecs returns valid specs that together set every field.
func completeSpecs(t *testing.T) map[string]*v1alpha1.ResourcePolicySpec {
	labels := &metav1.LabelSelector{
		MatchLabels:      map[string]string{"pool": "gold"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"north"}}},
	}
	byID := v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}, Filter: "consumer.labels.tier == 'gold'"}
	byLabel := v1alpha1.Consumers{Selector: labels}
	share := v1alpha1.PolicyOffer{
		Reserve: kubetest.Quantities("cpu", "1"), Percent: new(v1alpha1.Percent(150)),
		Percentages: v1alpha1.Percentages{"nvidia.com/gpu": 100}, MaxPercent: new(v1alpha1.Share(50)),
		MaxPercentages: v1alpha1.Shares{"nvidia.com/gpu": 25},
	}
	shareOfOne := v1alpha1.OverrideOffer{MaxPercent: new(v1alpha1.Share(60)), MaxPercentages: v1alpha1.Shares{"nvidia.com/gpu": 75}}
	nodes, seats, peers, morePeers := share, share, share, share
	nodes.Nodes = &v1alpha1.Nodes{
		Selector: labels, Filter: "node.name != 'n1'", Count: v1alpha1.NodeCountAllocatable,
		Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoExecute}},
	}
	seats.Nodes = &v1alpha1.Nodes{Selector: labels, Count: v1alpha1.NodeCountFree}
	peers.Peers = &v1alpha1.Peers{ClusterIDs: []v1alpha1.ClusterID{"oslo"}, Count: v1alpha1.NodeCountAllocatable, Depth: new(int32(3))}
	morePeers.Peers = &v1alpha1.Peers{Selector: labels}
	all := map[string]*v1alpha1.ResourcePolicySpec{}
	for name, of := range map[string]v1alpha1.PolicyOffer{
		"nodes": nodes, "nodes of seats": seats, "peers": peers, "more peers": morePeers, "fixed": {Fixed: kubetest.Quantities("cpu", "1")},
		"external": {External: &v1alpha1.External{
			Address: "plugin.liqo:6001", Form: v1alpha1.ExternalFormFlat, TimeoutSeconds: new(int32(7)), OnFailure: v1alpha1.OnFailureZero,
			TLS: &v1alpha1.ExternalTLS{CABundle: validAuthority(t), ServerName: "plugin.example.com"},
		}},
	} {
		of.Max, of.Resources = kubetest.Quantities("cpu", "8"), []v1alpha1.ResourceName{"cpu", "memory"}
		spec := &v1alpha1.ResourcePolicySpec{
			Class: "gold", Priority: 1, Mode: v1alpha1.ModeDryRun, Consumers: &byID, Offer: of,
			Overrides: []v1alpha1.Override{
				{Consumers: byID, Offer: v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "2")}},
				{Consumers: byLabel, Offer: v1alpha1.OverrideOffer{Max: kubetest.Quantities("cpu", "2")}},
			},
			UpdateThresholdPercent: new(int32(20)), Reclaim: v1alpha1.ReclaimRetain,
			Slices: &v1alpha1.Slices{
				OnExcess: v1alpha1.OnExcessDeny, Defaults: kubetest.Quantities("cpu", "1"), Filter: "request.age < duration('1h')",
				FilterMessage: "ask again", NodeLabels: v1alpha1.Labels{"tier": "gold"}, NodeSelector: v1alpha1.Labels{"pool": "gold"},
				EnforcePlacement: true, StorageClasses: []v1alpha1.ClassName{"fast"}, IngressClasses: []v1alpha1.ClassName{"nginx"},
				LoadBalancerClasses: []v1alpha1.ClassName{"internal"},
			},
			Catalog: &v1alpha1.Catalog{Hidden: true, ShowProviders: of.Peers != nil, CatalogWords: v1alpha1.CatalogWords{
				Title: "GPUs", URL: "https://example.com/gpu", Labels: v1alpha1.Labels{"region": "eu"},
				Prices: v1alpha1.Prices{"cpu": "0.021"}, Currency: "EUR", Period: v1alpha1.PeriodMonth,
			}},
		}
		if name == "more peers" {
			spec.Consumers = &byLabel
		}
		if name == "more peers" {
			spec.PausedConsumers = []v1alpha1.PausedConsumer{{ClusterID: "rome"}, {ClusterID: "oslo", Until: &metav1.Time{Time: time.Unix(1_800_000_000, 0)}}}
		}
		if name == "fixed" {
			spec.Mode, spec.PausedUntil = v1alpha1.ModePaused, &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
		}
		if name == "nodes of seats" {
			spec.Slices.Fit, spec.Slices.NodeKey = v1alpha1.FitNode, "example.com/name"
			spec.Slices.RequestKeys = []v1alpha1.LabelKey{"zone"}
		}
		if of.Nodes != nil || of.Peers != nil {
			spec.Overrides = append(spec.Overrides, v1alpha1.Override{Consumers: byLabel, Offer: shareOfOne})
		}
		all[name] = spec.DeepCopy()
	}
	return all
}

// eachEdit calls try once for each value of a spec that edit changes, with a copy in which it is changed. It
// leaves out what is inside of these types.
func eachEdit(t *testing.T, spec *v1alpha1.ResourcePolicySpec, edit func(v reflect.Value), try func(edited *v1alpha1.ResourcePolicySpec, of string), without ...any) {
	t.Helper()
	before, err := json.Marshal(spec)
	test.Must(t, err)
	for i, ended := 0, false; !ended; i++ {
		edited, n := spec.DeepCopy(), 0
		ended = true
		Visit(edited, func(at any, _ string) bool {
			if n++; n == i+1 {
				edit(reflect.ValueOf(at).Elem())
				ended = false
			}
			return n <= i && !slices.ContainsFunc(without, func(kind any) bool { return reflect.TypeOf(kind) == reflect.TypeOf(at) })
		})
		after, err := json.Marshal(edited)
		test.Must(t, err)
		if string(after) != string(before) { // Otherwise it is an outer value, or the key of a map.
			try(edited, cmp.Diff(spec, edited))
		}
	}
}

// A field that Parse ignores has no effect.
func TestParseIgnoresNoField(t *testing.T) {
	set := map[string]bool{}
	for name, spec := range completeSpecs(t) {
		markSet(reflect.TypeOf(*spec), reflect.ValueOf(*spec), "spec", set)
		of := func(spec *v1alpha1.ResourcePolicySpec) *v1alpha1.ResourcePolicy {
			return kubetest.Policy("p", func(s *v1alpha1.ResourcePolicySpec) { *s = *spec })
		}
		before, _, errs := Parse(of(spec))
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		eachEdit(t, spec, func(v reflect.Value) {
			switch v.Kind() {
			case reflect.String:
				v.SetString(v.String() + "x")
			case reflect.Int32:
				v.SetInt(v.Int() + 1)
			case reflect.Bool:
				v.SetBool(!v.Bool())
			default:
				switch at := v.Addr().Interface().(type) {
				case *v1alpha1.Quantity:
					at.Add(resource.MustParse("1"))
				case *metav1.Time:
					at.Time = at.Add(time.Hour)
				}
			}
		}, func(edited *v1alpha1.ResourcePolicySpec, what string) {
			if after, _, _ := Parse(of(edited)); cmp.Equal(before, after, byText) {
				t.Errorf("%s: Parse returns the same after\n%s", name, what)
			}
		})
	}
	for field, is := range set {
		// The last is for pods that run already.
		if !is && !strings.HasSuffix(field, ".Tolerations.TolerationSeconds") {
			t.Errorf("%s is not among the complete specs: set it there, so that a parser that ignores it is found", field)
		}
	}
}

// markSet notes for each field of a type whether the value, which may be absent, has it.
func markSet(of reflect.Type, v reflect.Value, path string, set map[string]bool) {
	if of.Implements(reflect.TypeFor[json.Marshaler]()) {
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		if v.IsValid() && !v.IsNil() {
			markSet(of.Elem(), v.Elem(), path, set)
		} else {
			markSet(of.Elem(), reflect.Value{}, path, set)
		}
	case reflect.Slice:
		markSet(of.Elem(), reflect.Value{}, path, set)
		for i := 0; v.IsValid() && i < v.Len(); i++ {
			markSet(of.Elem(), v.Index(i), path, set)
		}
	case reflect.Struct:
		for i := range of.NumField() {
			f, at := of.Field(i), path+"."+of.Field(i).Name
			var value reflect.Value
			if v.IsValid() {
				value = v.Field(i)
			}
			set[at] = set[at] || value.IsValid() && !value.IsZero()
			markSet(f.Type, value, at, set)
		}
	default:
	}
}

// The API server bounds what is stored. What it has not checked is bounded by the same schema, or refused by
// the parser; selectors are bounded by whoever counts them.
func TestEveryListAndTextOfASpecIsBounded(t *testing.T) {
	for name, spec := range completeSpecs(t) {
		if s, err := SizesOf(spec); err != nil || s != (Sizes{}) {
			t.Fatalf("%s: %v, %v", name, s, err)
		}
		eachEdit(t, spec, func(v reflect.Value) {
			switch v.Kind() {
			case reflect.String:
				v.SetString(strings.Repeat("x", 40_000))
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 300, 300))
			case reflect.Map:
				v.Set(reflect.MakeMap(v.Type()))
				for i := range 65 {
					v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", i)).Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem())
				}
			default:
			}
		}, func(edited *v1alpha1.ResourcePolicySpec, of string) {
			s, err := SizesOf(edited)
			test.Must(t, err)
			_, _, errs := Parse(kubetest.Policy("p", func(s *v1alpha1.ResourcePolicySpec) { *s = *edited }))
			if s == (Sizes{}) && len(errs) == 0 {
				t.Errorf("%s: nothing refuses\n%.2000s", name, of)
			}
		}, &metav1.LabelSelector{}, &corev1.Toleration{})
	}
}
