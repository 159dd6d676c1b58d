package orchestration

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestANamespaceOffloadingIsReadAsItWasWritten(t *testing.T) {
	deadline := noon.Add(time.Hour)
	w := write{namespace: "ns", state: state{"o", remoteStrategy, []string{"milan", "oslo"}, map[string]time.Time{"milan": deadline}, time.Minute}}
	u := w.object()
	annotations := map[string]string{}
	for key, value := range w.annotations() {
		annotations[key] = value.(string)
	}
	u.SetAnnotations(annotations)
	got := parseOffloading(u)
	if !got.ours || !got.says(w.state) {
		t.Errorf("got %+v", got)
	}
	w.selected = nil
	if got := parseOffloading(w.object()); len(got.selected) > 0 || !got.exact {
		t.Errorf("with nothing chosen: %+v", got)
	}
}

// A label that somebody has copied makes nothing ours.
func TestANamespaceOffloadingIsOursByItsLabelAndItsAnnotation(t *testing.T) {
	w := write{namespace: "ns", state: state{orchestration: "o"}}
	for _, remove := range []string{"labels", "annotations"} {
		u := w.object()
		if !parseOffloading(u).ours {
			t.Fatal("what was written is not ours")
		}
		unstructured.RemoveNestedField(u.Object, "metadata", remove)
		if parseOffloading(u).ours {
			t.Errorf("it is ours without %s", remove)
		}
	}
}

// The objects are read without Liqo's types. These compare with them.
func TestLiqosOwnTypesAreRead(t *testing.T) {
	v := parseVirtualNode(kubetest.Unstructured(t, &offloadingv1beta1.VirtualNode{Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}}))
	if v.cluster != "milan" {
		t.Errorf("VirtualNode: %+v", v)
	}
	o := parseOffloading(kubetest.Unstructured(t, &offloadingv1beta1.NamespaceOffloading{
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			PodOffloadingStrategy: offloadingv1beta1.RemotePodOffloadingStrategyType, NamespaceMappingStrategy: offloadingv1beta1.DefaultNameMappingStrategyType,
			ClusterSelector: corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: liqo.RemoteClusterIDLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"oslo", "milan"}},
			}}}},
		},
		Status: offloadingv1beta1.NamespaceOffloadingStatus{RemoteNamespacesConditions: map[string]offloadingv1beta1.RemoteNamespaceConditions{
			"milan": {{Type: offloadingv1beta1.NamespaceOffloadingRequired, Status: corev1.ConditionTrue}, {Type: offloadingv1beta1.NamespaceReady, Status: corev1.ConditionTrue}},
			"oslo":  {{Type: offloadingv1beta1.NamespaceReady, Status: corev1.ConditionFalse}},
		}},
	}))
	want := offloading{
		exact:   true,
		state:   state{strategy: remoteStrategy, selected: []string{"milan", "oslo"}, draining: map[string]time.Time{}, drain: defaultDrain * time.Minute},
		present: map[string]bool{"milan": true, "oslo": false},
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(offloading{}, state{})); diff != "" {
		t.Errorf("NamespaceOffloading (-want +got):\n%s", diff)
	}
	if mapping != string(offloadingv1beta1.DefaultNameMappingStrategyType) || localStrategy != string(offloadingv1beta1.LocalPodOffloadingStrategyType) {
		t.Error("names of strategies")
	}
}

// Liqo writes latencies as 12ms, 850μs or N/A (pkg/utils/time).
func TestLatenciesAreReadFromConnections(t *testing.T) {
	for _, tc := range []struct {
		value, latency, timestamp string
		want                      int64
	}{
		{"Connected", "12ms", "2026-11-25T12:00:00Z", 12_000}, {"Connected", "850μs", "2026-11-25T12:00:00Z", 850},
		{"Connected", "N/A", "2026-11-25T12:00:00Z", 0}, {"Connecting", "12ms", "2026-11-25T12:00:00Z", 0},
		{"Connected", "12ms", "2026-11-25T11:54:59Z", 0}, {"Connected", "12ms", "", 0},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"value": tc.value, "latency": map[string]any{"value": tc.latency, "timestamp": tc.timestamp},
		}}}
		u.SetLabels(map[string]string{liqo.RemoteClusterIDLabel: "milan"})
		c := &caches{connections: kube.NewObjectCache(parseConnection)}
		c.connections.Set(u)
		if got := c.latencies(noon)["milan"]; got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

func TestPricesAreReadFromAnnotations(t *testing.T) {
	u := kubetest.ForeignCluster(t, "milan", "milan", nil)
	u.SetAnnotations(map[string]string{
		PriceAnnotation + "cpu": "0.021", PriceAnnotation + "nvidia.com_gpu": "1.85", PriceAnnotation + "memory": "cheap", "other": "1",
	})
	want := map[string]measured{
		"cpu": {value: 21_000_000}, "nvidia.com/gpu": {value: 1_850_000_000}, "memory": {problem: "its annotation is not a price such as 0.021"},
	}
	if diff := cmp.Diff(want, parseForeignCluster(u).prices, cmp.AllowUnexported(measured{})); diff != "" {
		t.Error(diff)
	}
}

