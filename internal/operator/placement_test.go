package operator

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// newPlacements returns the operator's list of placements, in the namespace of a Lease of its own.
// The operator creates it.
func newPlacements(t *testing.T) (list *v1alpha1.AdmissionParams, with func(*parts)) {
	t.Helper()
	election := longLease(t)
	list = &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: election.Namespace, Name: "placements"}}
	return list, func(o *parts) { o.LeaderElection, o.Placements = election, list.Name }
}

// awaitPlacements waits until the operator has written exactly these entries, with the mark of this generation.
func awaitPlacements(t *testing.T, list *v1alpha1.AdmissionParams, want map[string]string) {
	t.Helper()
	test.Eventually(t, func() string {
		var now v1alpha1.AdmissionParams
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(list), &now); err != nil {
			return err.Error()
		}
		all := map[string]string{".complete": fmt.Sprintf("%s/%d", now.UID, now.Generation)}
		maps.Copy(all, want)
		return cmp.Diff(all, now.Data)
	})
}

func enforcing(s *v1alpha1.ResourcePolicySpec) {
	s.Slices = &v1alpha1.Slices{EnforcePlacement: true, Defaults: v1alpha1.Quantities{}}
}

func retaining(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimRetain }

// versionOf returns the resourceVersion that the object has now.
func versionOf(t *testing.T, object client.Object) string {
	t.Helper()
	now, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T", object)
	}
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), now))
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
	awaitAnswer(t, mine, "Accepted Incomplete cpu=2,memory=4Gi")
	gold := map[string]string{user: "pool=gold"}
	awaitPlacements(t, list, gold)
	if order, err := resourceversion.CompareResourceVersion(versionOf(t, list), versionOf(t, mine)); err != nil || order >= 0 {
		t.Errorf("the list was written after the answer, or not compared: %v", err)
	}

	// Another slice is denied: it has nothing, and is not listed.
	awaitAnswer(t, rome.ask("late", nodestest.List("nvidia.com/gpu", "1")), "Denied Denied")
	awaitPlacements(t, list, gold)

	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.NodeSelector = v1alpha1.Labels{"zone": "a", "pool": "gold"}
	})
	placed := map[string]string{user: "pool=gold,zone=a"}
	awaitPlacements(t, list, placed)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.EnforcePlacement = false })
	awaitPlacements(t, list, nil)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.EnforcePlacement = true })
	awaitPlacements(t, list, placed)

	// What others write is undone, and a list that is deleted comes back, also without a policy.
	kubetest.Remove(t, policy)
	awaitAnswer(t, mine, "Accepted Withdrawn cpu=0,memory=0")
	awaitPlacements(t, list, placed)
	kubetest.Edit(t, list, func(o client.Object) {
		o.(*v1alpha1.AdmissionParams).Data = map[string]string{user: "pool=gold,zone=a", "other": "pool=silver"}
	}, kubetest.WriteSpec)
	awaitPlacements(t, list, placed)
	kubetest.Remove(t, list)
	awaitPlacements(t, list, placed)
	// What is required of a slice without a policy stands only in the list.
	kubetest.Edit(t, list, func(o client.Object) { o.(*v1alpha1.AdmissionParams).Data = nil }, kubetest.WriteSpec)
	awaitPlacements(t, list, placed)

	// The next leader finds it, and undoes what was written meanwhile.
	o.stop()
	kubetest.Edit(t, list, func(o client.Object) { o.(*v1alpha1.AdmissionParams).Data["other"] = "pool=silver" }, kubetest.WriteSpec)
	startOperator(t, listing)
	awaitPlacements(t, list, placed)
	kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "1") }))
	awaitAnswer(t, mine, "Accepted Capped cpu=1,memory=4Gi")
	awaitPlacements(t, list, nil)
}

