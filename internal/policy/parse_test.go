package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestParseReadsEveryField(t *testing.T) {
	p := kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) {
		*s = v1alpha1.ResourcePolicySpec{
			Class: "gold", Priority: -3, Mode: v1alpha1.ModeDryRun,
			Consumers: &v1alpha1.Consumers{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}},
			Offer: v1alpha1.PolicyOffer{
				Nodes: &v1alpha1.Nodes{
					Selector: &metav1.LabelSelector{
						MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}},
					},
					Filter:      "node.name != 'n1'",
					Count:       v1alpha1.NodeCountAllocatable,
					Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
				},
				Reserve:     kubetest.Quantities("cpu", "1500m"),
				Percent:     new(v1alpha1.Percent(150)),
				Percentages: map[corev1.ResourceName]v1alpha1.Percent{"nvidia.com/gpu": 100},
				Max:         kubetest.Quantities("memory", "16Gi"),
				MaxPercent:  new(v1alpha1.Share(33)), MaxPercentages: v1alpha1.Shares{"nvidia.com/gpu": 25},
				Resources: []v1alpha1.ResourceName{"cpu", "memory", "pods"},
			},
			Overrides: []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}, Filter: "consumer.labels.tier == 'gold'"},
				Offer: v1alpha1.OverrideOffer{
					Fixed: kubetest.Quantities("cpu", "8"), Max: kubetest.Quantities("pods", "5"),
					MaxPercent: new(v1alpha1.Share(100)), MaxPercentages: v1alpha1.Shares{"pods": 1},
				},
			}},
			UpdateThresholdPercent: new(int32(20)),
			Reclaim:                v1alpha1.ReclaimRetain,
			Slices: &v1alpha1.Slices{
				OnExcess: v1alpha1.OnExcessDeny, Defaults: kubetest.Quantities("cpu", "1"),
				Filter: "request.age < duration('1h')", FilterMessage: "ask again",
				NodeLabels: v1alpha1.Labels{"tier": "gold"}, NodeSelector: v1alpha1.Labels{"pool": "gold"}, EnforcePlacement: true,
				StorageClasses: []v1alpha1.ClassName{"fast", "slow", "fast"}, IngressClasses: []v1alpha1.ClassName{},
			},
		}
	})
	p.UID, p.Generation, p.CreationTimestamp = "u", 7, metav1.Unix(12, 0)
	got, _, errs := Parse(p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := &offer.Policy{
		Name: "gold", Version: "u/7", Created: 12, Class: "gold", Priority: -3, DryRun: true,
		Consumers: offer.Scope{Selector: selection.Of(labels.SelectorFromSet(labels.Set{"tier": "gold"}))},
		Nodes: &offer.Nodes{
			Selection: capacity.Selection{
				Selector:    mustParse(t, "zone"),
				Tolerations: selection.Tolerations(p.Spec.Offer.Nodes.Tolerations),
				Filters:     []capacity.NodeFilter{nodeFilter(t, "node.name != 'n1'")},
			},
			Count:       offer.Allocatable,
			Reserve:     capacity.Amounts{"cpu": 1500},
			Percent:     150,
			Percentages: map[string]int64{"nvidia.com/gpu": 100},
		},
		Max:       capacity.Amounts{"memory": 16 << 30},
		MaxShares: offer.Shares{Percent: 33, Percentages: map[string]int64{"nvidia.com/gpu": 25}},
		Resources: []string{"cpu", "memory", "pods"},
		Overrides: []offer.Override{{
			Consumers: offer.Scope{IDs: map[string]struct{}{"rome": {}}, Filters: []offer.ConsumerFilter{consumerFilter(t, "consumer.labels.tier == 'gold'")}},
			Fixed:     capacity.Amounts{"cpu": 8000}, Max: capacity.Amounts{"pods": 5},
			MaxShares: offer.Shares{Percent: 100, Percentages: map[string]int64{"pods": 1}},
		}},
		ThresholdPercent: 20, Reclaim: offer.Retain,
		Slices: offer.Slices{
			DenyExcess: true, Defaults: capacity.Amounts{"cpu": 1000},
			Filters: []offer.SliceFilter{sliceFilter(t, "request.age < duration('1h')")}, FilterMessage: "ask again",
			NodeLabels: map[string]string{"tier": "gold"}, NodeSelector: map[string]string{"pool": "gold"}, EnforcePlacement: true,
			StorageClasses: []string{"fast", "slow"}, IngressClasses: []string{},
		},
	}
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Error(diff)
	}
}