// world of one virtual node, which may be changed.
func providersWith(t *testing.T, change func(*corev1.Node, *offloadingv1beta1.VirtualNode), pods *bound) []provider {
	t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{liqo.RemoteClusterIDLabel: "milan", "region": "eu"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	v := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "t"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}}
	change(n, v)
	c := &caches{
		nodes: kube.NewObjectCache(parseNode), virtualNodes: kube.NewObjectCache(parseVirtualNode), connections: kube.NewObjectCache(parseConnection), foreignClusters: kube.NewObjectCache(parseForeignCluster),
	}
	c.nodes.Set(kubetest.Unstructured(t, n))
	c.virtualNodes.Set(kubetest.Unstructured(t, v))
	return c.providers(pods, noon)
}

func TestAVirtualNodeHasToBeUsable(t *testing.T) {
	for want, change := range map[string]func(*corev1.Node, *offloadingv1beta1.VirtualNode){
		"": func(*corev1.Node, *offloadingv1beta1.VirtualNode) {},
		"its virtual node n is not Ready": func(n *corev1.Node, _ *offloadingv1beta1.VirtualNode) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		},
		"its virtual node n is cordoned": func(n *corev1.Node, _ *offloadingv1beta1.VirtualNode) { n.Spec.Unschedulable = true },
		"its virtual node n is drained": func(_ *corev1.Node, v *offloadingv1beta1.VirtualNode) {
			v.DeletionTimestamp = &metav1.Time{Time: noon}
		},
		"its virtual node n has the label liqo.io/remote-cluster-id=oslo of another cluster": func(n *corev1.Node, _ *offloadingv1beta1.VirtualNode) {
			n.Labels[liqo.RemoteClusterIDLabel] = "oslo"
		},
		"its ID stands for no provider": func(n *corev1.Node, v *offloadingv1beta1.VirtualNode) {
			n.Labels[liqo.RemoteClusterIDLabel], v.Spec.ClusterID = broker.None, broker.None
		},
	} {
		got := providersWith(t, change, nil)
		if len(got) != 1 || got[0].Unusable != want {
			t.Errorf("want %q, got %+v", want, got)
		}
	}
}

func TestAnOrchestrationWithASelectorThatCannotBeParsedIsInvalid(t *testing.T) {
	o := &v1alpha1.Orchestration{Spec: v1alpha1.OrchestrationSpec{Providers: &v1alpha1.Clusters{
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
	}}}
	if _, err := parse(o); err == nil || err.Error() != `spec.providers.selector: Invalid value: "Like" is not a valid label selector operator` {
		t.Errorf("got %v", err)
	}
}

func TestWhatRemainsIsAllocatableWithoutTheRequestsOfPods(t *testing.T) {
	left := broker.Measure{KPI: broker.Remaining, Of: "cpu"}
	keep := func(*corev1.Node, *offloadingv1beta1.VirtualNode) {}
	if got, measured := providersWith(t, keep, nil)[0].Values[left]; measured {
		t.Errorf("%d is measured without pods", got)
	}
	pods := &bound{requests: map[string]capacity.Amounts{"n": {}}, pods: map[string]map[string]int{"n": {}}}
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed} {
		pods.add("n", &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}},
			}}},
		})
	}
	all := providersWith(t, keep, pods)
	if got := all[0].Values[left]; got != 1000 {
		t.Errorf("%dm remain, want 1000m", got)
	}
	if diff := cmp.Diff(map[string]map[string]int{"ns": {"milan": 2}}, running(all, pods)); diff != "" {
		t.Error(diff)
	}
	pods.requests["n"]["cpu"] = 5000
	if got := providersWith(t, keep, pods)[0].Values[left]; got != 0 {
		t.Errorf("%dm remain of a node that is overcommitted", got)
	}
}

// A consumer chooses the annotation that Liqo copies, and thousands of namespaces may have one.
func TestNothingOfALongAnnotationIsKeptButItsBeginning(t *testing.T) {
	long := strings.Repeat("a", 256<<10)
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "shop-rome", "annotations": map[string]any{liqo.OriginalNameAnnotation: long},
	}}}
	stripped, err := stripNamespace(u)
	test.Must(t, err)
	kept := stripped.(*unstructured.Unstructured).GetAnnotations()[liqo.OriginalNameAnnotation]
	if kept != long[:maxOriginal] {
		t.Errorf("kept %d bytes, want the first %d", len(kept), maxOriginal)
	}
	if unsafe.StringData(kept) == unsafe.StringData(long) {
		t.Error("what is kept holds all of the annotation in memory")
	}
}
