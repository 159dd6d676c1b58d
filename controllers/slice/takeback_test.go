package slice

import (
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
)

// goldOf returns the terms of one policy for the class gold and one for silver. Each selects its
// own node, which has this much cpu and is named like the class.
func goldOf(cpu int64, pods ...capacity.Pod) *offer.AllocationInput {
	ledger := capacity.NewLedger()
	var policies []offer.Policy
	for _, class := range []string{"gold", "silver"} {
		pool := labels.Set{"pool": class}
		ledger.SetNode(capacity.Node{Name: class, State: capacity.Ready, Labels: pool, Allocatable: capacity.Amounts{"cpu": cpu, "memory": 1 << 38}})
		policies = append(policies, offer.Policy{Name: class, Class: class, Version: "1", Nodes: &offer.Nodes{
			Percent: 100, Selection: capacity.Selection{Selector: selection.Of(labels.SelectorFromSet(pool))},
		}})
	}
	for _, pod := range pods {
		ledger.SetPod(pod)
	}
	return offer.NewAllocationInput(offer.Input{Policies: policies, View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...)})
}

// aLeader returns the Writer of a leader. The gates of the consumer rome are open.
func aLeader(t *testing.T, listed ...slice) *Writer {
	t.Helper()
	sources := NewDecider(nil, func() {}, func() {}, logr.Discard())
	sources.gates.owners.Set(aTenantNamespace(t, map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"}))
	sources.gates.tenants.Set(aTenant(t, "rome"))
	w := newWriter(nil, nil, sources, debounce.New(0), func() bool { return true }, newEvents(&events.FakeRecorder{}), logr.Discard())
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[sliceKey]{Queue: newFairQueue()})
	t.Cleanup(queue.ShutDown)
	w.queue.Store(queue)
	sources.cache.beginTerm("term", listed, nil, nobody)
	return w
}

func (w *Writer) decideBy(terms *offer.AllocationInput) {
	w.commit(w.decider.decide(time.Now(), func() *offer.AllocationInput { return terms }))
}

// asking lets a slice ask for this much cpu.
func asking(cpu string) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Resources = nodestest.List("cpu", cpu, "memory", "1Gi") }
}

func TestAShutGateDoesNotRaiseToWhatIsOnRecordAlone(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	cache := w.decider.cache
	w.decideBy(goldOf(8000))
	version := writeAll(t, cache, "a", 20)
	if got := only(t, cache).answer.resources["cpu"]; got != 1000 {
		t.Fatalf("%d is granted, want 1000", got)
	}
	// The slice asks for more. Once that is on record, the consumer removes the answer and the
	// labels.
	version++
	cache.set(known(t, "s", "a", version, asking("4"), holding(grantOfCPU(1000))))
	w.decideBy(goldOf(8000))
	if !cache.startWrites("a") {
		t.Fatal("no write is needed")
	}
	record, ok := cache.next("a")
	if !ok || record.step.Action != protocol.WriteRecord {
		t.Fatalf("the first write is not that of the record: %+v", record.step)
	}
	version++
	record.record.version = strconv.Itoa(version)
	cache.confirmRecord("a", record.record)
	version++
	cache.set(known(t, "s", "a", version, asking("4"), withoutReplication))
	cache.endWrites("a")
	counts(t, cache, 4000)
	// Now capacity must be taken back.
	w.decideBy(goldOf(2000))
	task, ok := cache.next("a")
	if got := task.want.Amounts["cpu"]; !ok || got > 1000 {
		t.Errorf("%d is to be written (%t), want at most the 1000 of the last answer", got, ok)
	}
}

func TestWhatASliceHadInAnotherClassCountsAlsoBehindAShutGate(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("6")))
	cache := w.decider.cache
	w.decideBy(goldOf(8000))
	version := writeAll(t, cache, "a", 20)
	counts(t, cache, 6000)
	cache.set(known(t, "s", "a", version+1, asking("6"), class("silver"), withoutReplication))
	cache.set(known(t, "another", "b", version+2, asking("6")))
	w.decideBy(goldOf(8000))
	if got := taskOf(t, cache, "b").want.Amounts["cpu"]; got > 2000 {
		t.Errorf("another slice is to be granted %d of gold, want at most 2000: 6000 of 8000 are still held", got)
	}
}

