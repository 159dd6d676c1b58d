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
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// tenancy is a consumer as Liqo registers it: a tenant namespace and a Tenant.
type tenancy struct {
	t         *testing.T
	id        string
	namespace *corev1.Namespace
	tenant    *unstructured.Unstructured
}

// installSliceCRDs installs the CRDs of Liqo v1 that slices need.
func installSliceCRDs(t *testing.T) {
	t.Helper()
	kubetest.Keep(t, controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"))
	kubetest.Keep(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	t.Cleanup(func() {
		test.Check(t, kubetest.API(t).DeleteAllOf(context.Background(), &v1alpha1.Grant{},
			client.InNamespace(namespaceOf(nil))))
	})
}

func newTenancy(t *testing.T, id string) *tenancy {
	t.Helper()
	y := &tenancy{t: t, id: id}
	y.namespace = kubetest.CreateTenantNamespace(t, id)
	y.tenant = y.addTenant(id)
	return y
}

func (y *tenancy) addTenant(name string) *unstructured.Unstructured {
	y.t.Helper()
	return kubetest.Create(y.t, kubetest.Tenant(y.t, y.namespace.Name, name, y.id, nil))
}

func (y *tenancy) setCondition(condition string) {
	y.t.Helper()
	kubetest.Edit(y.t, y.tenant, func(o client.Object) { kubetest.SetField(o, condition, "spec", "tenantCondition") },
		kubetest.WriteSpec)
}

// ask creates an authenticated slice of the class gold.
func (y *tenancy) ask(
	name string, resources corev1.ResourceList, with ...func(*authv1beta1.ResourceSlice),
) *unstructured.Unstructured {
	y.t.Helper()
	own := kubetest.Of(y.namespace.Name, y.id, resources)
	return kubetest.CreateSlice(y.t, kubetest.Slice(name, append([]func(*authv1beta1.ResourceSlice){own}, with...)...))
}

func changeRequest(t *testing.T, slice *unstructured.Unstructured, quantities ...string) {
	t.Helper()
	asked := map[string]any{}
	for pair := range slices.Chunk(quantities, 2) {
		asked[pair[0]] = pair[1]
	}
	kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, asked, "spec", "resources") },
		kubetest.WriteSpec)
}

// answer is the answer in a slice, read with Liqo's own types.
type answer struct {
	verdict, reason, message string
	authv1beta1.ResourceSliceStatus
}

// summarize returns an answer as one line that a test can compare.
func summarize(a answer) string {
	var amounts []string
	for name, q := range a.Resources {
		amounts = append(amounts, string(name)+"="+q.String())
	}
	slices.Sort(amounts)
	return strings.TrimSpace(fmt.Sprintf("%s %s %s",
		a.verdict, strings.TrimPrefix(a.reason, "Proffer"), strings.Join(amounts, ",")))
}

func answerOf(t *testing.T, slice *unstructured.Unstructured) answer {
	t.Helper()
	u := slice.DeepCopy()
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(slice), u))
	return readAnswer(t, u)
}

func readAnswer(t *testing.T, u *unstructured.Unstructured) answer {
	t.Helper()
	var s authv1beta1.ResourceSlice
	test.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s))
	a := answer{ResourceSliceStatus: s.Status}
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			a.verdict, a.reason, a.message = string(c.Status), c.Reason, c.Message
		}
	}
	return a
}

// overwrite replaces the answer in an object. An empty verdict removes it.
func overwrite(o client.Object, verdict, reason string, resources map[string]any) {
	status := o.(*unstructured.Unstructured).Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Resources" })
	if verdict != "" {
		conditions = append(conditions, map[string]any{
			"type": "Resources", "status": verdict, "reason": reason,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	for _, field := range []string{
		"resources", "storageClasses", "ingressClasses", "loadBalancerClasses", "nodeLabels", "nodeSelector",
	} {
		delete(status, field)
	}
	status["conditions"] = conditions
	if resources != nil {
		status["resources"] = resources
	}
}

// awaitAnswer waits until the summary of the slice's answer is want.
func awaitAnswer(t *testing.T, slice *unstructured.Unstructured, want string) answer {
	t.Helper()
	var a answer
	test.Eventually(t, func() string {
		a = answerOf(t, slice)
		return cmp.Diff(want, summarize(a))
	})
	return a
}

// awaitMessage is awaitAnswer that also waits for a message.
func awaitMessage(t *testing.T, slice *unstructured.Unstructured, want, message string) {
	t.Helper()
	awaitAnswer(t, slice, want)
	test.Eventually(t, func() string { return cmp.Diff(message, answerOf(t, slice).message) })
}

// classGold returns a policy for the class gold, without defaults for requests. It selects the nodes that goldNode creates.
func classGold(edits ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	return kubetest.Policy("standard", append([]func(*v1alpha1.ResourcePolicySpec){
		kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "gold"})),
		func(s *v1alpha1.ResourcePolicySpec) {
			s.Class, s.UpdateThresholdPercent = "gold", new(int32(0))
			s.Slices = &v1alpha1.Slices{Defaults: v1alpha1.Quantities{}}
		},
	}, edits...)...)
}