func TestAPolicyThatFitsNodesListsThem(t *testing.T) {
	p := kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Offer = "gold", v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{}}
		s.Slices = &v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true, RequestKeys: []v1alpha1.LabelKey{"zone"}}
	})
	got, _, errs := Parse(p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := got.Slices; !s.FitNode || s.NodeKey != v1alpha1.DefaultNodeKey || !slices.Equal(s.RequestKeys, []string{"zone"}) {
		t.Errorf("got %+v", s)
	}
	if !got.Nodes.Selection.Single {
		t.Error("its nodes are not listed")
	}
	p.Spec.Slices = &v1alpha1.Slices{Fit: v1alpha1.FitPool}
	pool, _, errs := Parse(p)
	if len(errs) > 0 || pool.Nodes.Selection.Single || pool.Slices.NodeKey != "" {
		t.Errorf("a pool: %+v %v", pool, errs)
	}
	if got.Granter() != pool.Granter() {
		t.Errorf("the fit makes another granter: %s and %s", got.Granter(), pool.Granter())
	}
}

func nodeFilter(t *testing.T, expression string) capacity.NodeFilter {
	t.Helper()
	f, err := filter.Nodes(expression)
	test.Must(t, err)
	return f
}

func sliceFilter(t *testing.T, expression string) offer.SliceFilter {
	t.Helper()
	f, err := filter.Slices(expression)
	test.Must(t, err)
	return f
}

func consumerFilter(t *testing.T, expression string) offer.ConsumerFilter {
	t.Helper()
	f, err := filter.Consumers(expression)
	test.Must(t, err)
	return f
}

