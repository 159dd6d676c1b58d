package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

// tenancy is a consumer as Liqo registers it: a namespace and a Tenant.
type tenancy struct {
	t         *testing.T
	id        string
	namespace *corev1.Namespace
	tenant    *unstructured.Unstructured
}

// useSlices has the kinds of Liqo v1 that slices need, for the time of the test.
func useSlices(t *testing.T) {
	t.Helper()
	kubetest.Install(t, controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"))
	kubetest.Install(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	t.Cleanup(func() {
		if err := kubetest.API(t).DeleteAllOf(context.Background(), &v1alpha1.Grant{}, client.InNamespace(namespaceOf(nil))); err != nil {
			t.Error(err)
		}
	})
}

func newTenancy(t *testing.T, id string) *tenancy {
	t.Helper()
	y := &tenancy{t: t, id: id}
	y.namespace = kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "liqo-tenant-" + id + "-", Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": id},
	}})
	y.tenant = y.addTenant(id)
	return y
}

func (y *tenancy) addTenant(name string) *unstructured.Unstructured {
	y.t.Helper()
	return kubetest.Create(y.t, kubetest.OfLiqo(y.t, "authentication.liqo.io/v1beta1", "Tenant", &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: y.namespace.Name},
		Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(y.id), TenantCondition: authv1beta1.TenantConditionActive},
	}))
}

func (y *tenancy) become(condition string) {
	y.t.Helper()
	kubetest.Edit(y.t, y.tenant, func(o client.Object) { kubetest.SetField(o, condition, "spec", "tenantCondition") }, kubetest.WriteSpec)
}

// ask makes a slice of the class gold, authenticated.
func (y *tenancy) ask(name string, resources corev1.ResourceList, with ...func(*authv1beta1.ResourceSlice)) *unstructured.Unstructured {
	y.t.Helper()
	return kubetest.CreateSlice(y.t, kubetest.Slice(name, append([]func(*authv1beta1.ResourceSlice){func(s *authv1beta1.ResourceSlice) {
		s.Namespace, s.Spec.Resources = y.namespace.Name, resources
		s.Spec.ConsumerClusterID = new(corev1beta1.ClusterID(y.id))
		s.Labels["liqo.io/originID"], s.Labels["liqo.io/remote-cluster-id"] = y.id, y.id
	}}, with...)...))
}

func askAnew(t *testing.T, slice *unstructured.Unstructured, quantities ...string) {
	t.Helper()
	asked := map[string]any{}
	for pair := range slices.Chunk(quantities, 2) {
		asked[pair[0]] = pair[1]
	}
	kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, asked, "spec", "resources") }, kubetest.WriteSpec)
}

// answer is what stands in a slice, read by Liqo's own types.
type answer struct {
	verdict, reason, message string
	authv1beta1.ResourceSliceStatus
}

// said is an answer in one line: what a test compares.
func said(a answer) string {
	var amounts []string
	for name, q := range a.Resources {
		amounts = append(amounts, string(name)+"="+q.String())
	}
	slices.Sort(amounts)
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", a.verdict, strings.TrimPrefix(a.reason, "Proffer"), strings.Join(amounts, ",")))
}

func answerOf(t *testing.T, slice *unstructured.Unstructured) answer {
	t.Helper()
	u := slice.DeepCopy()
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(slice), u); err != nil {
		t.Fatal(err)
	}
	return readAnswer(t, u)
}

func readAnswer(t *testing.T, u *unstructured.Unstructured) answer {
	t.Helper()
	var s authv1beta1.ResourceSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		t.Fatal(err)
	}
	a := answer{ResourceSliceStatus: s.Status}
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			a.verdict, a.reason, a.message = string(c.Status), c.Reason, c.Message
		}
	}
	return a
}

