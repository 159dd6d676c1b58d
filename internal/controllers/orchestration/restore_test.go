package orchestration

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/test/kubetest"
)

// writerOf returns a writer whose writes of a resource all succeed, and their number.
func writerOf(resource string) (w *Writer, writes func() int) {
	client := dynamicfake.NewSimpleDynamicClient(kubetest.Scheme())
	n := 0
	client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		n++
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetResourceVersion(strconv.Itoa(n))
		return true, u, nil
	})
	holding := func() bool { return true }
	return NewWriter(Config{Client: client, Holding: holding, Restores: restore.New(), Log: logr.Discard()}), func() int { return n }
}

// paced makes passes for 10 minutes and again for as long, and requires one write a minute in the end.
func paced(t *testing.T, writes func() int, pass func()) {
	t.Helper()
	minutes := func() (n int) {
		before := writes()
		for range 10 * 60 {
			pass()
			time.Sleep(passPeriod) //nolint:forbidigo // the clock of the bubble
		}
		return writes() - before
	}
	if first := minutes(); first < 10 {
		t.Errorf("%d writes in the first 10 minutes", first)
	}
	if n := minutes(); n < 9 || n > 10 {
		t.Errorf("%d writes in 10 minutes, want one a minute", n)
	}
}

// Another client changes what the writer writes before each pass, so each plan is the same.
func TestARivalOfANamespaceOffloadingIsRestoredLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, writes := writerOf(liqo.NamespaceOffloadings.Resource)
		next := &reconciler{Writer: w, caches: &caches{offloadings: kube.NewObjectCache(parseOffloading)}}
		deadline := noon
		plan := func(provider string) *plan {
			deadline = deadline.Add(time.Second) // The other client removes the deadlines too.
			return &plan{writes: []write{{namespace: "ns", action: update, have: &offloading{}, state: state{
				"o", remoteStrategy, []string{provider}, map[string]time.Time{"oslo": deadline}, time.Minute,
			}}}}
		}
		paced(t, writes, func() { next.apply(t.Context(), plan("milan"), nil, &outcome{}) })
		before := writes()
		if next.apply(t.Context(), plan("rome"), nil, &outcome{}); writes() != before+1 {
			t.Error("another choice is not put into force immediately")
		}
	})
}

func TestARivalOfTheStatusOfAnOrchestrationIsRestoredLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, writes := writerOf(orchestrations.Resource)
		empty := orchestration{object: &v1alpha1.Orchestration{}}
		empty.object.Name = "o"
		next := &reconciler{
			Writer: w, caches: &caches{orchestrations: kube.NewObjectCache(parseOrchestration)}, events: newEvents(&events.FakeRecorder{}),
		}
		now := noon
		paced(t, writes, func() {
			now = now.Add(time.Second) // The other client removes the times too.
			status := &v1alpha1.OrchestrationStatus{}
			setReady(status, empty.object, metav1.ConditionTrue, v1alpha1.OrchestrationActive, "The choices are in force", now)
			next.record(t.Context(), &plan{
				orchestrations: []orchestration{empty}, statuses: map[string]*v1alpha1.OrchestrationStatus{"o": status},
			}, &outcome{})
		})
	})
}

func TestAStatusThatCannotBeWrittenDelaysOnlyItsOwnChoices(t *testing.T) {
	w, writes := writerOf(liqo.NamespaceOffloadings.Resource)
	refused := errors.New("refused")
	w.Client.(*dynamicfake.FakeDynamicClient).PrependReactor("update", orchestrations.Resource,
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	broken := orchestration{object: &v1alpha1.Orchestration{}}
	broken.object.Name = "broken"
	status := &v1alpha1.OrchestrationStatus{}
	setReady(status, broken.object, metav1.ConditionTrue, v1alpha1.OrchestrationActive, "The choices are in force", noon)
	placed := func(namespace, by string) write {
		return write{namespace: namespace, action: create, state: state{by, remoteStrategy, []string{"milan"}, nil, time.Minute}}
	}
	p := &plan{
		orchestrations: []orchestration{broken}, statuses: map[string]*v1alpha1.OrchestrationStatus{"broken": status},
		writes: []write{placed("a", "broken"), placed("b", "deleted")},
	}
	r := &reconciler{
		Writer: w, caches: &caches{orchestrations: kube.NewObjectCache(parseOrchestration), offloadings: kube.NewObjectCache(parseOffloading)},
		events: newEvents(&events.FakeRecorder{}),
	}
	var got outcome
	r.apply(t.Context(), p, r.record(t.Context(), p, &got), &got)
	if writes() != 1 || !got.left || !errors.Is(got.err(), refused) {
		t.Errorf("%d writes, want that of namespace b; left %t, error %v", writes(), got.left, got.err())
	}
}
