package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/config"
	"proffer.dev/proffer/internal/kube"
)

// Visit calls f with a pointer to each value in a spec, outer values first, and with the tag `text` of its
// field. The tag says what a plain string is: a class, a host, or a filter; other values say it by their
// type. Visit goes into a value if f returns true, but never into an amount. f may change each value except
// the keys of maps.
//
// What has to know every field of a policy visits them, so that a new field needs no line there.
func Visit(spec any, f func(at any, text string) (into bool)) {
	visit(reflect.ValueOf(spec).Elem(), "", f)
}

func visit(v reflect.Value, text string, f func(at any, text string) bool) {
	if _, amount := reflect.TypeAssert[json.Marshaler](v.Addr()); !f(v.Addr().Interface(), text) || amount {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), text, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), text, f)
		}
	case reflect.Map:
		byText := func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }
		for _, key := range slices.SortedFunc(v.Seq(), byText) {
			visit(copyOf(key), text, f)
			value := copyOf(v.MapIndex(key))
			// The map may have other readers: it is written only if f changes it.
			if visit(value, text, f); value.Interface() != v.MapIndex(key).Interface() {
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			visit(value, field.Tag.Get("text"), f)
		}
	default:
	}
}

func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// FilterOf returns the filter that a value of a spec is, empty for none. A filter of nodes and one of consumers
// differ, whatever their text. The arguments are those of the function that Visit calls.
func FilterOf(at any, text string) string {
	if filter, plain := at.(*string); plain && *filter != "" && strings.HasSuffix(text, "filter") {
		return text + " " + *filter
	}
	return ""
}

// FiltersOf returns the different filters of a policy, sorted.
func FiltersOf(spec *v1alpha1.ResourcePolicySpec) []string {
	var all []string
	Visit(spec, func(at any, text string) bool {
		if filter := FilterOf(at, text); filter != "" {
			all = append(all, filter)
		}
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// schema is the part of a schema of a CRD that bounds sizes.
type schema struct {
	Properties                         map[string]*schema
	AdditionalProperties, Items        *schema
	MaxProperties, MaxItems, MaxLength *int
}

// specSchema returns the schema of spec in the CRD.
var specSchema = sync.OnceValues(func() (*schema, error) {
	var crd struct {
		Spec struct {
			Versions []struct{ Schema map[string]*schema }
		}
	}
	if err := yaml.Unmarshal([]byte(config.ResourcePolicies), &crd); err != nil {
		return nil, err
	}
	return crd.Spec.Versions[0].Schema["openAPIV3Schema"].Properties["spec"], nil
})

// Sizes holds the first list or map of a spec, and the first text, that is larger than the CRD allows, and
// nil for none. CEL bounds what is not in the schema: keys, and selectors.
type Sizes struct{ List, Text error }

// SizesOf checks a spec that the API server has not checked.
func SizesOf(spec *v1alpha1.ResourcePolicySpec) (s Sizes, err error) {
	bounds, err := specSchema()
	if err != nil {
		return s, err
	}
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	s.check(value, bounds, field.NewPath("spec"))
	return s, err
}

func (s *Sizes) check(value any, bounds *schema, at *field.Path) {
	if bounds == nil {
		return
	}
	switch v := value.(type) {
	case string:
		s.Text = cmp.Or(s.Text, tooLarge(at, utf8.RuneCountInString(v), bounds.MaxLength, "characters"))
	case []any:
		s.List = cmp.Or(s.List, tooLarge(at, len(v), bounds.MaxItems, "elements"))
		for i := range v {
			s.check(v[i], bounds.Items, at.Index(i))
		}
	case map[string]any:
		s.List = cmp.Or(s.List, tooLarge(at, len(v), bounds.MaxProperties, "entries"))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			s.check(v[key], cmp.Or(bounds.Properties[key], bounds.AdditionalProperties), at.Child(key))
		}
	}
}

func tooLarge(at *field.Path, size int, most *int, of string) error {
	if most == nil || size <= *most {
		return nil
	}
	return fmt.Errorf("%s has %d %s: write at most %d", kube.Shorten(at.String(), kube.MaxShown), size, of, *most)
}
