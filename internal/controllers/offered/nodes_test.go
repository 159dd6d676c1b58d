package offered

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

func parsePolicy(object *v1alpha1.ResourcePolicy) *offer.Policy { return policy.Of(object, nil).Parsed }

// policyOf returns a policy of class gold in force.
func policyOf(name string, of v1alpha1.PolicyOffer) table.Policy {
	object := &v1alpha1.ResourcePolicy{}
	object.Name, object.UID = name, "uid"
	object.Spec.Class, object.Spec.Offer = "gold", of
	object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonOffering}}
	return policy.Of(object, nil)
}

// policyOn returns a policy of the nodes in a zone.
func policyOn(name, zone string) table.Policy {
	return policyOf(name, v1alpha1.PolicyOffer{Nodes: inZone(zone)})
}

func inZone(zone string) *v1alpha1.Nodes {
	return &v1alpha1.Nodes{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}}}
}

func granterOn(name, zone string) string { p := policyOn(name, zone); return p.Parsed.Granter() }

// snapshotOf returns a snapshot of these policies.
func snapshotOf(of ...table.Policy) *table.Snapshot { return &table.Snapshot{Policies: of} }

// readAgain returns what the next process knows of those that are named, nil for all.
func readAgain(t *testing.T, g granterOffers, named ...string) map[string]offer.Policy {
	t.Helper()
	recorded, err := parse[granterOffers](encode(g))
	test.Must(t, err)
	if named == nil {
		named = slices.Collect(maps.Keys(g))
	}
	needed := map[string]struct{}{}
	for _, by := range named {
		needed[by] = struct{}{}
	}
	got := map[string]offer.Policy{}
	for _, p := range recorded.policies(needed, parsePolicy) {
		got[p.Granter()] = p
	}
	return got
}

func quantities(text string) v1alpha1.Quantities {
	return v1alpha1.Quantities{corev1.ResourceCPU: v1alpha1.Quantity{Quantity: resource.MustParse(text)}}
}