func goldNode(t *testing.T, name string, quantities ...string) *corev1.Node {
	t.Helper()
	return kubetest.Create(t, nodestest.Node(name, nodestest.List(quantities...), nodestest.NodeLabel("pool", "gold")))
}

func TestASliceIsAnsweredFromItsPolicy(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	policy := kubetest.Create(t, classGold())
	rome := newTenancy(t, "rome")
	startOperator(t)

	full := rome.ask("full", nodestest.List("cpu", "2", "memory", "4Gi", "pods", "2"))
	awaitMessage(t, full, "Accepted Granted cpu=2,memory=4Gi,pods=2", "granted in full by policy standard")
	capped := rome.ask("capped", nodestest.List("cpu", "8", "memory", "4Gi", "pods", "2", "nvidia.com/gpu", "1"))
	awaitMessage(t, capped, "Accepted Capped cpu=6,memory=4Gi,pods=2",
		"granted 6 of 8 cpu: policy standard leaves 6 for this cluster; 0 of 1 nvidia.com/gpu: policy standard does not offer it")
	late := rome.ask("late", nodestest.List("cpu", "1"))
	awaitMessage(t, late, "Denied Denied", "denied: 1 cpu asked, but policy standard leaves 0 for this cluster")

	// The requests change.
	changeRequest(t, full, "cpu", "1", "memory", "4Gi", "pods", "2")
	awaitAnswer(t, full, "Accepted Granted cpu=1,memory=4Gi,pods=2")
	awaitAnswer(t, capped, "Accepted Capped cpu=7,memory=4Gi,pods=2")
	kubetest.Remove(t, capped)
	awaitAnswer(t, late, "Accepted Incomplete cpu=1")

	// The status of the policy counts them, and an edit of the policy changes the answers.
	test.Eventually(t, func() string {
		status := statusOfPolicy(t, "standard")
		if status.Slices == nil || len(status.Offers) == 0 {
			return "no slices in the status yet"
		}
		cpu := status.Committed["cpu"]
		got := fmt.Sprintf("%d slices, %s %d slices, granted %s, committed %s", *status.Slices,
			status.Offers[0].ClusterID, status.Offers[0].Slices, status.Offers[0].Granted.Cpu(), cpu.String())
		return cmp.Diff("2 slices, rome 2 slices, granted 2, committed 2", got)
	})
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "1500m") })
	awaitAnswer(t, full, "Accepted Granted cpu=1,memory=4Gi,pods=2")
	awaitMessage(t, late, "Accepted Capped cpu=500m",
		"granted 500m of 1 cpu: policy standard gives this cluster at most 1.5, of which its other slices have 1; "+
			"a virtual node without memory and pods runs no pods: write amounts in the request, such as memory: 8Gi, pods: 110")
}

func TestASliceWithoutAmountsGetsTheDefaultsOfLiqo(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "64Gi", "pods", "40", "ephemeral-storage", "100Gi")
	policy := kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) { s.Slices = nil }))
	rome := newTenancy(t, "rome")
	startOperator(t)
	slice := rome.ask("plain", nil)
	awaitMessage(t, slice, "Accepted Granted cpu=4,ephemeral-storage=20Gi,memory=8Gi,pods=40",
		"granted 40 of 110 pods by default: policy standard leaves 40 for this cluster")
	changeRequest(t, slice, "cpu", "2", "pods", "10")
	awaitMessage(t, slice, "Accepted Granted cpu=2,ephemeral-storage=20Gi,memory=8Gi,pods=10", "granted in full by policy standard")

	const lacks = "a virtual node without memory runs no pods: write amounts in the request, such as memory: 8Gi"
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices = &v1alpha1.Slices{Defaults: v1alpha1.Quantities{}}
	})
	awaitMessage(t, slice, "Accepted Incomplete cpu=2,ephemeral-storage=0,memory=0,pods=10",
		"granted by policy standard, but "+lacks)
	expectEvent(t, "plain", "Incomplete", lacks)
	changeRequest(t, slice)
	awaitAnswer(t, slice, "Accepted Incomplete cpu=0,ephemeral-storage=0,memory=0,pods=0")
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.Defaults = kubetest.Quantities("cpu", "1", "memory", "1Gi", "pods", "5")
	})
	awaitMessage(t, slice, "Accepted Granted cpu=1,ephemeral-storage=0,memory=1Gi,pods=5", "granted the defaults of policy standard")
}