// The consumer asked for 4 cores, ran pods on them, and then asked for 1. The answer is 1, and 4
// stay on record for the pods. Then the slice moves to another class. Because of the cordon, that
// class grants nothing, but leaves one unit for the pods.
func TestASliceThatMovesBringsAlongNoMoreThanStandsInIt(t *testing.T) {
	w := aLeader(t)
	w.decider.gates.tenants.Set(aTenant(t, "rome", tenantCondition(authv1beta1.TenantConditionCordoned)))
	cache := w.decider.cache
	cache.endTerm()
	cache.beginTerm("next", []slice{
		known(t, "s", "a", 10, asking("4"), class("silver"), holding(grantOfCPU(1000))),
	}, []grantRecord{recordOf(5, 4000)}, nobody)
	terms := goldOf(8000, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: creatorOf("s", "rome"), Requests: capacity.Amounts{"cpu": 4000},
	})
	a := w.decider.decide(time.Now(), func() *offer.AllocationInput { return terms })
	if got := a.grants["gold"]["rome"]["cpu"]; got != 3000 {
		t.Errorf("%d of gold count until the answer, want 3000: the recorded 4000 less the answered 1000", got)
	}
	w.commit(a)
	if got := taskOf(t, cache, "a").want.Amounts["cpu"]; got != 1 {
		t.Errorf("%d of silver is to be granted, want one unit", got)
	}
}

// taskOf starts the writes to a slice, and returns the first.
func taskOf(t *testing.T, b *grantCache, uid types.UID) task {
	t.Helper()
	if !b.startWrites(uid) {
		t.Fatal("no write is needed")
	}
	next, ok := b.next(uid)
	if !ok {
		t.Fatal("there is no next write")
	}
	return next
}

// withoutReplication removes the label that marks the slice of another cluster.
func withoutReplication(s *authv1beta1.ResourceSlice) { delete(s.Labels, liqo.ReplicatedLabel) }

// If a slice is too large for any answer, and its consumer removed the earlier answer, the Quota of
// its grant may still exist.
func TestWhatMayStandInASliceThatCannotBeWrittenCounts(t *testing.T) {
	refused := func(b *grantCache) {
		t.Helper()
		if !b.startWrites("a") {
			t.Fatal("no write is needed")
		}
		for {
			task, ok := b.next("a")
			if !ok {
				t.Fatal("there is no write of an answer")
			}
			if task.step.Action == protocol.WriteAnswer {
				b.giveUp("a", &task, "too large")
				break
			}
			task.record.version = "20"
			b.confirmRecord("a", task.record)
		}
		b.endWrites("a")
	}
	for name, tc := range map[string]struct {
		before []grantRecord
		want   int64
	}{
		"granted in the term before": {[]grantRecord{recordOf(5, 3000)}, 3000},
		"never granted anything":     {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := aLeader(t)
			cache := w.decider.cache
			cache.endTerm()
			cache.beginTerm("next", []slice{known(t, "s", "a", 10, asking("6"))}, tc.before, nobody)
			w.decideBy(goldOf(8000))
			refused(cache)
			w.decideBy(goldOf(8000))
			cache.set(known(t, "another", "b", 30, asking("8")))
			a := w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) })
			if got := a.grants["gold"]["rome"]["cpu"]; got != 8000 {
				t.Errorf("%d of gold is granted in total, want 8000", got)
			}
			for i, c := range a.entries {
				if r := a.plans[i]; c.uid == "a" && (r.mode != unwritable || r.present.Amounts["cpu"] != tc.want) {
					t.Errorf("%d counts for the slice (mode %d), want %d", r.present.Amounts["cpu"], r.mode, tc.want)
				}
			}
		})
	}
}
