package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
)

func TestAShadowPodIsReadAsLiqoReadsIt(t *testing.T) {
	metadata := `"metadata":{"name":"p","namespace":"ns","uid":"u","resourceVersion":"7",
		"labels":{"offloading.liqo.io/origin":"rome","liqo.io/creator-user":"slice-1"}}`
	key := capacity.Pod{Key: "u/ns/p", Consumer: "rome", Creator: "slice-1"}
	requesting := func(amounts capacity.Amounts) capacity.Pod {
		p := key
		p.Requests = amounts
		return p
	}
	for name, tc := range map[string]struct {
		spec, status string
		want         capacity.Pod
		ended        bool
	}{
		"requests": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m","nvidia.com/gpu":1}}},{"name":"b","resources":{"requests":{"cpu":2}}}]}`,
			want: requesting(capacity.Amounts{"cpu": 2500, "nvidia.com/gpu": 1}),
		},
		"limits become requests": {
			spec: `{"containers":[{"name":"a","resources":{"limits":{"cpu":"4","memory":"1Ki"},"requests":{"memory":"1"}}}],
				"initContainers":[{"name":"i","restartPolicy":"Always","resources":{"limits":{"cpu":1}}}]}`,
			want: requesting(capacity.Amounts{"cpu": 5000, "memory": 1}),
		},
		"pod level": {
			spec: `{"containers":[{"name":"a"}],"resources":{"requests":{"cpu":"3"}},"overhead":{"cpu":"1"}}`,
			want: requesting(capacity.Amounts{"cpu": 4000}),
		},
		"names in other cases are no fields": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"3"}}}],"Containers":[],"CONTAINERS":[{"name":"b"}]}`,
			want: requesting(capacity.Amounts{"cpu": 3000}),
		},
		"a limit of the whole pod": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"memory":"1"}}}],"resources":{"limits":{"cpu":"3","memory":"9"}}}`,
			want: requesting(capacity.Amounts{"cpu": 3000, "memory": 1}),
		},
		"an amount that takes long to compare": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"overhead":{"cpu":"1e999999999","memory":"1e-999999999"}}`,
			want: requesting(capacity.Amounts{"cpu": math.MaxInt64, "memory": math.MaxInt64}),
		},
		"names that no resource has": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"1","` + strings.Repeat("x", 1000) + `":"1",
				"c\u0440u":"1","\u001b[2J":"1","cpu=64,x":"1","\u0000":"1","":"1","a|b":"1"}}}]}`,
			want: requesting(capacity.Amounts{"cpu": 1000}),
		},
		"ended": {spec: `{"containers":[]}`, status: `,"status":{"phase":"Succeeded"}`, ended: true},
		"no quantity": {
			spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"1e1.5"}}}]}`,
			want: requesting(capacity.Amounts{"cpu": math.MaxInt64}),
		},
		"of a wrong shape": {spec: `{"containers":"none"}`, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got shadowPod
			test.Must(t, json.Unmarshal([]byte(`{`+metadata+`,"spec":{"pod":`+tc.spec+`}`+tc.status+`}`), &got))
			if got.counts == tc.ended || got.GetObjectMeta().GetResourceVersion() != "7" {
				t.Errorf("counts is %v, the version %q", got.counts, got.GetObjectMeta().GetResourceVersion())
			}
			if diff := cmp.Diff(tc.want, got.Pod); diff != "" && !tc.ended {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyThePodOfAShadowPodStandsForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   string
	}{
		"made by Liqo":       {[]metav1.OwnerReference{{Kind: "Job", UID: "j"}, {Kind: "ShadowPod", UID: "u"}}, "u/default/p"},
		"without an owner":   {},
		"of another kind":    {owners: []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "u"}}},
		"of an endless name": {owners: []metav1.OwnerReference{{Kind: "ShadowPod", UID: types.UID(strings.Repeat("u", 64))}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := aPod("p", "n", list("cpu", "1"), func(p *corev1.Pod) { p.OwnerReferences = tc.owners })
			p.Namespace = "default"
			checkPod(t, p)
			if got := podOf(p).From; got != tc.want {
				t.Errorf("it is made from %q, want %q", got, tc.want)
			}
		})
	}
}

// shadowPods creates and deletes ShadowPods.
type shadowPods struct {
	t   *testing.T
	api dynamic.ResourceInterface
}

func (s shadowPods) create(name, cpu string) *unstructured.Unstructured {
	s.t.Helper()
	made, err := s.api.Create(s.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": shadowPodKind.GroupVersion().String(), "kind": shadowPodKind.Kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{liqo.OriginLabel: "rome", liqo.CreatorLabel: "slice-1"}},
		"spec": map[string]any{"pod": map[string]any{"containers": []any{map[string]any{
			"name": "main", "image": "image", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}},
		}}}},
	}}, metav1.CreateOptions{})
	test.Must(s.t, err)
	return made
}

func (s shadowPods) end(made *unstructured.Unstructured) {
	s.t.Helper()
	test.Must(s.t, unstructured.SetNestedField(made.Object, "Succeeded", "status", "phase"))
	_, err := s.api.UpdateStatus(s.t.Context(), made, metav1.UpdateOptions{})
	test.Must(s.t, err)
}

func (s shadowPods) remove(name string) {
	s.t.Helper()
	test.Must(s.t, s.api.Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// made returns the Pod that Liqo makes of a ShadowPod.
func made(from *unstructured.Unstructured, node, cpu string) *corev1.Pod {
	p := aPod(from.GetName(), node, list("cpu", cpu), podLabel(liqo.OriginLabel, "rome"), podLabel(liqo.CreatorLabel, "slice-1"))
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: from.GetAPIVersion(), Kind: from.GetKind(), Name: from.GetName(), UID: from.GetUID(),
	}}
	return p
}

// Liqo has accepted a ShadowPod, and may create its Pod at any time: a quota on pods or a policy can refuse it
// until its consumer makes room.
func TestAShadowPodCountsWhileItHasNoPod(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
	client, err := dynamic.NewForConfig(cluster.Config)
	test.Must(t, err)
	objects := objects{t, api}
	objects.node(aNode("n", list("cpu", "8")))
	w := startWatch(t, cluster.Config, nil)
	w.synced(8000)
	informer := w.ShadowPods(client)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { test.Must(t, kube.CRDInformers{informer}.Start(ctx)) })
	t.Cleanup(func() { cancel(); running.Wait() })
	<-informer.Done()
	uses := func(what string, onNodes, everywhere int64) {
		t.Helper()
		t.Log(what)
		w.await(func() bool {
			v := w.ledger.View([]capacity.Selection{{}})
			c := slices.Index(v.Columns, capacity.CPU)
			use := v.Used.Of("rome")
			return use.In(0).At(c) == onNodes && use.By("slice-1").At(c) == everywhere
		})
	}
	crds := envtest.CRDInstallOptions{
		Paths: []string{controlplane.LiqoCRD(t, "offloading.liqo.io_shadowpods.yaml")}, ErrorIfPathMissing: true,
		MaxTime: controlplane.StartTimeout,
	}
	installed, err := envtest.InstallCRDs(cluster.Config, crds)
	test.Must(t, err)
	s := shadowPods{t, client.Resource(liqo.ShadowPods).Namespace(metav1.NamespaceDefault)}

	first := s.create("first", "2")
	uses("it is accepted", 0, 2000)
	second := s.create("second", "1")
	uses("another", 0, 3000)
	pod := objects.pod(made(first, "n", "2"))
	uses("its Pod runs", 2000, 3000)
	s.remove("first")
	s.create("first", "4")
	uses("another of the same name is accepted while the Pod of the former ends", 2000, 7000)
	objects.remove(pod)
	uses("the former has ended", 0, 5000)
	pod = objects.pod(made(second, "n", "1"))
	uses("another Pod runs", 1000, 5000)
	objects.remove(pod)
	uses("it is evicted, and Liqo will create it again", 0, 5000)
	s.end(second)
	uses("it has ended", 0, 4000)
	test.Must(t, envtest.UninstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: installed}))
	uses("Liqo is gone", 0, 0)
}

// A consumer may have as many ShadowPods as its API server has room for.
func TestAShadowPodTakesLittleMemory(t *testing.T) {
	const count, most = 1000, 1536
	ledger := capacity.NewLedger()
	s, d := announced{ledger, func() {}}.store(), decoderOf(ledger)
	madeUp := make([]string, capacity.MaxPodResources)
	for i := range madeUp {
		madeUp[i] = fmt.Sprintf(`"example.com/made-up-%d":"1"`, i)
	}
	before := test.LiveHeap()
	for i := range count {
		p := d.newShadowPod()
		test.Must(t, json.Unmarshal(fmt.Appendf(nil, `{"metadata":{"name":"p%d","namespace":"ns","uid":"%036d",
			"labels":{"offloading.liqo.io/origin":"rome","liqo.io/creator-user":"slice-1"}},
			"spec":{"pod":{"containers":[{"name":"a","resources":{"requests":{%s}}}]}}}`, i, i, strings.Join(madeUp, ",")), p))
		test.Must(t, s.Add(p))
	}
	if perPod := (test.LiveHeap() - before) / count; perPod > most {
		t.Errorf("a ShadowPod takes %d bytes, want at most %d", perPod, most)
	}
	test.Must(t, s.Replace(nil, ""))
	if v := ledger.View(nil); v.Used.Len() != 0 {
		t.Errorf("%d consumers use something", v.Used.Len())
	}
}