// overwrite replaces the answer in an object: by nothing, where the verdict is empty.
func overwrite(o client.Object, verdict, reason string, resources map[string]any) {
	status := o.(*unstructured.Unstructured).Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Resources" })
	if verdict != "" {
		conditions = append(conditions, map[string]any{
			"type": "Resources", "status": verdict, "reason": reason, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	for _, field := range []string{"resources", "storageClasses", "ingressClasses", "loadBalancerClasses", "nodeLabels", "nodeSelector"} {
		delete(status, field)
	}
	status["conditions"] = conditions
	if resources != nil {
		status["resources"] = resources
	}
}

// answered waits until the slice is answered so.
func answered(t *testing.T, slice *unstructured.Unstructured, want string) answer {
	t.Helper()
	var a answer
	kubetest.Eventually(t, func() string {
		a = answerOf(t, slice)
		return cmp.Diff(want, said(a))
	})
	return a
}

// answeredWith waits for a message too.
func answeredWith(t *testing.T, slice *unstructured.Unstructured, want, message string) {
	t.Helper()
	answered(t, slice, want)
	kubetest.Eventually(t, func() string { return cmp.Diff(message, answerOf(t, slice).message) })
}

// classGold is a policy for the class gold, of the nodes that a test makes with nodestest.Node(..., nodestest.NodeLabel("pool", "gold")).
func classGold(edits ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	return kubetest.Policy("standard", append([]func(*v1alpha1.ResourcePolicySpec){
		kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "gold"})),
		func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold"; s.UpdateThresholdPercent = new(int32(0)) },
	}, edits...)...)
}

func goldNode(t *testing.T, name string, quantities ...string) *corev1.Node {
	t.Helper()
	return kubetest.Create(t, nodestest.Node(name, nodestest.List(quantities...), nodestest.NodeLabel("pool", "gold")))
}

func TestASliceIsAnsweredFromItsPolicy(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	policy := kubetest.Create(t, classGold())
	rome := newTenancy(t, "rome")
	startOperator(t)

	full := rome.ask("full", nodestest.List("cpu", "2", "memory", "4Gi"))
	answeredWith(t, full, "Accepted Granted cpu=2,memory=4Gi", "granted in full by policy standard")
	capped := rome.ask("capped", nodestest.List("cpu", "8", "memory", "4Gi", "nvidia.com/gpu", "1"))
	answeredWith(t, capped, "Accepted Capped cpu=6,memory=4Gi",
		"granted 6 of 8 cpu: policy standard leaves 6 for this cluster; 0 of 1 nvidia.com/gpu: policy standard does not offer it")
	late := rome.ask("late", nodestest.List("cpu", "1"))
	answeredWith(t, late, "Denied Denied", "denied: 1 cpu asked, but policy standard leaves 0 for this cluster")

	// Asked anew.
	askAnew(t, full, "cpu", "1", "memory", "4Gi")
	answered(t, full, "Accepted Granted cpu=1,memory=4Gi")
	answered(t, capped, "Accepted Capped cpu=7,memory=4Gi")
	kubetest.Remove(t, capped)
	answered(t, late, "Accepted Granted cpu=1")

	// The policy and its status.
	kubetest.Eventually(t, func() string {
		status := statusOfPolicy(t, "standard")
		if status.Slices == nil || len(status.Offers) == 0 {
			return "no slices in the status yet"
		}
		cpu := status.Committed["cpu"]
		return cmp.Diff("2 slices, rome 2 slices, granted 2, committed 2", fmt.Sprintf("%d slices, %s %d slices, granted %s, committed %s",
			*status.Slices, status.Offers[0].ClusterID, status.Offers[0].Slices, status.Offers[0].Granted.Cpu(), cpu.String()))
	})
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "1500m") })
	answered(t, full, "Accepted Granted cpu=1,memory=4Gi")
	answeredWith(t, late, "Accepted Capped cpu=500m", "granted 500m of 1 cpu: policy standard gives this cluster at most 1.5, of which its other slices have 1")
}

func TestAnAnswerCarriesWhatThePolicySaysOfVirtualNodes(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	storage := kubetest.Unstructured(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.com/p",
	})
	storage.SetAPIVersion("storage.k8s.io/v1")
	storage.SetKind("StorageClass")
	kubetest.Create(t, storage)
	policy := kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices = &v1alpha1.Slices{
			Defaults: kubetest.Quantities("cpu", "2"), NodeLabels: v1alpha1.Labels{"tier": "gold", "zone": "a"},
			IngressClasses: []v1alpha1.ClassName{"nginx", "other"},
		}
	}))
	startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nil)
	answered(t, slice, "Accepted Granted cpu=2")
	want := authv1beta1.ResourceSliceStatus{
		StorageClasses: []corev1beta1.StorageType{{StorageClassName: "fast", Default: true}},
		IngressClasses: []corev1beta1.IngressType{{IngressClassName: "nginx", Default: true}, {IngressClassName: "other"}},
		NodeLabels:     map[string]string{"tier": "gold", "zone": "a"}, NodeSelector: map[string]string{"pool": "gold"},
	}
	compare := func() string {
		got := answerOf(t, slice).ResourceSliceStatus
		got.Conditions, got.AuthParams, got.Resources = nil, nil, nil
		return cmp.Diff(want, got, cmpopts.EquateEmpty())
	}
	kubetest.Eventually(t, compare)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.StorageClasses, s.Slices.IngressClasses = []v1alpha1.ClassName{"slow", "fast"}, nil
		s.Slices.NodeLabels, s.Slices.NodeSelector = v1alpha1.Labels{"tier": "gold"}, v1alpha1.Labels{}
	})
	want = authv1beta1.ResourceSliceStatus{
		StorageClasses: []corev1beta1.StorageType{{StorageClassName: "slow", Default: true}, {StorageClassName: "fast"}},
		NodeLabels:     map[string]string{"tier": "gold"},
	}
	kubetest.Eventually(t, compare)
	expectEvent(t, "s", "LabelsStay", "zone, pool")
}

