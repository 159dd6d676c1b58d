package operator

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/offered"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// offeredRecord returns the ConfigMap in which an operator records the offered resources, without
// its data.
func offeredRecord(election *kube.LeaderElection) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(election), Name: offered.ConfigMap}}
}

// recordedNow returns the content and the resourceVersion of the record; zero values if there is
// none.
func recordedNow(t *testing.T) (names map[string][]string, version string) {
	t.Helper()
	object := offeredRecord(nil)
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return nil, ""
	}
	if text := object.Data["offered.json"]; text != "" {
		test.Must(t, json.Unmarshal([]byte(text), &names))
	}
	return names, object.ResourceVersion
}

// awaitRecord waits until the record has exactly this content.
func awaitRecord(t *testing.T, want map[string][]string) {
	t.Helper()
	test.Eventually(t, func() string {
		got, _ := recordedNow(t)
		return cmp.Diff(want, got)
	})
}

func TestAPolicyDeletedWithoutAnOperatorIsWithdrawnByZeros(t *testing.T) {
	ids := manyIDs()
	p := kubetest.Create(t, kubetest.Policy("p",
		kubetest.Fixed("cpu", "2", "memory", "1Gi", "pods", "5"), kubetest.ForIDs(ids...), inClass("gold")))
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-the-last",
		"n", nodestest.List("cpu", "1"), nodestest.PodLabel(originLabel, string(ids[len(ids)-1]))))
	o := startOperator(t)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(2000), o.offered(string(ids[0]))["gold"]["cpu"]) })
	awaitConsumers(t, "p", len(ids))
	awaitRecord(t, map[string][]string{"gold": {"cpu", "memory", "pods"}})
	o.stop()

	kubetest.Remove(t, p)
	zeros := map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0, "pods": 0}}
	held := map[string]capacity.Amounts{"gold": {"cpu": 1000, "memory": 1, "pods": 1}}
	for range 2 { // The second restart remembers it too.
		o = startOperator(t)
		o.requireOffers(ids[:len(ids)-1], zeros, zeros)
		o.requireOffers(ids[len(ids)-1:], held, zeros)
		o.stop()
	}

	// An admin deletes the record to have it forgotten.
	kubetest.Remove(t, offeredRecord(nil))
	o = startOperator(t)
	o.requireOffers(ids[:1], map[string]capacity.Amounts{}, map[string]capacity.Amounts{})
}

func TestAResourceOfADeletedPolicyIsWithdrawnInASharedClass(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("standard", kubetest.Fixed("cpu", "2", "memory", "1Gi")))
	extra := kubetest.Create(t, kubetest.Policy("extra",
		kubetest.Fixed("cpu", "2", "memory", "1Gi", "nvidia.com/gpu", "1"),
		func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), kubetest.ForIDs("rome"), inClass("gold")))
	o := startOperator(t)
	all := map[string][]string{"": {"cpu", "memory", "nvidia.com/gpu"}, "gold": {"cpu"}}
	awaitRecord(t, all)
	awaitConsumers(t, "gold", 1)
	awaitReason(t, "standard", v1alpha1.ReasonShadowed)
	o.stop()

	before := capacity.Amounts{"cpu": 2000, "memory": gib, "nvidia.com/gpu": 1}
	o = startOperator(t) // With all policies in place, a restart changes nothing.
	o.requireOffers([]v1alpha1.ClusterID{"oslo"}, map[string]capacity.Amounts{"": before},
		map[string]capacity.Amounts{"": before})
	o.stop()

	kubetest.Remove(t, extra)
	o = startOperator(t)
	after := capacity.Amounts{"cpu": 2000, "memory": gib, "nvidia.com/gpu": 0}
	o.requireOffers([]v1alpha1.ClusterID{"oslo"}, map[string]capacity.Amounts{"": after},
		map[string]capacity.Amounts{"": after})
	o.requireOffers([]v1alpha1.ClusterID{"rome"}, map[string]capacity.Amounts{"": after, "gold": {"cpu": 4000}},
		map[string]capacity.Amounts{"": after})
	awaitRecord(t, all)
}

func TestTheRecordIsWrittenOnlyForNewNames(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1")))
	kubetest.Create(t, kubetest.Policy("trial",
		kubetest.Fixed("example.com/zinc", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	o := startOperator(t)
	awaitRecord(t, map[string][]string{"": {"cpu"}})
	_, version := recordedNow(t)
	for _, cpu := range []string{"2", "3", "4"} {
		editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("cpu", cpu) })
		o.awaitOfferOf("rome", "cpu", int64(cpu[0]-'0')*1000)
	}
	if _, now := recordedNow(t); now != version {
		t.Error("the record was written again without a new name")
	}
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("memory", "1Gi") })
	awaitRecord(t, map[string][]string{"": {"cpu", "memory"}})
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" })
	awaitRecord(t, map[string][]string{"": {"cpu", "memory"}, "gold": {"cpu", "memory"}})
	kubetest.Remove(t, p)
	o.awaitNoOffers("rome")
	if names, _ := recordedNow(t); len(names) != 2 {
		t.Errorf("the record lost the names of a deleted policy: %v", names)
	}
}

func TestACorruptRecordIsRewritten(t *testing.T) {
	corrupt := offeredRecord(nil)
	corrupt.Data = map[string]string{"offered.json": "{", "theirs": "stays"}
	kubetest.Create(t, corrupt)
	kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1")))
	startOperator(t)
	test.Eventually(t, func() string {
		now := offeredRecord(nil)
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]string{"offered.json": `{"":["cpu"]}`, "theirs": "stays"}, now.Data)
	})
}