// Every field that says which nodes, and what part of them, is read again as it was.
func TestTheNodesOfAPolicyAreReadAgainAsTheyWere(t *testing.T) {
	percent := v1alpha1.Percent(150)
	for name, of := range map[string]v1alpha1.PolicyOffer{
		"all nodes": {Nodes: &v1alpha1.Nodes{}},
		"labels, taints and a filter": {Nodes: &v1alpha1.Nodes{
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
			}},
			Filter: `node.labels["tier"] == "<gold>"`, Count: v1alpha1.NodeCountAllocatable,
			Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
		}},
		"peers":              {Peers: &v1alpha1.Peers{ClusterIDs: []v1alpha1.ClusterID{"oslo", "rome"}}},
		"a part":             {Nodes: inZone("a"), Percent: &percent, Reserve: quantities("1500m")},
		"a name in force":    {Nodes: inZone("a"), Reserve: v1alpha1.Quantities{"cpus": quantities("1")["cpu"]}},
		"a limit in force":   {Nodes: inZone("a"), Max: v1alpha1.Quantities{"cpus": quantities("1")["cpu"]}},
		"limits and amounts": {Nodes: inZone("a"), Max: quantities("1"), Resources: []v1alpha1.ResourceName{"cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policyOf("gold", of)
			if p.Parsed == nil {
				t.Fatal(p.Problems)
			}
			all, full := granterOffersIn(snapshotOf(p), nil)
			got, known := readAgain(t, all)[p.Parsed.Granter()]
			if full || !known {
				t.Fatalf("full %v, got %v", full, all)
			}
			if got, want := fmt.Sprint(*got.Nodes), fmt.Sprint(*p.Parsed.Nodes); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestTheNodesOfPoliciesAndOfFormerOnesAreOnRecord(t *testing.T) {
	fixed := policyOf("fixed", v1alpha1.PolicyOffer{Fixed: quantities("1")})
	invalid := policyOf("invalid", v1alpha1.PolicyOffer{})
	before, _ := granterOffersIn(snapshotOf(policyOn("gold", "a"), policyOn("silver", "a"), fixed, invalid), nil)
	then := snapshotOf(policyOn("gold", "b"))
	then.Input.Former = []offer.Policy{*policyOn("gold", "a").Parsed, *policyOn("unheard", "of").Parsed}

	all, _ := granterOffersIn(then, before)
	want := []string{granterOn("gold", "a"), granterOn("gold", "b")}
	if got := slices.Sorted(maps.Keys(readAgain(t, all))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := slices.Sorted(maps.Keys(readAgain(t, all, want[0]))); !slices.Equal(got, want[:1]) {
		t.Errorf("of those that are named: got %q, want %q", got, want[:1])
	}
	want = []string{granterOn("gold", "a"), granterOn("silver", "a")}
	if got := slices.Sorted(maps.Keys(before)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("before: got %q, want %q", got, want)
	}
}

// A granter is known by its digest: another version of the operator, or an accident, cannot put other nodes in the place
// of those. One entry harms no other.
func TestWhatIsNotReadAsTheSameNodesIsLeftOut(t *testing.T) {
	a, b, c := granterOn("gold", "a"), granterOn("gold", "b"), granterOn("gold", "c")
	all, _ := granterOffersIn(snapshotOf(policyOn("gold", "a"), policyOn("gold", "b"), policyOn("gold", "c")), nil)
	all[a], all[c] = all[b], json.RawMessage(`[]`)
	fixed := policyOf("gold", v1alpha1.PolicyOffer{Fixed: quantities("1")})
	all[fixed.Parsed.Granter()] = json.RawMessage(`{"fixed":{"cpu":"1"}}`) // It has no nodes.
	all["gold@none"], all["x"], all[""] = all[b], json.RawMessage(`{"nodes":{"filter":"("}}`), json.RawMessage(`{}`)
	got := readAgain(t, all)
	if _, known := got[b]; !known || len(got) != 1 {
		t.Errorf("got %v, want only %s", got, b)
	}
}

// Filters in Go read the whole policy, which is not on record.
func TestNodesThatFiltersInGoHaveChosenAreNotReadAgain(t *testing.T) {
	p := policyOn("gold", "a")
	p.Parsed.Nodes.Selection.Filters = []capacity.NodeFilter{goFilter{}}
	all, _ := granterOffersIn(snapshotOf(p), nil)
	if got := readAgain(t, all); len(all) != 1 || len(got) != 0 {
		t.Errorf("recorded %v, read %v", all, got)
	}
}

type goFilter struct{}

func (goFilter) Admits(*capacity.Node) (ok bool, why string) { return true, "" }
func (goFilter) String() string                              { return "mine" }

// A policy for which there is no room takes it from no other, and none from former ones.
func TestTheRecordOfNodesHasABound(t *testing.T) {
	large := policyOn("a", "a")
	for i := range 2000 {
		p := &large.Object.Spec.Offer.Nodes.Selector.MatchExpressions
		*p = append(*p, metav1.LabelSelectorRequirement{Key: "zone", Values: []string{fmt.Sprint("zone-", i)}})
	}
	former := policyOn("z", "former")
	before, _ := granterOffersIn(snapshotOf(former), nil)
	s := snapshotOf(large)
	s.Input.Former = []offer.Policy{*former.Parsed}
	for i := range 1000 {
		s.Policies = append(s.Policies, policyOn(fmt.Sprintf("policy-%04d", i), strings.Repeat("x", 63)))
	}
	all, full := granterOffersIn(s, before)
	if text := encode(all); !full || len(text) > maxNodesBytes+len("{}") || len(text) < maxNodesBytes*9/10 {
		t.Errorf("full %v, and %d bytes; want nearly %d", full, len(text), maxNodesBytes)
	}
	if _, known := all[former.Parsed.Granter()]; !known {
		t.Error("the former policy is left out")
	}
	if _, known := all[large.Parsed.Granter()]; known {
		t.Error("what is too long is on record")
	}
	first := s.Policies[1].Parsed.Granter()
	if _, known := all[first]; !known {
		t.Error("a long one takes the room of others")
	}
}

// The API server refuses a ConfigMap above 1 MiB.
func TestAllPartsOfTheRecordTogetherHaveRoom(t *testing.T) {
	const keys = len(dataKey) + len(withdrawnKey) + len(askedKey) + len(nodesKey) + 4*len("{}")
	if all := maxBytes + maxWithdrawnBytes + maxAskedBytes + maxNodesBytes + keys; all > 1<<20 {
		t.Errorf("%d bytes, which is more than %d", all, 1<<20)
	}
}

func TestTheNodesAreWorkedOutAgainWhenAPolicyHasChanged(t *testing.T) {
	of := func(generation int64, former ...offer.Policy) *table.Snapshot {
		p := policyOn("gold", "a")
		p.Generation = generation
		s := snapshotOf(p)
		s.Input.Former = former
		return s
	}
	former := *policyOn("gold", "b").Parsed
	for name, other := range map[string]*table.Snapshot{
		"an edit": of(2), "a former policy": of(1, former), "no policy": {},
	} {
		if samePolicies(of(1), other) || samePolicies(other, of(1)) {
			t.Errorf("%s is not seen", name)
		}
	}
	if !samePolicies(of(1, former), of(1, former)) {
		t.Error("what is the same is not")
	}
}
