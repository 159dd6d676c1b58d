package slice

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// newSettled returns a leader's Writer whose slices are all answered. They belong to at most 2,000
// consumers, under 20 policies that select 5 sets of nodes.
func newSettled(t testing.TB, slices int) (*Writer, *offer.AllocationInput) {
	t.Helper()
	sources := NewDecider(nil, 0, func() {}, func() {}, logr.Discard())
	listed := make([]slice, slices)
	for i := range listed {
		id := fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i%2000)
		namespace := "liqo-tenant-" + id
		listed[i] = known(t, fmt.Sprint("s", i), fmt.Sprint("uid", i), i+1, class(authv1beta1.ResourceSliceClass(fmt.Sprint("c", i%20))),
			func(s *authv1beta1.ResourceSlice) {
				s.Namespace, s.Spec.ConsumerClusterID = namespace, new(corev1beta1.ClusterID(id))
				s.Labels[liqo.OriginIDLabel] = id
				s.Spec.Resources = nodestest.List("cpu", "4", "memory", "8Gi", "pods", "10")
			})
		sources.gates.owners.Set(kubetest.Unstructured(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: id},
		}}))
		sources.gates.tenants.Set(kubetest.Unstructured(t, &authv1beta1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: namespace}, Spec: authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(id)},
		}))
	}
	terms := benchTerms()
	w := NewWriter(&Clients{}, nil, nil, "", sources, debounce.New(0), func() bool { return true }, &events.FakeRecorder{}, restore.New(), logr.Discard())
	queue := startQueue(t, w)
	sources.cache.beginTerm("term", listed, nil, func(*slice) (string, bool) { return "", false })
	for version := slices; ; {
		w.commit(sources.decide(time.Now(), func() *offer.AllocationInput { return terms }))
		if queue.Len() == 0 {
			return w, terms
		}
		for queue.Len() > 0 {
			r, _ := queue.Get()
			version = writeAll(t, sources.cache, types.UID(r.Name), version)
			queue.Done(r)
		}
	}
}

// writeAll makes all writes that a slice needs, like an API server that never fails.
func writeAll(t testing.TB, b *grantCache, uid types.UID, version int) int {
	t.Helper()
	return writeAllAs(t, b, uid, version, func(a sliceAnswer) sliceAnswer { return a })
}

// writeAllAs is writeAll with answers in this form.
func writeAllAs(t testing.TB, b *grantCache, uid types.UID, version int, form func(sliceAnswer) sliceAnswer) int {
	t.Helper()
	if !b.startWrites(uid) {
		return version
	}
	defer b.endWrites(uid)
	for {
		step, ok := b.next(uid)
		if !ok {
			return version
		}
		version++
		switch step.step.Action {
		case protocol.WriteRecord:
			step.record.version = strconv.Itoa(version)
			b.confirmRecord(uid, step.record)
		case protocol.DeleteRecord:
			b.confirmDelete(uid)
		case protocol.WriteAnswer:
			*step.answer = form(*step.answer)
			object := step.answer.writeTo(step.on.object, time.Now())
			object.SetResourceVersion(strconv.Itoa(version))
			b.confirmAnswer(uid, &step, parseSlice(object))
		case protocol.Nothing:
		}
	}
}

// startQueue begins a term in which nothing works on the queue.
func startQueue(t testing.TB, w *Writer) workqueue.TypedInterface[reconcile.Request] {
	t.Helper()
	fair := leading.Controller{Order: func() workqueue.Queue[reconcile.Request] { return newFairQueue() }}
	queue := fair.NewQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	test.Must(t, w.trigger.Start(t.Context(), queue))
	return queue
}

// benchTerms returns the terms of 20 policies over 500 nodes, some of which are in several pools.
func benchTerms() *offer.AllocationInput {
	ledger := capacity.NewLedger()
	for i := range 500 {
		ledger.SetNode(capacity.Node{
			Name: fmt.Sprint("n", i), State: capacity.Ready, Labels: map[string]string{"zone": strconv.Itoa(i % 4)},
			Allocatable: capacity.Amounts{"cpu": 64000, "memory": 1 << 38, "pods": 110},
		})
	}
	var policies []offer.Policy
	for i := range 20 {
		p := offer.Policy{Name: fmt.Sprint("p", i), Class: fmt.Sprint("c", i), Nodes: &offer.Nodes{Percent: 50}, ThresholdPercent: 5, Version: "1"}
		if zone := i % 5; zone < 4 {
			p.Nodes.Selection.Selector = selection.Of(labels.SelectorFromSet(labels.Set{"zone": strconv.Itoa(zone)}))
		}
		policies = append(policies, p)
	}
	return offer.NewAllocationInput(offer.Input{Policies: policies, View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...)})
}

// BenchmarkSlices measures what slices cost an evaluation that finds nothing to do.
func BenchmarkSlices(b *testing.B) {
	for _, tc := range []struct {
		name   string
		slices int
		// told lets a new version of a slice arrive each time, like after one of Liqo's writes.
		told bool
	}{{"none", 0, false}, {"10000", 10_000, false}, {"10000 and a new version of one", 10_000, true}} {
		b.Run(tc.name, func(b *testing.B) {
			w, terms := newSettled(b, tc.slices)
			version := 10 * tc.slices
			b.ReportAllocs()
			for b.Loop() {
				if tc.told {
					version++
					news := w.decider.cache.list()[version%tc.slices].slice
					news.object = news.object.DeepCopy()
					news.object.SetResourceVersion(strconv.Itoa(version))
					w.decider.cache.set(news)
				}
				w.commit(w.decider.decide(time.Now(), func() *offer.AllocationInput { return terms }))
			}
			if len(w.decider.cache.requests()) > 0 {
				b.Error("a write is pending")
			}
		})
	}
}
