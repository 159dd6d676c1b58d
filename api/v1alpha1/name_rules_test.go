package v1alpha1_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
)

var nameRules = []rule{
	{
		name: "a name without a domain is one that Kubernetes has",
		valid: []string{
			amount("hugepages-2Mi", "4Mi"), amount("attachable-volumes-aws-ebs", "25"), amount("storage", "1Gi"),
			amount("ephemeral-storage", "1Gi"),
			amount("nvidia.com/gpu", "1"), amount("nvidia.com/mig-1g.5gb", "1"), amount("kubernetes.io/batch-cpu", "1"),
			amount("example.com/cpus", "1"),
		},
		invalid: amount("cpus", "4"),
		want:    `spec.offer.fixed[cpus]: Invalid value: "cpus": write cpu; a resource of your own has a domain, such as example.com/cpus`,
	},
	{
		name:    "a name that is like none",
		invalid: amount("widgets", "4"),
		want: `spec.offer.fixed[widgets]: Invalid value: "widgets": write cpu, memory, pods, storage, ephemeral-storage or hugepages-2Mi; ` +
			`a resource of your own has a domain, such as example.com/widgets`,
	},
}

// The test also shows that the suggested name does not depend on the order of a map.
func TestTheAPIServerAndTheOperatorAgreeOnNames(t *testing.T) {
	for name, want := range map[string]string{
		"cpu": "", "memory": "", "pods": "", "storage": "", "ephemeral-storage": "", "hugepages-1Gi": "",
		"attachable-volumes-csi-x": "", "example.com/a": "",
		"CPU": "cpu", "cpus": "cpu", "cpu_cores": "cpu", "cores": "cpu", "vcpu": "cpu", "mem": "memory",
		"memroy": "memory", "Memory": "memory", "RAM": "memory",
		"pod": "pods", "Storage": "storage", "ephemeral": "ephemeral-storage", "ephemeral_storage": "ephemeral-storage",
		"disk":      "ephemeral-storage",
		"hugepages": "hugepages-2Mi", "gpu": "nvidia.com/gpu", "GPUs": "nvidia.com/gpu", "nvidia-gpu": "nvidia.com/gpu",
		"meory": "cpu, memory, pods, storage, ephemeral-storage or hugepages-2Mi",
	} {
		problem := v1alpha1.NameProblem(corev1.ResourceName(name))
		if want != "" {
			want = fmt.Sprintf("write %s; a resource of your own has a domain, such as example.com/%s", want, name)
		}
		if problem != want {
			t.Errorf("%s: the operator says %q, want %q", name, problem, want)
		}
		refused := refusals(t, amount(name, "1"))
		var wantRefused []string
		if want != "" {
			wantRefused = []string{fmt.Sprintf("spec.offer.fixed[%s]: Invalid value: %q: %s", name, name, want)}
		}
		if diff := cmp.Diff(wantRefused, refused); diff != "" {
			t.Errorf("%s: refusals of the API server (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheRulesOnNamesApplyInEveryField(t *testing.T) {
	specs := map[string]string{
		"spec.offer.fixed":                       "offer: {fixed: {cpus: 4}}",
		"spec.offer.reserve":                     "offer: {nodes: {}, reserve: {cpus: 4}}",
		"spec.offer.max":                         "offer: {nodes: {}, max: {cpus: 4}}",
		"spec.offer.maxPercentages":              "offer: {nodes: {}, maxPercentages: {cpus: 4}}",
		"spec.offer.percentages":                 "offer: {nodes: {}, percentages: {cpus: 4}}",
		"spec.offer.resources":                   "offer: {nodes: {}, resources: [cpus]}",
		"spec.catalog.prices":                    fixedOffer + "\nclass: gold\ncatalog: {prices: {cpus: '4'}, currency: EUR}",
		"spec.overrides[0].offer.maxPercentages": "offer: {nodes: {}}\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {maxPercentages: {cpus: 4}}}]",
		"spec.overrides[1].offer.fixed":          fixedOffer + "\noverrides: [{consumers: {clusterIDs: [oslo]}, offer: {max: {cpu: 4}}}, {consumers: {clusterIDs: [rome]}, offer: {fixed: {cpus: 4}}}]",
		"spec.overrides[0].offer.max":            fixedOffer + "\noverrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {cpus: 4}}}]",
		"spec.slices.defaults":                   sliced("{defaults: {cpus: 4}}"),
	}
	tried := map[string]struct{}{}
	for field := range specs {
		tried[regexp.MustCompile(`\[\d]`).ReplaceAllString(field, "")] = struct{}{}
	}
	for _, field := range fieldsWithNames(reflect.TypeFor[v1alpha1.ResourcePolicySpec](), "spec") {
		if _, ok := tried[field]; !ok {
			t.Errorf("%s has names of resources, and is not tried", field)
		}
	}
	for field, spec := range specs {
		want := field + `[cpus]: Invalid value: "cpus": ` + v1alpha1.NameProblem("cpus")
		if diff := cmp.Diff([]string{want}, refusals(t, spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
}

// fieldsWithNames returns the fields of a type, and of the types in it, that hold names of resources.
func fieldsWithNames(of reflect.Type, at string) (fields []string) {
	switch of.Kind() {
	case reflect.Pointer:
		return fieldsWithNames(of.Elem(), at)
	case reflect.Slice:
		if of.Elem() == reflect.TypeFor[v1alpha1.ResourceName]() {
			return []string{at}
		}
		return fieldsWithNames(of.Elem(), at)
	case reflect.Map:
		if of.Key() == reflect.TypeFor[corev1.ResourceName]() {
			return []string{at}
		}
	case reflect.Struct:
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			below := at
			if name != "" {
				below += "." + name
			}
			fields = append(fields, fieldsWithNames(field.Type, below)...)
		}
	default:
	}
	return fields
}
