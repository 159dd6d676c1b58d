package policy

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

func TestReadyNamesWhatIsCertainlyASlip(t *testing.T) {
	const offering = "The policy decides what 1 consumer is offered."
	for spec, want := range map[string]string{
		"{offer: {fixed: {cpu: 2, memory: 16Gi, pods: 20}}}":                                                                                                        "",
		"{offer: {fixed: {cpu: 2, memory: 1Mi, pods: 1, storage: 0}}}":                                                                                              "",
		"{offer: {fixed: {cpu: 2, memory: 16, pods: 20}}}":                                                                                                          "spec.offer.fixed[memory] is 16 bytes",
		"{offer: {nodes: {}, max: {memory: 64k}, reserve: {memory: 8}}}":                                                                                            "spec.offer.reserve[memory] is 8 bytes, spec.offer.max[memory] is 64k bytes",
		"{class: gold, offer: {nodes: {}}, slices: {defaults: {storage: 10}}}":                                                                                      "spec.slices.defaults[storage] is 10 bytes",
		"{offer: {fixed: {cpu: 4m, memory: 16Gi}}}":                                                                                                                 "spec.offer.fixed[cpu] is 4m, less than a hundredth of a CPU",
		"{offer: {nodes: {}, max: {cpu: 10m, pods: 0}}}":                                                                                                            "spec.offer.max[pods] is 0, so that no pod can use the rest",
		"{offer: {fixed: {cpu: 2, pods: 0}}}":                                                                                                                       "spec.offer.fixed[pods] is 0, so that no pod can use the rest",
		"{offer: {nodes: {}, max: {cpu: 0, pods: 0}}}":                                                                                                              "",
		"{offer: {fixed: {cpu: 2}}, overrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {pods: 0, cpu: 1}}}]}":                                               "spec.overrides[0].offer.max[pods] is 0, so that no pod can use the rest",
		"{offer: {fixed: {cpu: 2}}, overrides: [{consumers: {clusterIDs: [rome]}, offer: {max: {memory: 4}}}]}":                                                     "spec.overrides[0].offer.max[memory] is 4 bytes",
		"{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 2}}, overrides: [{consumers: {clusterIDs: [rome, milan]}, offer: {fixed: {cpu: 4}}}]}":              "spec.overrides[0] is for milan, which spec.consumers does not select",
		"{consumers: {selector: {matchLabels: {tier: gold}}}, offer: {fixed: {cpu: 2}}, overrides: [{consumers: {clusterIDs: [milan]}, offer: {fixed: {cpu: 4}}}]}": "",
	} {
		object := &v1alpha1.ResourcePolicy{}
		object.Name = "p"
		test.Must(t, yaml.UnmarshalStrict([]byte("spec: "+spec), object))
		p := Of(object, nil)
		if len(p.Problems) > 0 {
			t.Fatalf("%s: %s", spec, strings.Join(p.Problems, "; "))
		}
		if want != "" {
			want = " Probably a slip: " + want + "."
		}
		if _, got := Ready(p, &offer.Report{Count: 1}); got != offering+want {
			t.Errorf("%s: got %q, want %q", spec, got, offering+want)
		}
	}
}

// The author of a policy chooses how many overrides it has.
func TestOnlyTheSlipsThatAreNamedAreWritten(t *testing.T) {
	ids := func(prefix string) (ids []v1alpha1.ClusterID) {
		for i := range 256 {
			ids = append(ids, v1alpha1.ClusterID(fmt.Sprintf("%s-%d", prefix, i)))
		}
		return ids
	}
	spec := &v1alpha1.ResourcePolicySpec{Consumers: &v1alpha1.Consumers{ClusterIDs: ids("selected")}}
	for range 64 {
		spec.Overrides = append(spec.Overrides, v1alpha1.Override{Consumers: v1alpha1.Consumers{ClusterIDs: ids("other")}})
	}
	if got := slipsIn(spec); got.count != 64*256 || len(got.first) != kube.MaxNamed {
		t.Errorf("%d slips, and %d texts", got.count, len(got.first))
	}
	if n := testing.AllocsPerRun(1, func() { slipsIn(spec) }); n > 2000 {
		t.Errorf("%v allocations", n)
	}
}
