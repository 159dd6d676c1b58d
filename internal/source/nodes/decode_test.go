package nodes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

// everything compares all fields that are kept of an object.
var everything = cmp.Options{cmp.AllowUnexported(pod{}, node{}, masked.Version{}), cmpopts.EquateEmpty()}

func checkPod(t *testing.T, full *corev1.Pod) {
	t.Helper()
	check(t, full, func(p *pod, full *corev1.Pod) {
		p.Version = masked.VersionOf(full.ResourceVersion)
		p.Pod, p.counts = ParsePod(full)
	})
}

func checkNode(t *testing.T, full *corev1.Node) {
	t.Helper()
	check(t, full, (*node).take)
}

// check compares decoding an object's bytes with parsing the whole object.
func check[T, F any, P interface {
	*T
	masked.Object
}, Q interface {
	*F
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}](t *testing.T, full Q, take func(P, Q)) {
	t.Helper()
	var want, fromProtobuf, fromJSON T
	data, err := full.Marshal()
	test.Must(t, err)
	var all F
	test.Must(t, Q(&all).Unmarshal(data))
	take(&want, &all)
	test.Must(t, P(&fromProtobuf).Unmarshal(data))
	if diff := cmp.Diff(want, fromProtobuf, everything); diff != "" {
		t.Errorf("from protobuf (-want +got):\n%s", diff)
	}
	if data, err = json.Marshal(full); err != nil {
		t.Fatal(err)
	}
	test.Must(t, json.Unmarshal(data, &fromJSON))
	if diff := cmp.Diff(want, fromJSON, everything); diff != "" {
		t.Errorf("from JSON (-want +got):\n%s", diff)
	}
}

func TestFieldsThatAreNotDecodedDoNotCount(t *testing.T) {
	pods := podsOfEveryKind()
	pods["of a consumer"] = aPod("p", "n", list("cpu", "1"), podLabel(liqo.OriginLabel, "rome"), podLabel("app", "web"))
	pods["of a consumer with Liqo v0"] = aPod("p", "n", list("cpu", "1"), podLabel(liqo.OriginLabelV0, "rome"))
	pods["with a known creator"] = aPod("p", "n", list("cpu", "1"),
		podLabel(liqo.OriginLabel, "rome"), podLabel(liqo.CreatorLabel, "slice"))
	pods["of this cluster with a creator"] = aPod("p", "n", list("cpu", "1"), podLabel(liqo.CreatorLabel, "slice"))
	pods["labelled as a shadow pod"] = aPod("p", "n", list("cpu", "1"), podLabel("liqo.io/shadowPod", "true"))
	pods["finished"] = aPod("p", "n", list("cpu", "1"), phase(corev1.PodSucceeded))
	pods["empty"] = &corev1.Pod{}
	for name, p := range pods {
		t.Run(name, func(t *testing.T) { checkPod(t, p) })
	}
}

// The objects have every field of the API, filled at random.
func TestDecodingAgreesWithParsingForRandomObjects(t *testing.T) {
	seed := rand.Int64()
	t.Logf("seed %d", seed)
	fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
			_ = q.String() // fills the cache of q, like parsing does
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<31), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.MicroTime(metav1.Unix(c.Int63n(1<<31), 0)) },
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(s *string, c randfill.Continue) { *s = words[c.Intn(len(words))] },
		func(l *corev1.ResourceList, c randfill.Continue) {
			*l = corev1.ResourceList{}
			for range c.Intn(4) {
				var q resource.Quantity
				c.Fill(&q)
				(*l)[corev1.ResourceName(resources[c.Intn(len(resources))])] = q
			}
		},
	)
	for range 60 {
		var p corev1.Pod
		fill.Fill(&p)
		checkPod(t, &p)
		var n corev1.Node
		fill.Fill(&n)
		checkNode(t, &n)
		if t.Failed() {
			return
		}
	}
}

var (
	resources = []string{"cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"}
	// words are the strings that decoding depends on, and some others.
	words = []string{
		"", "a", "b", "c", liqo.OriginLabel, liqo.OriginLabelV0, liqo.CreatorLabel, "liqo.io/shadowPod", "ShadowPod", "true", "rome", liqo.NodeTypeLabel,
		liqo.VirtualNodeType, "Ready", "True", "False", "Running",
		"Succeeded", "Failed", "PodResizePending", "Infeasible", "Deferred", "Always", "NoSchedule", "NoExecute",
		strings.Repeat("long", 100),
	}
)