func TestAnAnswerHasThePolicysSettingsOfVirtualNodes(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	storage := kubetest.Unstructured(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "example.com/p",
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
	awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
	want := authv1beta1.ResourceSliceStatus{
		StorageClasses: []corev1beta1.StorageType{{StorageClassName: "fast", Default: true}},
		IngressClasses: []corev1beta1.IngressType{
			{IngressClassName: "nginx", Default: true}, {IngressClassName: "other"},
		},
		NodeLabels: map[string]string{"tier": "gold", "zone": "a"}, NodeSelector: map[string]string{"pool": "gold"},
	}
	compare := func() string {
		got := answerOf(t, slice).ResourceSliceStatus
		got.Conditions, got.AuthParams, got.Resources = nil, nil, nil
		return cmp.Diff(want, got, cmpopts.EquateEmpty())
	}
	test.Eventually(t, compare)
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices.StorageClasses, s.Slices.IngressClasses = []v1alpha1.ClassName{"slow", "fast"}, nil
		s.Slices.NodeLabels, s.Slices.NodeSelector = v1alpha1.Labels{"tier": "gold"}, v1alpha1.Labels{}
	})
	want = authv1beta1.ResourceSliceStatus{
		StorageClasses: []corev1beta1.StorageType{
			{StorageClassName: "slow", Default: true}, {StorageClassName: "fast"},
		},
		NodeLabels: map[string]string{"tier": "gold"},
	}
	test.Eventually(t, compare)
	expectEvent(t, "s", "LabelsStay", "zone, pool")
}

func TestOffersAndStatusesIncludeTheGrants(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "8Gi", "pods", "10")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "3"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=3")
	test.Eventually(o.t, func() string {
		return cmp.Diff([]int64{8000, 5000},
			[]int64{o.offered("rome")["gold"]["cpu"], o.offered("oslo")["gold"]["cpu"]})
	})
	test.Eventually(t, func() string {
		s := statusOfPolicy(t, "standard")
		return cmp.Diff("8 3 5", fmt.Sprintf("%s %s %s", s.Capacity.Cpu(), s.Committed.Cpu(), s.Remaining.Cpu()))
	})
	kubetest.Remove(t, slice)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(8000), o.offered("oslo")["gold"]["cpu"]) })
}

