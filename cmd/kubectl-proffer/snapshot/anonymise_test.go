package snapshot

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func anonymised(t *testing.T, world rest.World) (rest.World, string) {
	t.Helper()
	in, err := json.Marshal(world)
	test.Must(t, err)
	var out bytes.Buffer
	test.Must(t, Anonymise(&out, bytes.NewReader(in)))
	var got rest.World
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return got, out.String()
}

func TestNoNameIsLeftInAnAnonymisedSnapshot(t *testing.T) {
	_, text := anonymised(t, operatortest.World())
	secret := regexp.MustCompile(`rome|oslo|\bbern\b|liqo-tenant|batch|first|worker-\d|silver|north|south|window-7|1111|2222|3333|4444|0b6f4f0e|6a0d7f4c|last-applied`)
	if found := secret.FindAllString(text, -1); found != nil {
		t.Errorf("still there: %q in %s", found, text)
	}
}

func TestAnonymousNamesAreConsistent(t *testing.T) {
	before := operatortest.World()
	before.Nodes[0].Labels["kubernetes.io/os"] = "linux"
	before.Pods = append(before.Pods, rest.WorldPod{UID: "5555", Consumer: "rome"})
	world, _ := anonymised(t, before)
	pool := world.Policies[0].Spec
	rome, oslo := string(pool.Consumers.ClusterIDs[0]), string(pool.Consumers.ClusterIDs[1])
	type pair struct{ A, B any }
	for name, p := range map[string]pair{
		"a consumer in policies, consumers, offers, slices and pods": {
			[]string{oslo, rome, rome, rome, rome, rome, oslo},
			[]string{
				world.Consumers[0].ClusterID, world.Consumers[1].ClusterID, world.Offers[0].ClusterID, world.Slices[0].Consumer, world.Pods[1].Consumer,
				world.Pods[2].Consumer, world.Pods[3].Consumer,
			},
		},
		"a node and the node of a pod":                     {world.Nodes[1].Name, world.Pods[3].Node},
		"a label and the selector of it":                   {world.Nodes[0].Labels["pool"], pool.Offer.Nodes.Selector.MatchLabels["pool"]},
		"a label and the expression on it":                 {world.Nodes[1].Labels["zone"], pool.Offer.Nodes.Selector.MatchExpressions[0].Values[1]},
		"an empty label, which stays":                      {"", world.Nodes[0].Labels["node-role.kubernetes.io/worker"]},
		"a value by which nodes are left out, which stays": {"linux", world.Nodes[0].Labels["kubernetes.io/os"]},
		"a pod of this cluster, which has no origin":       {"", world.Pods[0].Consumer},
		"a pod that waits for a node":                      {"", world.Pods[4].Node},
		"a taint's key and effect, which stay":             {"maintenance=value-5:NoSchedule", world.Nodes[3].Taints[0]},
	} {
		if diff := cmp.Diff(p.A, p.B); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What a peer gives is not offered back to it, so that a peer and a consumer keep one name.
func TestPeersAreAnonymisedAsConsumersAre(t *testing.T) {
	world := operatortest.World()
	world.Nodes[0].Peer = &rest.WorldPeer{ClusterID: "rome", Depth: new(int)}
	world.NodeGroups = []rest.WorldNodeGroup{{Name: "liqo-tenant-rome/first", ClusterID: "rome", Nodes: []string{world.Nodes[0].Name}, Given: &rest.Amounts{}}}
	world.Policies[0].Spec.Offer.Peers = &v1alpha1.Peers{ClusterIDs: []v1alpha1.ClusterID{"rome"}}
	got, text := anonymised(t, world)
	rome := got.Consumers[1].ClusterID
	if peer := got.Nodes[0].Peer.ClusterID; peer != rome || string(got.Policies[0].Spec.Offer.Peers.ClusterIDs[0]) != rome {
		t.Errorf("rome is %q, its node is of %q in %s", rome, peer, text)
	}
	if group := got.NodeGroups[0]; group.Nodes[0] != got.Nodes[0].Name || group.Given == nil || group.ClusterID != rome || strings.Contains(group.Name, "rome") {
		t.Errorf("the group is %+v", group)
	}
}

// An evaluation depends on names and amounts. The amounts stay.
func TestAnAnonymisedSnapshotHasTheSameAmounts(t *testing.T) {
	before := operatortest.World()
	after, _ := anonymised(t, before)
	for i := range after.Pods {
		after.Pods[i].UID, after.Pods[i].Node, after.Pods[i].Consumer, after.Pods[i].Creator = before.Pods[i].UID, before.Pods[i].Node, before.Pods[i].Consumer, before.Pods[i].Creator
	}
	if diff := cmp.Diff(before.Pods, after.Pods); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if before.Evaluated != after.Evaluated || before.Version != after.Version || before.Proffer != after.Proffer {
		t.Errorf("%+v became %+v", before.Evaluated, after.Evaluated)
	}
	if got, want := after.Slices[0].Granted, before.Slices[0].Granted; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The status of a policy decides whether misspelt resources are still in force, and what was
// offered.
func TestAPolicyKeepsOfItsStatusWhatCounts(t *testing.T) {
	world := operatortest.World()
	world.Policies = world.Policies[:1]
	world.Policies[0].Status = v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: 3, OfferedResources: []v1alpha1.ResourceName{"cpu"}, Offers: []v1alpha1.ConsumerOffer{{ClusterID: "rome"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering, Message: "for rome"}},
	}
	got, _ := anonymised(t, world)
	want := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: 3, OfferedResources: []v1alpha1.ResourceName{"cpu"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering}},
	}
	if diff := cmp.Diff(want, got.Policies[0].Status); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestASnapshotThatIsCutOrUnknownIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":1,"consumers":[{"clusterID":"a"}`: "consumers: ",
		`{"version":1`:                   "EOF",
		`{"version":1,"secrets":["x"]}`:  "secrets: a newer operator serves this field",
		`{"version":1,"nodes":"worker"}`: "nodes: it has string where [ should be",
		`[]`:                             "it has [ where { should be",
	} {
		err := Anonymise(io.Discard, strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestEmptyListsStay(t *testing.T) {
	got, text := anonymised(t, rest.World{Version: 1, Nodes: []rest.WorldNode{}})
	if got.Nodes == nil || got.Pods != nil {
		t.Errorf("got %s", text)
	}
}

func TestTheHostOfAnExternalSourceIsReplaced(t *testing.T) {
	external := func(name, address string) v1alpha1.ResourcePolicy {
		return v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourcePolicySpec{
			Offer: v1alpha1.PolicyOffer{External: &v1alpha1.External{Address: address, TLS: &v1alpha1.ExternalTLS{CABundle: "secret", ServerName: "secret"}}},
		}}
	}
	world, text := anonymised(t, rest.World{
		Version: rest.WorldVersion, Unavailable: map[string]string{"a": "for secret, no answer from secret", "b": ""},
		Policies: []v1alpha1.ResourcePolicy{external("a", "secret.liqo:6001"), external("b", "secret.liqo:6002"), external("c", "[fd00::7]:6001")},
		Answers:  []rest.WorldAnswer{{Policy: "a", ClusterID: "secret"}, {Policy: "a", Anyone: true}},
	})
	if strings.Contains(text, "secret") || strings.Contains(text, "fd00") {
		t.Errorf("still there: %s", text)
	}
	var addresses []string
	for _, p := range world.Policies {
		addresses = append(addresses, p.Spec.Offer.External.Address)
	}
	if diff := cmp.Diff([]string{"host-1:6001", "host-1:6002", "host-2:6001"}, addresses); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "it is unavailable", "b": ""}, world.Unavailable); diff != "" {
		t.Error(diff)
	}
	if got := []string{world.Answers[0].ClusterID, world.Answers[1].ClusterID}; got[0] != "consumer-1" || got[1] != "" {
		t.Errorf("answers for %v", got)
	}
}

// A consumer may write anything into the class of a ResourceSlice.
func TestOnlyTheClassesThatAreServedStay(t *testing.T) {
	before := operatortest.World()
	before.Slices[0].Class, before.Slices[0].GrantedIn = "of-rome-inc\u202e", "gold"
	before.Slices[1].Class = "default"
	world, text := anonymised(t, before)
	if strings.Contains(text, "of-rome-inc") || world.Slices[0].Class == "" || world.Slices[0].GrantedIn != "gold" || world.Slices[1].Class != "default" {
		t.Errorf("got the classes %q, %q and %q", world.Slices[0].Class, world.Slices[0].GrantedIn, world.Slices[1].Class)
	}
}