// The slice asks for a node of zone b. Its seat is deleted, and it gets the other one of that zone.
func TestTheListTheAnswerAndTheGrantNameTheSameSeat(t *testing.T) {
	installSliceCRDs(t)
	list, listing := newPlacements(t)
	nodes := map[string]*corev1.Node{}
	for name, zone := range map[string]string{"gold-1": "a", "gold-2": "b", "gold-3": "b"} {
		nodes[name] = kubetest.Create(t, nodestest.Node(name, nodestest.List("cpu", "8", "memory", "16Gi", "pods", "10"),
			nodestest.NodeLabel("pool", "gold"), nodestest.NodeLabel("zone", zone), nodestest.NodeLabel("example.com/alias", "alias-of-"+name)))
	}
	kubetest.Create(t, classGold(enforcing, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.Fit, s.Slices.NodeKey, s.Slices.RequestKeys = v1alpha1.FitNode, "example.com/alias", []v1alpha1.LabelKey{"zone"}
	}))
	rome := newTenancy(t, "rome")
	startOperator(t, listing)

	mine := rome.ask("mine", nodestest.List("cpu", "2", "memory", "4Gi", "pods", "2"), func(s *authv1beta1.ResourceSlice) {
		s.Annotations = map[string]string{"proffer.dev/node-selector": "zone=b"}
	})
	for _, seat := range []string{"gold-2", "gold-3"} {
		test.Eventually(t, func() string {
			want := map[string]string{"pool": "gold", "example.com/alias": "alias-of-" + seat}
			return cmp.Diff(want, answerOf(t, mine).NodeSelector)
		})
		awaitAnswer(t, mine, "Accepted Granted cpu=2,memory=4Gi,pods=2")
		awaitPlacements(t, list, map[string]string{creatorOf("mine", "rome"): "example.com/alias=alias-of-" + seat + ",pool=gold"})
		if order, err := resourceversion.CompareResourceVersion(versionOf(t, list), versionOf(t, mine)); err != nil || order >= 0 {
			t.Errorf("the list was written after the answer, or not compared: %v", err)
		}
		test.Eventually(t, func() string { return cmp.Diff(seat, grantOf(t, list.Namespace, mine).Spec.Seat) })
		kubetest.Remove(t, nodes[seat])
	}
	awaitAnswer(t, mine, "Accepted SeatLost cpu=0,memory=0,pods=0")
	awaitPlacements(t, list, map[string]string{creatorOf("mine", "rome"): "example.com/alias=no-seat.proffer.dev,pool=gold"})
}

// placedSlice is a slice that is listed, with its policy and its operator.
type placedSlice struct {
	o       *operator
	list    *v1alpha1.AdmissionParams
	listing func(*parts)
	policy  *v1alpha1.ResourcePolicy
	user    string
}

// placeSlice starts an operator, which lists a slice under a policy that retains what it grants.
func placeSlice(t *testing.T) *placedSlice {
	t.Helper()
	installSliceCRDs(t)
	p := &placedSlice{user: creatorOf("mine", "rome")}
	p.list, p.listing = newPlacements(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	p.policy = kubetest.Create(t, classGold(enforcing, retaining))
	rome := newTenancy(t, "rome")
	p.o = startOperator(t, p.listing)
	awaitAnswer(t, rome.ask("mine", nodestest.List("cpu", "2", "memory", "4Gi")), "Accepted Incomplete cpu=2,memory=4Gi")
	awaitPlacements(t, p.list, map[string]string{p.user: "pool=gold"})
	return p
}

// The next leader knows what is required from the policy, and without one that it does not know it.
func TestAListThatIsLostWhileNobodyLeadsLiftsNothing(t *testing.T) {
	p := placeSlice(t)
	empty := func() {
		kubetest.Edit(t, p.list, func(o client.Object) { o.(*v1alpha1.AdmissionParams).Data = nil }, kubetest.WriteSpec)
	}
	gone := func() { kubetest.Remove(t, p.list) }
	for _, step := range []struct {
		lose func()
		want string
	}{{empty, "pool=gold"}, {gone, "pool=gold"}, {func() { kubetest.Remove(t, p.policy); empty() }, "?"}, {gone, "?"}} {
		p.o.stop()
		step.lose()
		p.o = startOperator(t, p.listing)
		awaitPlacements(t, p.list, map[string]string{p.user: step.want})
	}
	kubetest.Create(t, classGold(enforcing, retaining))
	awaitPlacements(t, p.list, map[string]string{p.user: "pool=gold"})
}

// Its mark is of an earlier generation, or of a list that was deleted. One change of the list as it is keeps the mark.
func TestACopyOfAnEarlierListLiftsNothing(t *testing.T) {
	p := placeSlice(t)
	list, user := p.list, p.user
	earlier := list.DeepCopy()
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(list), earlier))
	editPolicy(t, p.policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.NodeSelector = v1alpha1.Labels{"zone": "a", "pool": "gold"}
	})
	placed := map[string]string{user: "pool=gold,zone=a"}
	awaitPlacements(t, list, placed)
	kubetest.Remove(t, p.policy) // Then only the list says what is required.

	edit := func(change func(data map[string]string) map[string]string) {
		kubetest.Edit(t, list, func(o client.Object) {
			params := o.(*v1alpha1.AdmissionParams)
			params.Data = change(params.Data)
		}, kubetest.WriteSpec)
	}
	replace := func() { edit(func(map[string]string) map[string]string { return earlier.Data }) }
	lift := func() { edit(func(data map[string]string) map[string]string { delete(data, user); return data }) }
	recreate := func() {
		kubetest.Remove(t, list)
		kubetest.Create(t, &v1alpha1.AdmissionParams{
			ObjectMeta: metav1.ObjectMeta{Namespace: list.Namespace, Name: list.Name}, Data: earlier.Data,
		})
	}
	replace()
	awaitPlacements(t, list, placed)
	for _, step := range []struct {
		change func()
		want   map[string]string
	}{{replace, map[string]string{user: "?"}}, {lift, nil}, {recreate, map[string]string{user: "?"}}} {
		p.o.stop()
		step.change()
		p.o = startOperator(t, p.listing)
		awaitPlacements(t, list, step.want)
	}
	lift()
	awaitPlacements(t, list, nil)
}

