package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/controllers/podsecurity"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

// newPlacements returns the operator's list of placements, in the namespace of a Lease of its own.
func newPlacements(t *testing.T) (list *corev1.ConfigMap, with func(*parts)) {
	t.Helper()
	election := longLease(t)
	list = kubetest.Create(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: election.Namespace, Name: "placements"}})
	return list, func(o *parts) { o.election, o.placements = election, list.Name }
}

func enforcing(s *v1alpha1.ResourcePolicySpec) {
	s.Slices = &v1alpha1.Slices{EnforcePlacement: true}
}

// versionOf returns the resourceVersion that the object has now.
func versionOf(t *testing.T, object client.Object) string {
	t.Helper()
	now, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T", object)
	}
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
		t.Fatal(err)
	}
	return now.GetResourceVersion()
}

func TestASliceIsListedBeforeItsFirstAnswerAndWhileItHoldsAnything(t *testing.T) {
	installSliceCRDs(t)
	list, listing := newPlacements(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	policy := kubetest.Create(t, classGold(enforcing))
	rome := newTenancy(t, "rome")
	o := startOperator(t, listing)

	mine := rome.ask("mine", nodestest.List("cpu", "2", "memory", "4Gi"))
	user := creatorOf("mine", "rome")
	awaitAnswer(t, mine, "Accepted Granted cpu=2,memory=4Gi")
	gold := map[string]string{user: "pool=gold"}
	awaitList(t, list, gold)
	if order, err := resourceversion.CompareResourceVersion(versionOf(t, list), versionOf(t, mine)); err != nil || order >= 0 {
		t.Errorf("the list was written after the answer, or not compared: %v", err)
	}

	// Another slice is denied: it has nothing, and is not listed.
	awaitAnswer(t, rome.ask("late", nodestest.List("nvidia.com/gpu", "1")), "Denied Denied")
	awaitList(t, list, gold)

	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.NodeSelector = v1alpha1.Labels{"zone": "a", "pool": "gold"}
	})
	placed := map[string]string{user: "pool=gold,zone=a"}
	awaitList(t, list, placed)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.EnforcePlacement = false })
	awaitList(t, list, nil)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.EnforcePlacement = true })
	awaitList(t, list, placed)

	// What others write is undone, and a list that is deleted comes back, also without a policy.
	kubetest.Remove(t, policy)
	awaitAnswer(t, mine, "Accepted Withdrawn cpu=0,memory=0")
	awaitList(t, list, placed)
	kubetest.Edit(t, list, func(o client.Object) {
		o.(*corev1.ConfigMap).Data = map[string]string{user: "pool=gold,zone=a", "other": "pool=silver"}
	}, kubetest.WriteSpec)
	awaitList(t, list, placed)
	kubetest.Remove(t, list)
	awaitList(t, list, placed)

	// The next leader finds it.
	o.stop()
	startOperator(t, listing)
	awaitList(t, list, placed)
	kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "1") }))
	awaitAnswer(t, mine, "Accepted Capped cpu=1,memory=4Gi")
	awaitList(t, list, nil)
}

func TestASliceThatCannotBeListedIsNotAnswered(t *testing.T) {
	installSliceCRDs(t)
	list, listing := newPlacements(t)
	kubetest.Edit(t, list, func(o client.Object) { o.(*corev1.ConfigMap).Immutable = new(true) }, kubetest.WriteSpec)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	kubetest.Create(t, classGold(enforcing))
	kubetest.Create(t, kubetest.Policy("free", kubetest.Fixed("cpu", "1"), inClass("silver")))
	rome := newTenancy(t, "rome")
	o := startOperator(t, listing)

	mine := rome.ask("mine", nodestest.List("cpu", "2", "memory", "4Gi"))
	// The decision is made, but not written.
	o.eventually(func() string {
		for s := range o.table.Current().Slices.All {
			if s.Name == "mine" && s.Accepted() {
				return ""
			}
		}
		return "no decision on the slice"
	})
	free := rome.ask("free", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "silver" })
	awaitAnswer(t, free, "Accepted Granted cpu=1")
	if got := summarize(answerOf(t, mine)); got != "" {
		t.Errorf("a slice without an entry has the answer %q", got)
	}

	kubetest.Remove(t, list)
	awaitAnswer(t, mine, "Accepted Granted cpu=2,memory=4Gi")
	awaitList(t, list, map[string]string{creatorOf("mine", "rome"): "pool=gold"})
}

// The user of a slice with a long name is no key of a ConfigMap.
func TestASliceWithoutRoomOnTheListHasAnEvent(t *testing.T) {
	installSliceCRDs(t)
	list, listing := newPlacements(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	kubetest.Create(t, classGold(enforcing))
	rome := newTenancy(t, "rome")
	startOperator(t, listing)
	name := strings.Repeat("long", 60) + "name"
	long := rome.ask(name, nodestest.List("cpu", "2", "memory", "4Gi"))
	expectEvent(t, name, "NotAnswered", "the list of placements has no room for more slices of this consumer")
	if got := summarize(answerOf(t, long)); got != "" {
		t.Errorf("it has the answer %q", got)
	}
	awaitList(t, list, map[string]string{"_rome": ""})
}

func TestNamespacesOfConsumersAreRaisedToTheLevel(t *testing.T) {
	create := func(name string, labels map[string]string) *corev1.Namespace {
		return kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: name + "-", Labels: labels, Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/milan"},
		}})
	}
	const enforce, id = "pod-security.kubernetes.io/enforce", "liqo.io/remote-cluster-id"
	before := create("before", map[string]string{id: "rome"})
	tenant := create("tenant", map[string]string{id: "rome", "liqo.io/tenant-namespace": "true"})
	own := create("own", nil)
	strict := create("strict", map[string]string{id: "rome", enforce: "restricted"})
	startOperator(t, withElection(longLease(t)), func(o *parts) { o.podSecurity = podsecurity.Level("baseline") })
	after := create("after", map[string]string{id: "rome", enforce: "privileged"})

	level := func(namespace *corev1.Namespace) string {
		var now corev1.Namespace
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(namespace), &now); err != nil {
			t.Fatal(err)
		}
		return now.Labels[enforce]
	}
	for _, namespace := range []*corev1.Namespace{before, after} {
		kubetest.Eventually(t, func() string { return cmp.Diff("baseline", level(namespace)) })
	}
	for namespace, want := range map[*corev1.Namespace]string{tenant: "", own: "", strict: "restricted"} {
		if got := level(namespace); got != want {
			t.Errorf("namespace %s has the level %q, want %q", namespace.Name, got, want)
		}
	}
	// A level that is lowered later is raised again.
	kubetest.Edit(t, before, func(o client.Object) { o.SetLabels(map[string]string{id: "rome"}) }, kubetest.WriteSpec)
	kubetest.Eventually(t, func() string { return cmp.Diff("baseline", level(before)) })
}