func TestOffersAndStatusesKnowTheGrants(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "8Gi", "pods", "10")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "3"))
	answered(t, slice, "Accepted Granted cpu=3")
	o.eventually(func() string {
		return cmp.Diff([]int64{8000, 5000}, []int64{o.offered("rome")["gold"]["cpu"], o.offered("oslo")["gold"]["cpu"]})
	})
	kubetest.Eventually(t, func() string {
		s := statusOfPolicy(t, "standard")
		return cmp.Diff("8 3 5", fmt.Sprintf("%s %s %s", s.Capacity.Cpu(), s.Committed.Cpu(), s.Remaining.Cpu()))
	})
	kubetest.Remove(t, slice)
	o.eventually(func() string { return cmp.Diff(int64(8000), o.offered("oslo")["gold"]["cpu"]) })
}

func TestAnAnswerThatSomebodyElseChangesIsRestored(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	metrics := prometheus.NewPedanticRegistry()
	startOperator(t, func(o *parts) { o.metrics = metrics })
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "2"))
	answered(t, slice, "Accepted Granted cpu=2")
	for _, tamper := range []struct {
		name string
		with func(*unstructured.Unstructured)
	}{
		{"more", func(u *unstructured.Unstructured) {
			kubetest.SetField(u, map[string]any{"cpu": "999"}, "status", "resources")
		}},
		{"nothing", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status", "resources") }},
		{"denied", func(u *unstructured.Unstructured) {
			overwrite(u, "Denied", "ByMe", nil)
		}},
		{"no condition", func(u *unstructured.Unstructured) { overwrite(u, "", "", nil) }},
		{"a label", func(u *unstructured.Unstructured) {
			kubetest.SetField(u, map[string]any{"a": "b"}, "status", "nodeSelector")
		}},
	} {
		kubetest.Edit(t, slice, func(o client.Object) { tamper.with(o.(*unstructured.Unstructured)) }, kubetest.WriteStatus)
		changed := slice.GetResourceVersion()
		kubetest.Eventually(t, func() string {
			var u unstructured.Unstructured
			u.SetGroupVersionKind(slice.GroupVersionKind())
			if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(slice), &u); err != nil {
				t.Fatal(err)
			}
			if u.GetResourceVersion() == changed {
				return tamper.name + ": nothing was written yet"
			}
			a := readAnswer(t, &u)
			return cmp.Diff("Accepted Granted cpu=2", said(a)) + cmp.Diff(map[string]string{"pool": "gold"}, a.NodeSelector)
		})
	}
	expectEvent(t, "s", "Restored", "Somebody else had changed the answer")
	kubetest.Eventually(t, func() string {
		err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP proffer_slice_restores_total Answers in ResourceSlices that others had changed, and that were restored.
# TYPE proffer_slice_restores_total counter
proffer_slice_restores_total 5
`), "proffer_slice_restores_total")
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestWhatAConsumerGrantsItselfBeforeItIsAnsweredIsTakenBack(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "1")
	policy := kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Slices = &v1alpha1.Slices{OnExcess: v1alpha1.OnExcessDeny} }))
	startOperator(t)
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "8"), func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = append(s.Status.Conditions, kubetest.Condition("Resources", "Accepted"))
		s.Status.Resources = nodestest.List("cpu", "8", "nvidia.com/gpu", "2")
	})
	// A denial would leave the Quota of what it granted itself.
	answered(t, slice, "Accepted Capped cpu=0,memory=0,nvidia.com/gpu=0")
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.OnExcess = v1alpha1.OnExcessCap })
	answered(t, slice, "Accepted Capped cpu=1,memory=0,nvidia.com/gpu=0")
}

func TestAClassThatMovesBothWays(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, nodestest.Node("silver-1", nodestest.List("cpu", "4"), nodestest.NodeLabel("pool", "silver")))
	kubetest.Create(t, classGold())
	kubetest.Create(t, kubetest.Policy("silver", kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "silver"})), func(s *v1alpha1.ResourcePolicySpec) { s.Class = "silver" }))
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	slice, other := rome.ask("s", nodestest.List("cpu", "8")), rome.ask("t", nodestest.List("cpu", "8"))
	answered(t, slice, "Accepted Granted cpu=8")
	answered(t, other, "Denied Denied")
	move := func(class string) {
		t.Helper()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class, "spec", "class") }, kubetest.WriteSpec)
	}
	move("silver")
	answered(t, slice, "Accepted Capped cpu=4")
	answered(t, other, "Accepted Granted cpu=8")
	// A class that nobody answers leaves the slice the Quota that it has, so what it was granted still counts.
	move("bronze")
	o.caughtUp()
	answered(t, slice, "Accepted Capped cpu=4")
	o.eventually(func() string { return cmp.Diff(int64(0), o.offered("oslo")["silver"]["cpu"]) })
	kubetest.Remove(t, other)
	move("default")
	o.eventually(func() string { return cmp.Diff(int64(4000), o.offered("oslo")["silver"]["cpu"]) })
	// Liqo grants all that is asked for.
	kubetest.Edit(t, slice, func(o client.Object) {
		overwrite(o, "Accepted", "ResourceSliceResourcesAccepted", map[string]any{"cpu": "64"})
	}, kubetest.WriteStatus)
	o.caughtUp()
	answered(t, slice, "Accepted ResourceSliceResourcesAccepted cpu=64")
	move("gold")
	answered(t, slice, "Accepted Granted cpu=8,memory=0")
}

// Of a slice with pods in many classes that it has left there is a bound on what can be on record: then it is granted nothing more.
func TestASliceThatLeavesPodsInTooManyClassesIsGrantedNoMore(t *testing.T) {
	useSlices(t)
	rome := newTenancy(t, "rome")
	class := func(i int) string { return fmt.Sprintf("class-%d", i) }
	const classes = v1alpha1.MaxEarlierGrants + 2
	var pods []*corev1.Pod
	for i := range classes {
		kubetest.Create(t, nodestest.Node(class(i), nodestest.List("cpu", "8"), nodestest.NodeLabel("pool", class(i))))
		kubetest.Create(t, kubetest.Policy(class(i), kubetest.Selecting(kubetest.Matching(map[string]string{"pool": class(i)})), func(s *v1alpha1.ResourcePolicySpec) { s.Class = class(i) }))
		pods = append(pods, kubetest.Create(t, nodestest.Pod("in-"+class(i), class(i), nodestest.List("cpu", "1"), nodestest.PodLabel(originLabel, "rome"), nodestest.PodLabel("liqo.io/creator-user", creatorOf("s", "rome")))))
	}
	startOperator(t)
	slice := rome.ask("s", nodestest.List("cpu", "4"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = authv1beta1.ResourceSliceClass(class(0)) })
	answered(t, slice, "Accepted Granted cpu=4")
	move := func(i int) {
		t.Helper()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class(i), "spec", "class") }, kubetest.WriteSpec)
	}
	granted := func(i int) {
		t.Helper()
		kubetest.Eventually(t, func() string { return cmp.Diff("granted in full by policy "+class(i), answerOf(t, slice).message) })
	}
	const last = classes - 1
	for i := 1; i < last; i++ {
		move(i)
		granted(i)
	}
	move(last)
	expectEvent(t, "s", "NotRecorded", "cannot be recorded")
	granted(last - 1)
	move(last - 1)
	for _, pod := range pods {
		kubetest.Remove(t, pod)
	}
	kubetest.Eventually(t, func() string {
		var list v1alpha1.GrantList
		if err := kubetest.API(t).List(t.Context(), &list, client.InNamespace(namespaceOf(nil))); err != nil {
			return err.Error()
		}
		return cmp.Diff(0, len(list.Items[0].Spec.Earlier))
	})
	move(last)
	granted(last)
}

func TestAPolicyThatIsDeletedUnderLiveGrants(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, nodestest.Pod("of-a", "gold-1", nodestest.List("cpu", "3"), nodestest.PodLabel(originLabel, "a")))
	policy := kubetest.Create(t, classGold())
	startOperator(t)
	// Slices of one second are of an age by their names.
	used, unused, denied := newTenancy(t, "a").ask("used", nodestest.List("cpu", "4")), newTenancy(t, "b").ask("unused", nodestest.List("cpu", "4")), newTenancy(t, "c").ask("none", nodestest.List("cpu", "4"))
	answered(t, used, "Accepted Granted cpu=4")
	answered(t, unused, "Accepted Granted cpu=4")
	answered(t, denied, "Denied Denied")
	kubetest.Remove(t, policy)
	answeredWith(t, used, "Accepted Withdrawn cpu=3", "granted 3 of 4 cpu: no policy of the provider serves this cluster in this class any more")
	answered(t, unused, "Accepted Withdrawn cpu=0")
	answered(t, denied, "Denied Withdrawn")
	kubetest.Create(t, classGold())
	answered(t, used, "Accepted Granted cpu=4")
	answered(t, unused, "Accepted Granted cpu=4")
}

func TestCordonAndDrain(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	slice := rome.ask("old", nodestest.List("cpu", "2"))
	answered(t, slice, "Accepted Granted cpu=2")
	rome.become("Cordoned")
	fresh := rome.ask("fresh", nodestest.List("cpu", "1"))
	answeredWith(t, fresh, "Denied Cordoned", "denied: 1 cpu asked, but the provider has cordoned this cluster and grants it nothing new")
	askAnew(t, slice, "cpu", "4")
	answered(t, slice, "Accepted Cordoned cpu=2")
	askAnew(t, slice, "cpu", "1")
	answered(t, slice, "Accepted Granted cpu=1")
	rome.become("Active")
	answered(t, fresh, "Accepted Granted cpu=1")

	rome.become("Drained")
	o.eventually(func() string { return cmp.Diff(int64(8000), o.offered("oslo")["gold"]["cpu"]) })
	// What Liqo writes then is left alone.
	kubetest.Edit(t, slice, func(o client.Object) {
		overwrite(o, "Denied", "ResourceSliceResourcesDenied", nil)
	}, kubetest.WriteStatus)
	o.caughtUp()
	answered(t, slice, "Denied ResourceSliceResourcesDenied")
	rome.become("Active")
	answered(t, slice, "Accepted Granted cpu=1")
}

func TestSlicesThatAreNotAnswered(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	remains := func(want int64) {
		t.Helper()
		o.eventually(func() string { return cmp.Diff(want, o.offered("nobody")["gold"]["cpu"]) })
	}

	t.Run("a class that no policy serves", func(t *testing.T) {
		bronze := rome.ask("bronze", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "bronze" })
		expectEvent(t, "bronze", "NotServed", "No ResourcePolicy is for the class bronze")
		answered(t, bronze, "")
	})
	t.Run("the wrong namespace", func(t *testing.T) {
		stray := rome.ask("stray", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Namespace = metav1.NamespaceDefault })
		expectEvent(t, "stray", "NotAnswered", "not in the tenant namespace of its consumer")
		answered(t, stray, "")
	})
	t.Run("not authenticated yet", func(t *testing.T) {
		early := rome.ask("early", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil })
		o.caughtUp()
		answered(t, early, "")
		kubetest.Edit(t, early, func(o client.Object) {
			kubetest.SetField(o, []any{map[string]any{"type": "Authentication", "status": "Accepted"}}, "status", "conditions")
		}, kubetest.WriteStatus)
		answered(t, early, "Accepted Granted cpu=1")
		kubetest.Remove(t, early)
	})
	t.Run("two Tenants, and none", func(t *testing.T) {
		slice := rome.ask("s", nodestest.List("cpu", "2"))
		answered(t, slice, "Accepted Granted cpu=2")
		second := rome.addTenant("second")
		expectEvent(t, "s", "NotAnswered", "more than one Tenant")
		askAnew(t, slice, "cpu", "4")
		o.caughtUp()
		answered(t, slice, "Accepted Granted cpu=2")
		remains(6000)
		kubetest.Remove(t, second)
		answered(t, slice, "Accepted Granted cpu=4")
		kubetest.Remove(t, rome.tenant)
		expectEvent(t, "s", "NotAnswered", "no Tenant of its consumer")
		askAnew(t, slice, "cpu", "1")
		o.caughtUp()
		// Nobody can be told, so what was granted stays granted.
		answered(t, slice, "Accepted Granted cpu=4")
		remains(4000)
		rome.tenant = rome.addTenant("rome")
		answered(t, slice, "Accepted Granted cpu=1")
		kubetest.Remove(t, slice)
	})
	t.Run("labels that a consumer takes off", func(t *testing.T) {
		slice := rome.ask("s", nodestest.List("cpu", "2"))
		answered(t, slice, "Accepted Granted cpu=2")
		kubetest.Edit(t, slice, func(o client.Object) { o.SetLabels(nil) }, kubetest.WriteSpec)
		o.caughtUp()
		remains(6000)
		kubetest.Remove(t, slice)
		remains(8000)
	})
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "8Gi")
	kubetest.Create(t, classGold())
	startOperator(t)
	rome := newTenancy(t, "rome")
	many := map[string]any{"cpu": "1"}
	for i := range 499 {
		many[fmt.Sprint("example.com/r", i)] = "1"
	}
	long := "example.com/" + strings.Repeat("x", 10_000)
	for i, tc := range []struct {
		name          string
		asks          map[string]any
		want, message string
	}{
		{"nothing", map[string]any{}, "Denied Denied", "denied: nothing is asked for, and policy standard has no defaults: write resources in the request"},
		{"zero", map[string]any{"cpu": "0"}, "Denied Denied", "denied: nothing is asked for"},
		{"negative", map[string]any{"cpu": "-1"}, "Denied InvalidRequest", "denied: asks for -1 cpu: write 0 or more"},
		{"beyond int64", map[string]any{"memory": "9223372036854775808"}, "Accepted Capped memory=8Gi", "granted 8Gi of 7.99Ei memory: policy standard leaves 8Gi for this cluster"},
		{"unknown", map[string]any{"cpu": "1", "example.com/what": "1"}, "Accepted Capped cpu=1", "granted 0 of 1 example.com/what: policy standard does not offer it"},
		{"a very long name", map[string]any{"cpu": "1", long: "1"}, "Denied InvalidRequest", `denied: asks for the resource "example.com/xxx`},
		{"500 resources", many, "Denied InvalidRequest", "denied: asks for 500 resources: write at most 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			slice := rome.ask(fmt.Sprint("s", i), nil)
			if len(tc.asks) > 0 {
				kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, tc.asks, "spec", "resources") }, kubetest.WriteSpec)
			}
			a := answered(t, slice, tc.want)
			if !strings.HasPrefix(a.message, tc.message) {
				t.Errorf("got %q, want %q", a.message, tc.message)
			}
			kubetest.Remove(t, slice)
		})
	}

	// An invalid request takes nothing that was granted before.
	slice := rome.ask("kept", nodestest.List("cpu", "2"))
	answered(t, slice, "Accepted Granted cpu=2")
	askAnew(t, slice, "cpu", "-2")
	answered(t, slice, "Accepted InvalidRequest cpu=2")
	// Neither labels nor annotations say anything.
	hostile := rome.ask("hostile", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) {
		for i := range 100 {
			s.Labels[fmt.Sprint("liqo.io/x", i)] = strings.Repeat("y", 63)
		}
		s.Annotations = map[string]string{"liqo.io/cordon": strings.Repeat("z", 100_000)}
	})
	answered(t, hostile, "Accepted Granted cpu=1")
}

func TestANewLeaderKeepsWhatWasGranted(t *testing.T) {
	useSlices(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	first := startOperator(t)
	rome := newTenancy(t, "rome")
	young := rome.ask("young", nodestest.List("cpu", "6"))
	answered(t, young, "Accepted Granted cpu=6")
	first.stop()
	version := func() string {
		u := young.DeepCopy()
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(young), u); err != nil {
			t.Fatal(err)
		}
		return u.GetResourceVersion()
	}
	before := version()
	late := rome.ask("late", nodestest.List("cpu", "6"))
	second := startOperator(t)
	answered(t, late, "Accepted Capped cpu=2")
	second.caughtUp()
	if after := version(); after != before {
		t.Error("a grant that nothing had changed was written anew")
	}
}

// creatorOf is the label that Liqo sets on the pods that run under a slice of a consumer.
func creatorOf(slice, consumer string) string {
	sum := sha256.Sum256([]byte(consumer))
	return fmt.Sprintf("%s-%x", slice, sum[:6])
}