func TestAnAnswerThatOthersChangeIsRestored(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	metrics := prometheus.NewPedanticRegistry()
	startOperator(t, func(o *parts) { o.metrics = metrics })
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "2"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
	for _, tamper := range []struct {
		name string
		with func(*unstructured.Unstructured)
	}{
		{"more", func(u *unstructured.Unstructured) {
			kubetest.SetField(u, map[string]any{"cpu": "999"}, "status", "resources")
		}},
		{
			"nothing",
			func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status", "resources") },
		},
		{"denied", func(u *unstructured.Unstructured) {
			overwrite(u, "Denied", "ByMe", nil)
		}},
		{"no condition", func(u *unstructured.Unstructured) { overwrite(u, "", "", nil) }},
		{"a label", func(u *unstructured.Unstructured) {
			kubetest.SetField(u, map[string]any{"a": "b"}, "status", "nodeSelector")
		}},
	} {
		kubetest.Edit(t, slice, func(o client.Object) { tamper.with(o.(*unstructured.Unstructured)) },
			kubetest.WriteStatus)
		changed := slice.GetResourceVersion()
		test.Eventually(t, func() string {
			var u unstructured.Unstructured
			u.SetGroupVersionKind(slice.GroupVersionKind())
			test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(slice), &u))
			if u.GetResourceVersion() == changed {
				return tamper.name + ": no write yet"
			}
			a := readAnswer(t, &u)
			return cmp.Diff("Accepted Incomplete cpu=2",
				summarize(a)) + cmp.Diff(map[string]string{"pool": "gold"}, a.NodeSelector)
		})
	}
	expectEvent(t, "s", "Restored", "Restored the answer")
	test.Eventually(t, func() string {
		err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP proffer_slice_restores_total Answers in ResourceSlices that others changed and the operator restored.
# TYPE proffer_slice_restores_total counter
proffer_slice_restores_total 5
`), "proffer_slice_restores_total")
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestAGrantForgedBeforeTheFirstAnswerIsTakenBack(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "1")
	policy := kubetest.Create(t, classGold(func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices = &v1alpha1.Slices{OnExcess: v1alpha1.OnExcessDeny}
	}))
	startOperator(t)
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "8"), func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = append(s.Status.Conditions, kubetest.Condition("Resources", "Accepted"))
		s.Status.Resources = nodestest.List("cpu", "8", "nvidia.com/gpu", "2")
	})
	// A denial would leave the Quota of the forged grant.
	awaitAnswer(t, slice, "Accepted Capped cpu=0,memory=0,nvidia.com/gpu=0")
	editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { s.Slices.OnExcess = v1alpha1.OnExcessCap })
	awaitAnswer(t, slice, "Accepted Capped cpu=1,memory=0,nvidia.com/gpu=0")
}

func TestASliceThatMovesIsAnsweredInItsNewClass(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, nodestest.Node("silver-1", nodestest.List("cpu", "4"), nodestest.NodeLabel("pool", "silver")))
	kubetest.Create(t, classGold())
	kubetest.Create(t, kubetest.Policy("silver",
		kubetest.Selecting(kubetest.Matching(map[string]string{"pool": "silver"})),
		func(s *v1alpha1.ResourcePolicySpec) { s.Class = "silver" }))
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	slice, other := rome.ask("s", nodestest.List("cpu", "8")), rome.ask("t", nodestest.List("cpu", "8"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=8")
	awaitAnswer(t, other, "Denied Denied")
	move := func(class string) {
		t.Helper()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class, "spec", "class") },
			kubetest.WriteSpec)
	}
	move("silver")
	awaitAnswer(t, slice, "Accepted Capped cpu=4")
	awaitAnswer(t, other, "Accepted Incomplete cpu=8")
	// A slice in a class that no controller answers keeps its Quota, so its old grant still counts.
	move("bronze")
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Accepted Capped cpu=4")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(0), o.offered("oslo")["silver"]["cpu"]) })
	kubetest.Remove(t, other)
	// So it does in Liqo's own class, until Liqo grants the full request.
	move("default")
	o.awaitCaughtUp()
	test.Eventually(o.t, func() string { return cmp.Diff(int64(0), o.offered("oslo")["silver"]["cpu"]) })
	kubetest.Edit(t, slice, func(o client.Object) {
		overwrite(o, "Accepted", "ResourceSliceResourcesAccepted", map[string]any{"cpu": "64"})
	}, kubetest.WriteStatus)
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Accepted ResourceSliceResourcesAccepted cpu=64")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(4000), o.offered("oslo")["silver"]["cpu"]) })
	move("gold")
	awaitAnswer(t, slice, "Accepted Incomplete cpu=8,memory=0")
}

// The Grant of a slice can list only so many classes that the slice has left with pods running.
// Beyond that bound the slice is granted nothing more.
func TestASliceThatLeavesPodsInTooManyClassesIsGrantedNoMore(t *testing.T) {
	installSliceCRDs(t)
	rome := newTenancy(t, "rome")
	class := func(i int) string { return fmt.Sprintf("class-%d", i) }
	const classes = v1alpha1.MaxEarlierGrants + 2
	var pods []*corev1.Pod
	for i := range classes {
		kubetest.Create(t, nodestest.Node(class(i), nodestest.List("cpu", "8"), nodestest.NodeLabel("pool", class(i))))
		kubetest.Create(t, kubetest.Policy(class(i),
			kubetest.Selecting(kubetest.Matching(map[string]string{"pool": class(i)})),
			func(s *v1alpha1.ResourcePolicySpec) { s.Class = class(i) }))
		pods = append(pods, kubetest.Create(t, nodestest.Pod("in-"+class(i), class(i), nodestest.List("cpu", "1"),
			nodestest.PodLabel(originLabel, "rome"),
			nodestest.PodLabel("liqo.io/creator-user", creatorOf("s", "rome")))))
	}
	startOperator(t)
	slice := rome.ask("s", nodestest.List("cpu", "4"),
		func(s *authv1beta1.ResourceSlice) { s.Spec.Class = authv1beta1.ResourceSliceClass(class(0)) })
	awaitAnswer(t, slice, "Accepted Incomplete cpu=4")
	move := func(i int) {
		t.Helper()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class(i), "spec", "class") },
			kubetest.WriteSpec)
	}
	granted := func(i int) {
		t.Helper()
		test.Eventually(t, func() string {
			message, want := answerOf(t, slice).message, "granted by policy "+class(i)+", "
			return cmp.Diff(want, message[:min(len(want), len(message))])
		})
	}
	const last = classes - 1
	for i := 1; i < last; i++ {
		move(i)
		granted(i)
	}
	move(last)
	expectEvent(t, "s", "NotRecorded", "refuses its Grant")
	granted(last - 1)
	move(last - 1)
	for _, pod := range pods {
		kubetest.Remove(t, pod)
	}
	test.Eventually(t, func() string {
		var list v1alpha1.GrantList
		if err := kubetest.API(t).List(t.Context(), &list, client.InNamespace(namespaceOf(nil))); err != nil {
			return err.Error()
		}
		return cmp.Diff(0, len(list.Items[0].Spec.Earlier))
	})
	move(last)
	granted(last)
}

func TestGrantsOfADeletedPolicyAreReducedToWhatPodsUse(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t,
		nodestest.Pod("of-a", "gold-1", nodestest.List("cpu", "3"), nodestest.PodLabel(originLabel, "a")))
	policy := kubetest.Create(t, classGold())
	startOperator(t)
	// Slices created in the same second are ordered by name.
	used, unused, denied := newTenancy(t, "a").ask("used", nodestest.List("cpu", "4")), newTenancy(t, "b").ask("unused",
		nodestest.List("cpu", "4")), newTenancy(t, "c").ask("none", nodestest.List("cpu", "4"))
	awaitAnswer(t, used, "Accepted Incomplete cpu=4")
	awaitAnswer(t, unused, "Accepted Incomplete cpu=4")
	awaitAnswer(t, denied, "Denied Denied")
	kubetest.Remove(t, policy)
	awaitMessage(t, used, "Accepted Withdrawn cpu=3",
		"granted 3 of 4 cpu: no policy of the provider serves this cluster in this class any more")
	awaitAnswer(t, unused, "Accepted Withdrawn cpu=0")
	awaitAnswer(t, denied, "Denied Withdrawn")
	kubetest.Create(t, classGold())
	awaitAnswer(t, used, "Accepted Incomplete cpu=4")
	awaitAnswer(t, unused, "Accepted Incomplete cpu=4")
}

// As kubectl replace --force does it.
func TestGrantsStayWhileTheirPolicyIsReplaced(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	policy := kubetest.Create(t, classGold())
	startOperator(t)
	first := newTenancy(t, "a").ask("first", nodestest.List("cpu", "6"))
	awaitAnswer(t, first, "Accepted Incomplete cpu=6")
	second := newTenancy(t, "b").ask("second", nodestest.List("cpu", "6"))
	awaitAnswer(t, second, "Accepted Capped cpu=2")
	third := newTenancy(t, "c").ask("third", nodestest.List("cpu", "6"))
	awaitAnswer(t, third, "Denied Denied")
	version := func(slice *unstructured.Unstructured) string {
		t.Helper()
		u := slice.DeepCopy()
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(u), u))
		return u.GetResourceVersion()
	}
	before := []string{version(first), version(second)}
	kubetest.Remove(t, policy)
	awaitAnswer(t, third, "Denied Withdrawn")
	again := kubetest.Create(t, classGold())
	awaitAnswer(t, third, "Denied Denied")
	if after := []string{version(first), version(second)}; !slices.Equal(before, after) {
		t.Errorf("the answers were written while the policy was replaced: versions %q, then %q", before, after)
	}

	t.Run("a policy that a finalizer keeps grants nothing new", func(t *testing.T) {
		finalizers := func(all ...string) {
			kubetest.Edit(t, again, func(o client.Object) { o.SetFinalizers(all) }, kubetest.WriteSpec)
		}
		finalizers("example.com/keep")
		defer finalizers()
		kubetest.Remove(t, again)
		if c := awaitReason(t, again.Name, v1alpha1.ReasonTerminating); c.Status != metav1.ConditionFalse {
			t.Errorf("the condition is %+v, want False", c)
		}
		awaitAnswer(t, third, "Denied Withdrawn")
		kubetest.Remove(t, first)
		awaitAnswer(t, second, "Accepted Withdrawn cpu=0")
	})
}

func TestACordonStopsRaisesAndADrainIsLeftToLiqo(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	slice := rome.ask("old", nodestest.List("cpu", "2"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
	rome.setCondition("Cordoned")
	fresh := rome.ask("fresh", nodestest.List("cpu", "1"))
	awaitMessage(t, fresh, "Denied Cordoned",
		"denied: 1 cpu asked, but the provider has cordoned this cluster and grants it nothing new")
	changeRequest(t, slice, "cpu", "4")
	awaitAnswer(t, slice, "Accepted Cordoned cpu=2")
	changeRequest(t, slice, "cpu", "1")
	awaitAnswer(t, slice, "Accepted Incomplete cpu=1")
	rome.setCondition("Active")
	awaitAnswer(t, fresh, "Accepted Incomplete cpu=1")

	rome.setCondition("Drained")
	test.Eventually(o.t, func() string { return cmp.Diff(int64(8000), o.offered("oslo")["gold"]["cpu"]) })
	// The operator leaves Liqo's answer alone.
	kubetest.Edit(t, slice, func(o client.Object) {
		overwrite(o, "Denied", "ResourceSliceResourcesDenied", nil)
	}, kubetest.WriteStatus)
	o.awaitCaughtUp()
	awaitAnswer(t, slice, "Denied ResourceSliceResourcesDenied")
	rome.setCondition("Active")
	awaitAnswer(t, slice, "Accepted Incomplete cpu=1")
}

func TestASliceThatFailsAGateIsNotAnswered(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	remains := func(want int64) {
		t.Helper()
		test.Eventually(o.t, func() string { return cmp.Diff(want, o.offered("nobody")["gold"]["cpu"]) })
	}

	t.Run("a class that no policy serves", func(t *testing.T) {
		bronze := rome.ask("bronze",
			nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "bronze" })
		expectEvent(t, "bronze", "NotServed", "No ResourcePolicy serves the class bronze")
		awaitAnswer(t, bronze, "")
	})
	t.Run("the wrong namespace", func(t *testing.T) {
		stray := rome.ask("stray",
			nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Namespace = metav1.NamespaceDefault })
		expectEvent(t, "stray", "NotAnswered", "not in the tenant namespace of its consumer")
		awaitAnswer(t, stray, "")
	})
	t.Run("not authenticated yet", func(t *testing.T) {
		early := rome.ask("early",
			nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil })
		o.awaitCaughtUp()
		awaitAnswer(t, early, "")
		kubetest.Edit(t, early, func(o client.Object) {
			kubetest.SetField(o, []any{map[string]any{"type": "Authentication", "status": "Accepted"}}, "status",
				"conditions")
		}, kubetest.WriteStatus)
		awaitAnswer(t, early, "Accepted Incomplete cpu=1")
		kubetest.Remove(t, early)
	})
	t.Run("two Tenants, and none", func(t *testing.T) {
		slice := rome.ask("s", nodestest.List("cpu", "2"))
		awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
		second := rome.addTenant("second")
		expectEvent(t, "s", "NotAnswered", "more than one Tenant")
		changeRequest(t, slice, "cpu", "4")
		o.awaitCaughtUp()
		awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
		remains(6000)
		kubetest.Remove(t, second)
		awaitAnswer(t, slice, "Accepted Incomplete cpu=4")
		kubetest.Remove(t, rome.tenant)
		expectEvent(t, "s", "NotAnswered", "no Tenant of its consumer")
		changeRequest(t, slice, "cpu", "1")
		o.awaitCaughtUp()
		// No answer can be written without a Tenant, so the grant stays.
		awaitAnswer(t, slice, "Accepted Incomplete cpu=4")
		remains(4000)
		rome.tenant = rome.addTenant("rome")
		awaitAnswer(t, slice, "Accepted Incomplete cpu=1")
		kubetest.Remove(t, slice)
	})
	t.Run("labels that a consumer takes off", func(t *testing.T) {
		slice := rome.ask("s", nodestest.List("cpu", "2"))
		awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
		kubetest.Edit(t, slice, func(o client.Object) { o.SetLabels(nil) }, kubetest.WriteSpec)
		o.awaitCaughtUp()
		remains(6000)
		kubetest.Remove(t, slice)
		remains(8000)
	})
}

func TestInvalidAndExtremeRequestsGetAReason(t *testing.T) {
	installSliceCRDs(t)
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
		{
			"nothing", map[string]any{}, "Denied Denied",
			"denied: nothing is asked for, and policy standard has no defaults of what it offers: write resources in the request",
		},
		{"zero", map[string]any{"cpu": "0"}, "Denied Denied", "denied: nothing is asked for"},
		{"negative", map[string]any{"cpu": "-1"}, "Denied InvalidRequest", "denied: asks for -1 cpu: " + v1alpha1.AmountNegative},
		{
			"as much as there can be", map[string]any{"memory": "9223372036854775807"}, "Accepted Capped memory=8Gi",
			"granted 8Gi of 7.99Ei memory: policy standard leaves 8Gi for this cluster",
		},
		{
			"beyond int64", map[string]any{"memory": "9223372036854775808"}, "Denied InvalidRequest",
			"denied: asks for 9223372036854775808 memory: " + v1alpha1.AmountTooLarge,
		},
		{
			"half a device", map[string]any{"cpu": "1", "example.com/gpu": "500m"}, "Denied InvalidRequest",
			"denied: asks for 500m example.com/gpu: " + v1alpha1.AmountNotWhole,
		},
		{
			"unknown", map[string]any{"cpu": "1", "example.com/what": "1"}, "Accepted Capped cpu=1",
			"granted 0 of 1 example.com/what: policy standard does not offer it",
		},
		{
			"a very long name", map[string]any{"cpu": "1", long: "1"}, "Denied InvalidRequest",
			`denied: asks for the resource "example.com/xxx`,
		},
		{"500 resources", many, "Denied InvalidRequest", "denied: asks for 500 resources: write at most 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			slice := rome.ask(fmt.Sprint("s", i), nil)
			if len(tc.asks) > 0 {
				kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, tc.asks, "spec", "resources") },
					kubetest.WriteSpec)
			}
			a := awaitAnswer(t, slice, tc.want)
			if !strings.HasPrefix(a.message, tc.message) {
				t.Errorf("got %q, want %q", a.message, tc.message)
			}
			kubetest.Remove(t, slice)
		})
	}

	// An invalid request does not reduce an earlier grant.
	slice := rome.ask("kept", nodestest.List("cpu", "2"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
	changeRequest(t, slice, "cpu", "-2")
	awaitAnswer(t, slice, "Accepted InvalidRequest cpu=2")
	// Other labels and annotations have no effect.
	hostile := rome.ask("hostile", nodestest.List("cpu", "1"), func(s *authv1beta1.ResourceSlice) {
		for i := range 100 {
			s.Labels[fmt.Sprint("liqo.io/x", i)] = strings.Repeat("y", 63)
		}
		s.Annotations = map[string]string{"liqo.io/cordon": strings.Repeat("z", 100_000)}
	})
	awaitAnswer(t, hostile, "Accepted Incomplete cpu=1")
}

func TestANewLeaderKeepsWhatWasGranted(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	first := startOperator(t)
	rome := newTenancy(t, "rome")
	young := rome.ask("young", nodestest.List("cpu", "6"))
	awaitAnswer(t, young, "Accepted Incomplete cpu=6")
	first.stop()
	version := func() string {
		u := young.DeepCopy()
		test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(young), u))
		return u.GetResourceVersion()
	}
	before := version()
	late := rome.ask("late", nodestest.List("cpu", "6"))
	second := startOperator(t)
	awaitAnswer(t, late, "Accepted Capped cpu=2")
	second.awaitCaughtUp()
	if after := version(); after != before {
		t.Error("an unchanged grant was written again")
	}
}

// creatorOf returns the label that Liqo sets on the pods of a consumer's slice.
func creatorOf(slice, consumer string) string {
	sum := sha256.Sum256([]byte(consumer))
	return fmt.Sprintf("%s-%x", slice, sum[:6])
}