// The leader of an earlier build wrote another mark.
func TestTheListOfAnEarlierBuildIsBelieved(t *testing.T) {
	p := placeSlice(t)
	kubetest.Remove(t, p.policy)
	p.o.stop()
	kubetest.Edit(t, p.list, func(o client.Object) {
		o.(*v1alpha1.AdmissionParams).Data = map[string]string{p.user: "pool=gold", ".complete": "true"}
	}, kubetest.WriteSpec)
	startOperator(t, p.listing)
	awaitPlacements(t, p.list, map[string]string{p.user: "pool=gold"})
}

// Others can write any mark, such as that of a later generation before a restore of etcd. A write that leaves the data
// as it is does not change the generation.
func TestAMarkOfTheNextGenerationIsReplaced(t *testing.T) {
	p := placeSlice(t)
	kubetest.Edit(t, p.list, func(o client.Object) {
		params := o.(*v1alpha1.AdmissionParams)
		params.Data[".complete"] = fmt.Sprintf("%s/%d", params.UID, params.Generation+2)
	}, kubetest.WriteSpec)
	awaitPlacements(t, p.list, map[string]string{p.user: "pool=gold"})
}

func TestASliceThatCannotBeListedIsNotAnswered(t *testing.T) {
	installSliceCRDs(t)
	list, listing := newPlacements(t)
	lift := noMoreParams(t, list)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	kubetest.Create(t, classGold(enforcing))
	kubetest.Create(t, kubetest.Policy("free", kubetest.Fixed("cpu", "1"), inClass("silver")))
	rome := newTenancy(t, "rome")
	o := startOperator(t, listing)

	mine := rome.ask("mine", nodestest.List("cpu", "2", "memory", "4Gi"))
	// The decision is made, but not written.
	test.Eventually(o.t, func() string {
		for s := range o.table.Current().Slices.All {
			if s.Name == "mine" && s.Accepted() {
				return ""
			}
		}
		return "no decision on the slice"
	})
	free := rome.ask("free", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "silver" })
	awaitAnswer(t, free, "Accepted Incomplete cpu=1")
	if got := summarize(answerOf(t, mine)); got != "" {
		t.Errorf("a slice without an entry has the answer %q", got)
	}

	lift()
	awaitAnswer(t, mine, "Accepted Incomplete cpu=2,memory=4Gi")
	awaitPlacements(t, list, map[string]string{creatorOf("mine", "rome"): "pool=gold"})
}

// noMoreParams has the API server refuse the creation of the list until lift is called.
func noMoreParams(t *testing.T, list *v1alpha1.AdmissionParams) (lift func()) {
	t.Helper()
	const count = "count/admissionparams.proffer.dev"
	quota := kubetest.Create(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: list.Namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: nodestest.List(count, "0")},
	})
	// The controller that maintains the status does not run here.
	kubetest.Edit(t, quota, func(o client.Object) {
		o.(*corev1.ResourceQuota).Status = corev1.ResourceQuotaStatus{Hard: nodestest.List(count, "0"), Used: nodestest.List(count, "0")}
	}, kubetest.WriteStatus)
	test.Eventually(t, func() string {
		err := kubetest.API(t).Create(t.Context(), list.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Sprintf("creating the list: %v, want forbidden", err)
		}
		return ""
	})
	return func() { kubetest.Remove(t, quota) }
}

// The name of the user of a slice with a long name is too long.
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
	awaitPlacements(t, list, map[string]string{"_rome": ""})
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
	startOperator(t, withElection(longLease(t)), func(o *parts) { o.OffloadedPodSecurity = podsecurity.Level("baseline") })
	after := create("after", map[string]string{id: "rome", enforce: "privileged"})

	level := func(namespace *corev1.Namespace) string {
		var now corev1.Namespace
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(namespace), &now))
		return now.Labels[enforce]
	}
	for _, namespace := range []*corev1.Namespace{before, after} {
		test.Eventually(t, func() string { return cmp.Diff("baseline", level(namespace)) })
	}
	for namespace, want := range map[*corev1.Namespace]string{tenant: "", own: "", strict: "restricted"} {
		if got := level(namespace); got != want {
			t.Errorf("namespace %s has the level %q, want %q", namespace.Name, got, want)
		}
	}
	// A level that is lowered later is raised again.
	kubetest.Edit(t, before, func(o client.Object) { o.SetLabels(map[string]string{id: "rome"}) }, kubetest.WriteSpec)
	test.Eventually(t, func() string { return cmp.Diff("baseline", level(before)) })
}
