package operator

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/controllers/offered"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

// anOfferedRecord is the object in which an operator records what it has offered.
func anOfferedRecord(election *kube.LeaderElection) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(election), Name: offered.ConfigMap}}
}

// recordedNow is what stands in the record, and at which version; nothing if there is none.
func recordedNow(t *testing.T) (names map[string][]string, version string) {
	t.Helper()
	object := anOfferedRecord(nil)
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return nil, ""
	}
	if text := object.Data["offered.json"]; text != "" {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			t.Fatal(err)
		}
	}
	return names, object.ResourceVersion
}

// records waits until the record says exactly this.
func records(t *testing.T, want map[string][]string) {
	t.Helper()
	kubetest.Eventually(t, func() string {
		got, _ := recordedNow(t)
		return cmp.Diff(want, got)
	})
}

func TestAPolicyThatIsDeletedWhileNoOperatorRunsIsWithdrawnByZeros(t *testing.T) {
	ids := manyIDs()
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "2", "memory", "1Gi", "pods", "5"), kubetest.ForIDs(ids...), inClass("gold")))
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-the-last", "n", nodestest.List("cpu", "1"), nodestest.PodLabel(originLabel, string(ids[len(ids)-1]))))
	o := startOperator(t)
	o.eventually(func() string { return cmp.Diff(int64(2000), o.offered(string(ids[0]))["gold"]["cpu"]) })
	recordedFor(t, "p", len(ids))
	records(t, map[string][]string{"gold": {"cpu", "memory", "pods"}})
	o.stop()

	kubetest.Remove(t, p)
	zeros := map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0, "pods": 0}}
	held := map[string]capacity.Amounts{"gold": {"cpu": 1000, "memory": 1, "pods": 1}}
	for range 2 { // Nor does one that starts after that forget it.
		o = startOperator(t)
		o.offersAllOf(ids[:len(ids)-1], zeros, zeros)
		o.offersAllOf(ids[len(ids)-1:], held, zeros)
		o.stop()
	}

	// That is how an admin has it forgotten.
	kubetest.Remove(t, anOfferedRecord(nil))
	o = startOperator(t)
	o.offersAllOf(ids[:1], map[string]capacity.Amounts{}, map[string]capacity.Amounts{})
}

func TestAResourceIsTakenBackWhosePolicyIsGoneFromAClassThatOthersServe(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("standard", kubetest.Fixed("cpu", "2", "memory", "1Gi")))
	extra := kubetest.Create(t, kubetest.Policy("extra", kubetest.Fixed("cpu", "2", "memory", "1Gi", "nvidia.com/gpu", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), kubetest.ForIDs("rome"), inClass("gold")))
	o := startOperator(t)
	all := map[string][]string{"": {"cpu", "memory", "nvidia.com/gpu"}, "gold": {"cpu"}}
	records(t, all)
	recordedFor(t, "gold", 1)
	ready(t, "standard", v1alpha1.ReasonShadowed)
	o.stop()

	before := capacity.Amounts{"cpu": 2000, "memory": gib, "nvidia.com/gpu": 1}
	o = startOperator(t) // With all policies in place, a start changes nothing.
	o.offersAllOf([]v1alpha1.ClusterID{"oslo"}, map[string]capacity.Amounts{"": before}, map[string]capacity.Amounts{"": before})
	o.stop()

	kubetest.Remove(t, extra)
	o = startOperator(t)
	after := capacity.Amounts{"cpu": 2000, "memory": gib, "nvidia.com/gpu": 0}
	o.offersAllOf([]v1alpha1.ClusterID{"oslo"}, map[string]capacity.Amounts{"": after}, map[string]capacity.Amounts{"": after})
	o.offersAllOf([]v1alpha1.ClusterID{"rome"}, map[string]capacity.Amounts{"": after, "gold": {"cpu": 4000}}, map[string]capacity.Amounts{"": after})
	records(t, all)
}

func TestTheRecordIsWrittenWhenANameIsNewAndNotOtherwise(t *testing.T) {
	p := kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1")))
	kubetest.Create(t, kubetest.Policy("trial", kubetest.Fixed("example.com/zinc", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	o := startOperator(t)
	records(t, map[string][]string{"": {"cpu"}})
	_, version := recordedNow(t)
	for _, cpu := range []string{"2", "3", "4"} {
		editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("cpu", cpu) })
		o.offersOf("rome", "cpu", int64(cpu[0]-'0')*1000)
	}
	if _, now := recordedNow(t); now != version {
		t.Error("written again, with nothing new")
	}
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Fixed = kubetest.Quantities("memory", "1Gi") })
	records(t, map[string][]string{"": {"cpu", "memory"}})
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" })
	records(t, map[string][]string{"": {"cpu", "memory"}, "gold": {"cpu", "memory"}})
	kubetest.Remove(t, p)
	o.offersNothing("rome")
	if names, _ := recordedNow(t); len(names) != 2 {
		t.Errorf("a deleted policy is struck off the record: %v", names)
	}
}

func TestARecordThatSomebodySpoiltIsWrittenAnew(t *testing.T) {
	spoilt := anOfferedRecord(nil)
	spoilt.Data = map[string]string{"offered.json": "{", "theirs": "stays"}
	kubetest.Create(t, spoilt)
	kubetest.Create(t, kubetest.Policy("p", kubetest.Fixed("cpu", "1")))
	startOperator(t)
	kubetest.Eventually(t, func() string {
		now := anOfferedRecord(nil)
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
			return err.Error()
		}
		return cmp.Diff(map[string]string{"offered.json": `{"":["cpu"]}`, "theirs": "stays"}, now.Data)
	})
}

func inClass(class string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }
}