func TestParseFillsInDefaults(t *testing.T) {
	p := kubetest.Policy("p")
	p.Spec.UpdateThresholdPercent = nil
	got, _, errs := Parse(p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := &offer.Policy{
		Name:             "p",
		Nodes:            &offer.Nodes{Count: offer.Free, Percent: 100},
		ThresholdPercent: 5,
		Reclaim:          offer.Unused,
	}
	identity := cmpopts.IgnoreFields(offer.Policy{}, "Version", "Created")
	if diff := cmp.Diff(want, got, byText, identity); diff != "" {
		t.Error(diff)
	}
	if !got.Consumers.Everyone() {
		t.Error("a policy that names no consumer does not apply to every consumer")
	}
}

func TestTheNodeSelectorOfSlicesDefaultsToThatOfTheNodes(t *testing.T) {
	nodes := func(s *v1alpha1.ResourcePolicySpec) {
		s.Class = "gold"
		s.Offer.Nodes.Selector = &metav1.LabelSelector{
			MatchLabels:      map[string]string{"pool": "gold"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}},
		}
	}
	for _, tc := range []struct {
		name   string
		slices *v1alpha1.Slices
		want   map[string]string
	}{
		{"no slices", nil, map[string]string{"pool": "gold"}},
		{"slices without a selector", &v1alpha1.Slices{}, map[string]string{"pool": "gold"}},
		{"an empty selector", &v1alpha1.Slices{NodeSelector: v1alpha1.Labels{}}, map[string]string{}},
		{"another selector", &v1alpha1.Slices{NodeSelector: v1alpha1.Labels{"a": "b"}}, map[string]string{"a": "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, errs := Parse(kubetest.Policy("p", nodes, func(s *v1alpha1.ResourcePolicySpec) { s.Slices = tc.slices }))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, got.Slices.NodeSelector); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// byText compares selectors and filters by their text.
var byText = cmp.Options{sameText[capacity.Selector](), sameText[capacity.NodeFilter](), sameText[offer.ConsumerFilter](), sameText[offer.SliceFilter]()}

func TestTheDefaultsOfSlicesAreThoseOfLiqoUnlessThePolicySaysOtherwise(t *testing.T) {
	liqo := offer.Slices{LiqoDefaults: true, Defaults: capacity.Amounts{
		"cpu": 4000, "memory": 8 << 30, "pods": 110, "ephemeral-storage": 20 << 30,
	}}
	for name, tc := range map[string]struct {
		slices *v1alpha1.Slices
		want   offer.Slices
	}{
		"no slices":   {nil, liqo},
		"no defaults": {&v1alpha1.Slices{}, liqo},
		"none":        {&v1alpha1.Slices{Defaults: v1alpha1.Quantities{}}, offer.Slices{}},
		"own": {&v1alpha1.Slices{Defaults: kubetest.Quantities("pods", "10")},
			offer.Slices{Defaults: capacity.Amounts{"pods": 10}}},
	} {
		p, _, errs := Parse(kubetest.Policy("p", kubetest.Fixed("cpu", "1"), func(s *v1alpha1.ResourcePolicySpec) {
			s.Class, s.Slices = "gold", tc.slices
		}))
		if diff := cmp.Diff(tc.want, p.Slices); diff != "" || len(errs) > 0 {
			t.Errorf("%s: %v%s", name, errs, diff)
		}
	}
}

func sameText[T interface {
	comparable
	String() string
}]() cmp.Option {
	return cmp.Comparer(func(a, b T) bool {
		var none T
		if a == none || b == none {
			return a == b
		}
		return a.String() == b.String()
	})
}

func mustParse(t *testing.T, selector string) capacity.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	test.Must(t, err)
	return selection.Of(s)
}

func TestParseErrorsNameTheFieldAndSayWhatToWrite(t *testing.T) {
	type spec = v1alpha1.ResourcePolicySpec
	badSelector := &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}},
	}
	for _, tc := range []struct {
		name string
		edit func(*spec)
		want string
	}{
		{"class that Liqo answers", func(s *spec) { s.Class = "default" },
			`spec.class: Invalid value: "default": Liqo itself answers`},
		{"class in capitals", func(s *spec) { s.Class = "Gold" },
			`spec.class: Invalid value: "Gold": write lower-case letters`},
		{"mode", func(s *spec) { s.Mode = "Off" }, `spec.mode: Invalid value: "Off": write Active, Paused, Stopped or DryRun`},
		{"a paused consumer without an ID", func(s *spec) { s.PausedConsumers = make([]v1alpha1.PausedConsumer, 1) },
			`spec.pausedConsumers[0].clusterID: Required value: write the ID that Liqo knows the consumer by`},
		{"a consumer that is paused twice", func(s *spec) { s.PausedConsumers = []v1alpha1.PausedConsumer{{ClusterID: "rome"}, {ClusterID: "rome"}} },
			`spec.pausedConsumers[1].clusterID: Duplicate value: "rome"`},
		{"pausedUntil", func(s *spec) { s.PausedUntil = &metav1.Time{Time: time.Unix(1_800_000_000, 0).UTC()} },
			`spec.pausedUntil: Invalid value: "2027-01-15T08:00:00Z": set mode to Paused, or leave pausedUntil out`},
		{"reclaim", func(s *spec) { s.Reclaim = "Never" },
			`spec.reclaim: Invalid value: "Never": write Unused, Evict or Retain`},
		{"threshold below", func(s *spec) { s.UpdateThresholdPercent = new(int32(-1)) },
			`spec.updateThresholdPercent: Invalid value: -1: write 0 to 100`},
		{"threshold above", func(s *spec) { s.UpdateThresholdPercent = new(int32(101)) },
			`spec.updateThresholdPercent: Invalid value: 101`},
		{"neither source", func(s *spec) { s.Offer.Nodes = nil },
			`spec.offer: Required value: write exactly one of fixed, nodes, peers and external`},
		{"both sources", func(s *spec) { s.Offer.Fixed = kubetest.Quantities("cpu", "1") },
			`spec.offer: Forbidden: write exactly one of fixed, nodes, peers and external`},
		{"percent of fixed amounts", func(s *spec) {
			s.Offer = v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1"), Percent: new(v1alpha1.Percent(50))}
		}, `spec.offer.percent: Forbidden: write it with nodes or peers only`},
		{"zero percent", func(s *spec) { s.Offer.Percent = new(v1alpha1.Percent(0)) },
			`spec.offer.percent: Invalid value: 0: write 1 to 1000`},
		{"huge percent", func(s *spec) { s.Offer.Percent = new(v1alpha1.Percent(math.MaxInt32)) },
			`spec.offer.percent: Invalid value: 2147483647`},
		{"negative percentage", func(s *spec) { s.Offer.Percentages = map[corev1.ResourceName]v1alpha1.Percent{"cpu": -1} },
			`spec.offer.percentages[cpu]: Invalid value: -1`},
		{"a share of 0", func(s *spec) { s.Offer.MaxPercent = new(v1alpha1.Share(0)) },
			`spec.offer.maxPercent: Invalid value: 0: write 1 to 100`},
		{"a share above the whole", func(s *spec) { s.Offer.MaxPercentages = v1alpha1.Shares{"cpu": 101} },
			`spec.offer.maxPercentages[cpu]: Invalid value: 101: write 1 to 100`},
		{"a share of fixed amounts", func(s *spec) {
			s.Offer = v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1"), MaxPercent: new(v1alpha1.Share(50))}
		}, `spec.offer.maxPercent: Forbidden: write it with nodes or peers only, or leave it out`},
		{"an override with a share of fixed amounts", func(s *spec) {
			s.Offer = v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1")}
			s.Overrides = []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}},
				Offer:     v1alpha1.OverrideOffer{MaxPercentages: v1alpha1.Shares{"cpu": 50}},
			}}
		}, `spec.overrides[0].offer.maxPercentages: Forbidden: write it with nodes or peers only, or leave it out`},
		{"node selector", func(s *spec) { s.Offer.Nodes.Selector = badSelector }, `spec.offer.nodes.selector: Invalid value`},
		{"invalid label", func(s *spec) {
			s.Offer.Nodes.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, `spec.offer.nodes.selector: Invalid value`},
		{"consumer selector", func(s *spec) { s.Consumers = &v1alpha1.Consumers{Selector: badSelector} },
			`spec.consumers.selector: Invalid value`},
		{"consumers by ID and by selector", func(s *spec) {
			s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"a"}, Selector: &metav1.LabelSelector{}}
		}, `spec.consumers.selector: Forbidden: write clusterIDs or selector, not both`},
		{"empty ID", func(s *spec) { s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{""}} },
			`spec.consumers.clusterIDs[0]: Required value`},
		{"count", func(s *spec) { s.Offer.Nodes.Count = "Some" },
			`spec.offer.nodes.count: Invalid value: "Some": write Free or Allocatable`},
		{"filter of nodes", func(s *spec) { s.Offer.Nodes.Filter = "node.labels.pool = 'gold'" },
			`spec.offer.nodes.filter: Invalid value: "node.labels.pool = 'gold'": 1:18: Syntax error: token recognition error at: '= '`},
		{"filter of consumers", func(s *spec) { s.Consumers = &v1alpha1.Consumers{Filter: "consumer.id == 'rome'"} },
			`spec.consumers.filter: Invalid value: "consumer.id == 'rome'": 1:9: undefined field 'id'`},
		{"filter of an override", func(s *spec) {
			s.Overrides = []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{Filter: "1"}, Offer: v1alpha1.OverrideOffer{Max: kubetest.Quantities("cpu", "1")},
			}}
		}, `spec.overrides[0].consumers.filter: Invalid value: "1": its result is of type int: write an expression that is true or false`},
		{"toleration operator",
			func(s *spec) { s.Offer.Nodes.Tolerations = []corev1.Toleration{{Key: "k", Operator: "In"}} },
			`spec.offer.nodes.tolerations[0].operator: Invalid value: "In"`},
		{"toleration without key", func(s *spec) { s.Offer.Nodes.Tolerations = []corev1.Toleration{{Value: "v"}} },
			`spec.offer.nodes.tolerations[0].operator`},
		{"toleration effect", func(s *spec) {
			s.Offer.Nodes.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, Effect: "Never"}}
		}, `spec.offer.nodes.tolerations[0].effect: Invalid value: "Never"`},
		{"negative amount", kubetest.Fixed("cpu", "-5"),
			`spec.offer.fixed[cpu]: Invalid value: "-5": ` + v1alpha1.AmountNegative},
		{"a tenth of a byte", kubetest.Fixed("memory", "100m"),
			`spec.offer.fixed[memory]: Invalid value: "100m": ` + v1alpha1.AmountNotWhole},
		{"half a pod", kubetest.Fixed("pods", "500m"), `spec.offer.fixed[pods]: Invalid value: "500m"`},
		{"cpu finer than milli", kubetest.Fixed("cpu", "100u"),
			`spec.offer.fixed[cpu]: Invalid value: "100u": ` + v1alpha1.AmountTooFineCPU},
		{"cores beyond int64", kubetest.Fixed("cpu", "9223372036854775807"),
			`spec.offer.fixed[cpu]: Invalid value: "9223372036854775807": ` + v1alpha1.AmountTooLargeCPU},
		{"resource name", kubetest.Fixed("my gpu", "1"),
			`spec.offer.fixed[my gpu]: Invalid value: "my gpu": write the name of a resource`},
		{"listed resource name", func(s *spec) { s.Offer.Resources = []v1alpha1.ResourceName{"cpu", "-"} },
			`spec.offer.resources[1]: Invalid value: "-"`},
		{"negative reserve", func(s *spec) { s.Offer.Reserve = kubetest.Quantities("cpu", "-1") },
			`spec.offer.reserve[cpu]: Invalid value: "-1"`},
		{"max", func(s *spec) { s.Offer.Max = kubetest.Quantities("memory", "1500m") },
			`spec.offer.max[memory]: Invalid value: "1500m"`},
		{"empty override", func(s *spec) { s.Overrides = []v1alpha1.Override{{}} },
			`spec.overrides[0].offer: Required value: write fixed, max, maxPercent or maxPercentages`},
		{"override amount", func(s *spec) {
			s.Overrides = []v1alpha1.Override{{Offer: v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "-1")}}}
		}, `spec.overrides[0].offer.fixed[cpu]: Invalid value: "-1"`},
		{"slices without class", func(s *spec) { s.Slices = &v1alpha1.Slices{} },
			`spec.slices: Forbidden: slices answers the ResourceSlices of a class`},
		{"onExcess", inSlices(v1alpha1.Slices{OnExcess: "Some"}),
			`spec.slices.onExcess: Invalid value: "Some": write Cap or Deny`},
		{"default amount", inSlices(v1alpha1.Slices{Defaults: kubetest.Quantities("cpu", "-1")}),
			`spec.slices.defaults[cpu]: Invalid value: "-1"`},
		{"filter of slices", inSlices(v1alpha1.Slices{Filter: "request.cpu"}),
			`spec.slices.filter: Invalid value: "request.cpu": 1:8: undefined field 'cpu': this filter reads request.resources, request.labels, request.age and consumer.labels`},
		{"message of the filter", inSlices(v1alpha1.Slices{FilterMessage: "a\x1b[2J"}),
			`spec.slices.filterMessage: Invalid value: "a\x1b[2J": write one line of text`},
		{"node label", inSlices(v1alpha1.Slices{NodeLabels: v1alpha1.Labels{"a b": "c"}}),
			`spec.slices.nodeLabels: Invalid value: "a b"`},
		{"node selector of slices", inSlices(v1alpha1.Slices{NodeSelector: v1alpha1.Labels{"a": "b c"}}),
			`spec.slices.nodeSelector: Invalid value: "b c"`},
		{"enforced placement without labels", inSlices(v1alpha1.Slices{EnforcePlacement: true}),
			`spec.slices.enforcePlacement: Forbidden: enforcePlacement needs labels of nodes: set slices.nodeSelector`},
		{"fit of fixed amounts", func(s *spec) {
			s.Offer = v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1")}
			inSlices(v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true})(s)
		}, `spec.slices.fit: Forbidden: fit: Node grants from nodes of this cluster: set offer.nodes with count Free`},
		{"fit of nodes with all of their amounts", func(s *spec) {
			s.Offer.Nodes.Count = v1alpha1.NodeCountAllocatable
			inSlices(v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true})(s)
		}, `spec.slices.fit: Forbidden: fit: Node grants from nodes of this cluster: set offer.nodes with count Free`},
		{"fit without enforced placement", inSlices(v1alpha1.Slices{Fit: v1alpha1.FitNode}),
			`spec.slices.fit: Forbidden: fit: Node needs pods that stay on the node of the answer: set enforcePlacement: true`},
		{"unknown fit", inSlices(v1alpha1.Slices{Fit: "Rack"}), `spec.slices.fit: Invalid value: "Rack": write Pool or Node`},
		{"node key of a pool", inSlices(v1alpha1.Slices{NodeKey: "zone"}),
			`spec.slices.nodeKey: Forbidden: nodeKey and requestKeys are for fit: Node: set fit: Node`},
		{"request keys of a pool", inSlices(v1alpha1.Slices{RequestKeys: []v1alpha1.LabelKey{"zone"}}),
			`spec.slices.requestKeys: Forbidden: nodeKey and requestKeys are for fit: Node: set fit: Node`},
		{"node key", inSlices(v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true, NodeKey: "a b"}),
			`spec.slices.nodeKey: Invalid value: "a b": write the key of a label`},
		{"request key", inSlices(v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true, RequestKeys: []v1alpha1.LabelKey{"zone", "-"}}),
			`spec.slices.requestKeys[1]: Invalid value: "-": write the key of a label`},
		{"node selector with the node key", inSlices(v1alpha1.Slices{
			Fit: v1alpha1.FitNode, EnforcePlacement: true, NodeSelector: v1alpha1.Labels{"kubernetes.io/hostname": "n1"},
		}), `spec.slices.nodeSelector: Forbidden: with fit: Node, the answer names the node by nodeKey`},
		{"storage class", inSlices(v1alpha1.Slices{StorageClasses: []v1alpha1.ClassName{""}}),
			`spec.slices.storageClasses[0]: Required value: write the name of a class`},
		{"ingress class", inSlices(v1alpha1.Slices{IngressClasses: []v1alpha1.ClassName{"a", ""}}),
			`spec.slices.ingressClasses[1]: Required value`},
		{"load balancer class", inSlices(v1alpha1.Slices{LoadBalancerClasses: []v1alpha1.ClassName{""}}),
			`spec.slices.loadBalancerClasses[0]: Required value`},
		{"catalog without class", func(s *spec) { s.Catalog = &v1alpha1.Catalog{} }, `spec.catalog: Forbidden: catalog describes a class`},
		{"providers without peers", func(s *spec) { s.Class, s.Catalog = "gold", &v1alpha1.Catalog{ShowProviders: true} },
			`spec.catalog.showProviders: Forbidden: showProviders lists who stands behind offer.peers`},
		{"title", inCatalog(v1alpha1.CatalogWords{Title: "a\x1b[2J"}), `spec.catalog.title: Invalid value: "a\x1b[2J": write one line of text`},
		{"URL", inCatalog(v1alpha1.CatalogWords{URL: "javascript:alert(1)"}), `spec.catalog.url: Invalid value: "javascript:alert(1)": write an address`},
		{"label", inCatalog(v1alpha1.CatalogWords{Labels: v1alpha1.Labels{"a b": "c"}}), `spec.catalog.labels: Invalid value: "a b"`},
		{"price", inCatalog(v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"cpu": "1e9"}, Currency: "EUR"}),
			`spec.catalog.prices[cpu]: Invalid value: "1e9": write a decimal number in quotes`},
		{"resource with a price", inCatalog(v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"a b": "1"}, Currency: "EUR"}),
			`spec.catalog.prices[a b]: Invalid value: "a b": write the name of a resource`},
		{"prices without currency", inCatalog(v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"cpu": "1"}}),
			`spec.catalog.currency: Required value: set both prices and currency, or neither`},
		{"currency", inCatalog(v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"cpu": "1"}, Currency: "euro"}),
			`spec.catalog.currency: Invalid value: "euro": write three capital letters`},
		{"period without prices", inCatalog(v1alpha1.CatalogWords{Period: v1alpha1.PeriodHour}), `spec.catalog.period: Forbidden: set prices`},
		{"period", inCatalog(v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"cpu": "1"}, Currency: "EUR", Period: "Day"}),
			`spec.catalog.period: Invalid value: "Day": write Hour or Month`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, errs := Parse(kubetest.Policy("p", tc.edit))
			if got != nil {
				t.Errorf("an invalid policy was parsed: %+v", got)
			}
			if !slices.ContainsFunc(errs, func(err *field.Error) bool { return strings.HasPrefix(err.Error(), tc.want) }) {
				t.Errorf("got %v, want %s", errs, tc.want)
			}
		})
	}
}

func inSlices(of v1alpha1.Slices) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class, s.Slices = "gold", &of }
}

func TestParseReturnsAllErrors(t *testing.T) {
	_, _, errs := Parse(kubetest.Policy("p", kubetest.Fixed("cpu", "-1", "memory", "100m"),
		func(s *v1alpha1.ResourcePolicySpec) { s.Class = "default" }))
	if len(errs) != 3 {
		t.Errorf("got %d errors, want 3: %v", len(errs), errs)
	}
}

func TestParseAcceptsTheLargestAmounts(t *testing.T) {
	fixed := kubetest.Fixed("cpu", "9223372036854775", "memory", "9223372036854775807", "pods", "1e3", "storage", "0")
	got, _, errs := Parse(kubetest.Policy("p", fixed))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := capacity.Amounts{"cpu": 9223372036854775000, "memory": math.MaxInt64, "pods": 1000, "storage": 0}
	if diff := cmp.Diff(want, got.Fixed); diff != "" {
		t.Error(diff)
	}
}

func inCatalog(words v1alpha1.CatalogWords) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Catalog = "gold", &v1alpha1.Catalog{CatalogWords: words}
	}
}