func TestMalformedObjectsAreErrors(t *testing.T) {
	data, err := aPod("p", "n", list("cpu", "1"), podLabel(liqo.OriginLabel, "rome")).Marshal()
	test.Must(t, err)
	for cut := 1; cut < len(data); cut++ {
		// Some cuts are at the end of a field, so decoding may succeed.
		var p pod
		if err := p.Unmarshal(data[:cut]); err == nil && p.counts && p.Requests["cpu"] == 1000 && p.Consumer == "" {
			t.Errorf("a pod cut after %d of %d bytes was decoded without its labels", cut, len(data))
		}
	}
	for name, data := range map[string][]byte{
		"a field beyond the end": {0x0a, 0x7f, 0x01},
		"an unfinished tag":      {0xff},
		"field number 0":         {0x02, 0x01, 0x01},
		"an unclosed group":      {0x0b},
		"a number as the name":   {0x0a, 0x02, 0x08, 0x01},
		"malformed labels":       {0x0a, 0x04, 0x5a, 0x02, 0x0a, 0x05},
	} {
		if err := new(pod).Unmarshal(data); err == nil {
			t.Errorf("%s was decoded as a pod", name)
		}
		if err := new(node).Unmarshal(data); err == nil {
			t.Errorf("%s was decoded as a node", name)
		}
	}
	if err := json.Unmarshal([]byte(`{"spec": 1}`), new(pod)); err == nil {
		t.Error("a pod whose spec is a number was decoded")
	}
	if err := json.Unmarshal([]byte(`{"spec": 1}`), new(node)); err == nil {
		t.Error("a node whose spec is a number was decoded")
	}
}

func TestABookmarkHasItsResourceVersion(t *testing.T) {
	bookmark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	data, err := bookmark.Marshal()
	test.Must(t, err)
	var p pod
	test.Must(t, p.Unmarshal(data))
	if got := p.GetObjectMeta().GetResourceVersion(); got != "7" {
		t.Errorf("resource version %s, want 7", got)
	}
}

func TestTheRequestCacheIsBounded(t *testing.T) {
	d := decoderOf(capacity.NewLedger())
	decode := func(p *corev1.Pod) capacity.Amounts {
		t.Helper()
		data, err := p.Marshal()
		test.Must(t, err)
		got := d.newPod()
		test.Must(t, got.Unmarshal(data))
		return got.Requests
	}
	for i := range 3 * maxRequests {
		if got := decode(aPod("p", "n", list("cpu", strconv.Itoa(i))))["cpu"]; got != int64(1000*i) {
			t.Fatalf("pod %d requests %d", i, got)
		}
		if len(d.cache.byKept) > maxRequests {
			t.Fatalf("%d entries in the cache after %d pods", len(d.cache.byKept), i+1)
		}
	}
	before := len(d.cache.byKept)
	decode(aPod("other", "m", list("cpu", strconv.Itoa(3*maxRequests-1)), podLabel("app", "web")))
	if len(d.cache.byKept) != before {
		t.Error("a pod with the same requests added an entry")
	}
	large := aPod("large", "n", list("cpu", "1"))
	for i := range 1000 {
		large.Spec.Containers = append(large.Spec.Containers, corev1.Container{
			Name: strconv.Itoa(i), Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")},
		})
	}
	if got := decode(large)["cpu"]; got != 1001*1000 || len(d.cache.byKept) != before {
		t.Errorf("a pod of 1001 containers requests %d; the cache went from %d to %d entries",
			got, before, len(d.cache.byKept))
	}
	for i := range maxRequests {
		many := aPod("many", "n", list("cpu", strconv.Itoa(i)))
		for k := range 30 {
			name := fmt.Sprintf("container-with-a-long-name-%d", k)
			many.Spec.Containers = append(many.Spec.Containers, corev1.Container{Name: name})
		}
		decode(many)
		if d.cache.size > maxRemembered {
			t.Fatalf("the cache takes %d bytes after %d pods of many containers", d.cache.size, i+1)
		}
	}
	size := 0
	for kept, requests := range d.cache.byKept {
		size += sizeOf([]byte(kept), requests)
	}
	if size != d.cache.size {
		t.Errorf("the entries take %d bytes, but the cache counts %d", size, d.cache.size)
	}
}
