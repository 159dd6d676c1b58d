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

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/test/nodestest"
)

// goldOf returns the terms of one policy for the class gold and one for silver. Each selects its
// own node, which has this much cpu and is named like the class.
func goldOf(cpu int64, pods ...capacity.Pod) *offer.AllocationInput {
	return goldBy(offer.Unused, cpu, pods...)
}

// goldBy is goldOf with policies that take back like this.
func goldBy(reclaim offer.Reclaim, cpu int64, pods ...capacity.Pod) *offer.AllocationInput {
	return termsOf(reclaim, cpu, map[string]string{"gold": "gold", "silver": "silver"}, pods...)
}

// termsOf returns the terms of policies for gold and silver, those that have a node, each of which selects it.
func termsOf(reclaim offer.Reclaim, cpu int64, nodes map[string]string, pods ...capacity.Pod) *offer.AllocationInput {
	ledger := capacity.NewLedger()
	var policies []offer.Policy
	for _, class := range []string{"gold", "silver"} {
		node, served := nodes[class]
		if !served {
			continue
		}
		pool := labels.Set{"pool": node}
		ledger.SetNode(capacity.Node{Name: node, State: capacity.Ready, Labels: pool, Allocatable: capacity.Amounts{"cpu": cpu, "memory": 1 << 38}})
		policies = append(policies, offer.Policy{Name: class, Class: class, Version: "1", Reclaim: reclaim, Nodes: &offer.Nodes{
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
	sources := NewDecider(nil, 0, func() {}, func() {}, logr.Discard())
	sources.gates.owners.Set(aTenantNamespace(t, map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"}))
	sources.gates.tenants.Set(aTenant(t, "rome"))
	w := NewWriter(&Clients{}, nil, nil, "", sources, debounce.New(0), func() bool { return true }, &events.FakeRecorder{}, restore.New(), logr.Discard())
	startQueue(t, w)
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

// askingNothing lets a slice ask for nothing.
func askingNothing(s *authv1beta1.ResourceSlice) {
	s.Spec.Resources = nodestest.List("cpu", "0", "memory", "0")
}

// A replica that does not lead answers requests for offers as well.
func TestEveryReplicaCountsAGrantOnce(t *testing.T) {
	w := aLeader(t)
	cache := w.decider.cache
	cache.endTerm()
	cache.setRecord(recordOf(5, 4000))
	cache.set(known(t, "s", "a", 10, asking("4"), answering(grantOfCPU(4000))))
	for _, replica := range []string{"one that does not lead", "the leader"} {
		a := w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) })
		if got := a.Granted()["gold"]["rome"]["cpu"]; got != 4000 {
			t.Errorf("at %s, %d of gold count as granted, want 4000", replica, got)
		}
		if len(a.Answers) != 1 || a.Answers[0].Amounts()["cpu"] != 4000 {
			t.Errorf("at %s, the answers are %+v, want one with 4000", replica, a.Answers)
		}
		cache.beginTerm("term", nil, []grantRecord{recordOf(5, 4000)}, nobody)
	}
}

func TestAShutGateDoesNotRaiseToWhatIsOnRecordAlone(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	cache := w.decider.cache
	w.decideBy(goldOf(8000))
	version := writeAll(t, cache, "a", 20)
	if got := onlySlice(t, cache).answer.resources["cpu"]; got != 1000 {
		t.Fatalf("%d is granted, want 1000", got)
	}
	// The slice asks for more. Once that is on record, the consumer removes the answer and the
	// labels.
	version++
	cache.set(known(t, "s", "a", version, asking("4"), answering(grantOfCPU(1000))))
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

// An answer that is too long for its slice stands without the labels of the nodes that its policy names.
func TestAShortAnswerBehindAShutGateIsNotWrittenAgain(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	cache, ledger := w.decider.cache, capacity.NewLedger()
	ledger.SetNode(capacity.Node{
		Name: "n", State: capacity.Ready, Labels: selecting("gold"), Allocatable: capacity.Amounts{"cpu": 8000, "memory": 1 << 38},
	})
	policies := []offer.Policy{policyOn("gold", "gold", "gold", 100, offer.Unused)}
	terms := offer.NewAllocationInput(offer.Input{Policies: policies, View: ledger.View(offer.Selections(policies))})
	w.decideBy(terms)
	version := writeAllAs(t, cache, "a", 20, sliceAnswer.minimal)
	if c := onlySlice(t, cache); c.answer.resources["cpu"] != 1000 || c.answer.nodeSelector != nil {
		t.Fatalf("it is answered %+v, want 1000, and nothing more", c.answer)
	}
	cache.set(known(t, "s", "a", version+1, asking("1"), withoutReplication, answering(onlySlice(t, cache).answer)))
	w.decideBy(terms) // The reason changes.
	version = writeAllAs(t, cache, "a", version+1, sliceAnswer.minimal)
	w.decideBy(terms)
	if again := writeAllAs(t, cache, "a", version, sliceAnswer.minimal); again != version {
		t.Errorf("%d more writes", again-version)
	}
}

// The watch shows the answer, and that its gate is shut since, before the result of the write arrives.
// A decision that begins before the result, and is assumed after it, must not lower the grant.
func TestAShutGateKeepsAnAnswerWhoseResultComesDuringADecision(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("4")))
	cache := w.decider.cache
	w.decideBy(goldOf(8000))
	answer := taskOf(t, cache, "a")
	answer.record.version = "20"
	cache.confirmRecord("a", answer.record)
	answer, ok := cache.next("a")
	if !ok || answer.step.Action != protocol.WriteAnswer {
		t.Fatalf("the second write is not that of the answer: %+v", answer.step)
	}
	cache.set(known(t, "s", "a", 22, asking("4"), answering(grantOfCPU(4000)), withoutReplication))
	during := w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) })
	cache.confirmAnswer("a", &answer, known(t, "s", "a", 21, asking("4"), answering(grantOfCPU(4000))))
	cache.endWrites("a")
	w.commit(during)
	if cache.startWrites("a") {
		t.Error("a decision is to be written that did not know of the answer")
	}
	w.decideBy(goldOf(8000))
	counts(t, cache, 4000)
	if cache.startWrites("a") {
		next, _ := cache.next("a")
		if got := next.want.Amounts["cpu"]; got != 4000 {
			t.Errorf("%d is to be written, want the 4000 of the answer", got)
		}
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
		known(t, "s", "a", 10, asking("4"), class("silver"), answering(grantOfCPU(1000))),
	}, []grantRecord{recordOf(5, 4000)}, nobody)
	terms := goldOf(8000, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 4000},
	})
	a := w.decider.decide(time.Now(), func() *offer.AllocationInput { return terms })
	if got := a.Granted()["gold"]["rome"]["cpu"]; got != 4000 {
		t.Errorf("%d of gold count until the answer, want all 4000 that are on record", got)
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

// refused has the API server refuse the answer to a slice, however small.
func refused(t *testing.T, b *grantCache, uid types.UID) {
	t.Helper()
	if !b.startWrites(uid) {
		t.Fatal("no write is needed")
	}
	defer b.endWrites(uid)
	for {
		task, ok := b.next(uid)
		if !ok {
			t.Fatal("there is no write of an answer")
		}
		if task.step.Action == protocol.WriteAnswer {
			b.giveUp(uid, &task, "too large")
			return
		}
		task.record.version = "20"
		b.confirmRecord(uid, task.record)
	}
}

// If a slice is too large for any answer, and its consumer removed the earlier answer, the Quota of
// its grant may still exist.
func TestWhatMayStandInASliceThatCannotBeWrittenCounts(t *testing.T) {
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
			refused(t, cache, "a")
			w.decideBy(goldOf(8000))
			cache.set(known(t, "another", "b", 30, asking("8")))
			a := w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) })
			if got := a.Granted()["gold"]["rome"]["cpu"]; got != 8000 {
				t.Errorf("%d of gold is granted in total, want 8000", got)
			}
			for i, c := range a.entries {
				if v := a.Verdicts[i]; c.uid == "a" && (v.Mode != holding.Unwritable || v.Want.Amounts["cpu"] != tc.want) {
					t.Errorf("%d counts for the slice (mode %d), want %d", v.Want.Amounts["cpu"], v.Mode, tc.want)
				}
			}
		})
	}
}

// The pods of a deleted slice count for the new one of its name, but not if no answer can be written to
// that: nothing is decided on it then.
func TestPodsOfADeletedSliceCountIfTheNewOneCannotBeWritten(t *testing.T) {
	w := aLeader(t)
	cache := w.decider.cache
	cache.endTerm()
	cache.beginTerm("next", []slice{known(t, "s", "b", 10, asking("0"))}, []grantRecord{recordOf(5, 3000)}, nobody)
	terms := goldOf(8000, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
	})
	w.decideBy(terms)
	refused(t, cache, "b")
	a := w.decider.decide(time.Now().Add(holding.ReleaseGrace+time.Second), func() *offer.AllocationInput { return terms })
	if got := a.Granted()["gold"]["rome"]["cpu"]; got != 2000 {
		t.Errorf("%d of gold count as granted, want the 2000 that pods use", got)
	}
}

// leaving is a scene: the slice a of rome was granted 6 of 8 cores of gold, and its pods use 2.
type leaving struct {
	*Writer
	t       *testing.T
	terms   *offer.AllocationInput
	version int
}

func aLeavingSlice(t *testing.T, reclaim offer.Reclaim) *leaving {
	t.Helper()
	l := &leaving{t: t, version: 20, terms: goldBy(reclaim, 8000, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
	})}
	l.Writer = aLeader(t, known(t, "s", "a", 10, asking("6")))
	l.write("a")
	counts(t, l.decider.cache, 6000)
	return l
}

// write decides and writes until nothing is left to write to a slice.
func (l *leaving) write(uid types.UID) {
	l.t.Helper()
	for before := 0; before != l.version; {
		before = l.version
		l.decideBy(l.terms)
		l.version = writeAll(l.t, l.decider.cache, uid, l.version)
	}
}

// writeRecord writes the record of a slice, which is what it needs first. Its worker keeps the slice.
func (l *leaving) writeRecord(uid types.UID) {
	l.t.Helper()
	record := taskOf(l.t, l.decider.cache, uid)
	l.version++
	record.record.version = strconv.Itoa(l.version)
	l.decider.cache.confirmRecord(uid, record.record)
}

// nextLeader begins the term of another leader, which finds the slice a as it was seen last, with nothing of silver
// and 2 cores of gold on record.
func (l *leaving) nextLeader(seen slice) {
	l.t.Helper()
	l.version++
	record := recordOf(l.version, 2000)
	record.Earlier, record.Present = protocol.Shares{record.Present}, protocol.Share{Class: "silver", Policy: "silver"}
	l.decider.cache.endTerm()
	l.decider.cache.beginTerm("next", []slice{seen}, []grantRecord{record}, nobody)
}

// see lets the leader see the slice a in a class, with the answer of 6 cores that Liqo gives in its class and
// Proffer in others, or another slice b that asks for as much of gold.
func (l *leaving) see(uid types.UID, edits ...func(*authv1beta1.ResourceSlice)) {
	l.t.Helper()
	l.version++
	name := "other"
	if uid == "a" {
		name, edits = "s", append(edits, func(s *authv1beta1.ResourceSlice) {
			given := grantOfCPU(6000)
			if s.Spec.Class == holding.LiqoClass {
				given.reason = "ResourceSliceResourcesAccepted"
			}
			answering(given)(s)
		})
	}
	l.decider.cache.set(known(l.t, name, string(uid), l.version, append([]func(*authv1beta1.ResourceSlice){asking("6")}, edits...)...))
}

// wanted returns how much cpu the next answer of a slice grants.
func (l *leaving) wanted(uid types.UID) int64 {
	l.t.Helper()
	defer l.decider.cache.endWrites(uid)
	return taskOf(l.t, l.decider.cache, uid).want.Amounts["cpu"]
}

func entryOf(t *testing.T, cache *grantCache, uid types.UID) *sliceEntry {
	t.Helper()
	for _, e := range cache.list() {
		if e.uid == uid {
			return e
		}
	}
	t.Fatalf("there is no slice %s", uid)
	return nil
}

// gold returns how much cpu of gold rome is granted.
func (l *leaving) gold() int64 {
	return l.decider.decide(time.Now(), func() *offer.AllocationInput { return l.terms }).Granted()["gold"]["rome"]["cpu"]
}

// While a slice is in another class, what it leaves unused of gold goes to another slice. When it
// returns, it is granted no more than is left, whatever stands in its status.
func TestASliceThatReturnsIsGrantedNoMoreThanIsLeft(t *testing.T) {
	for _, away := range []authv1beta1.ResourceSliceClass{holding.LiqoClass, "silver"} {
		for name, reclaim := range map[string]offer.Reclaim{"Unused": offer.Unused, "Evict": offer.Evict, "Retain": offer.Retain} {
			t.Run(string(away)+"/"+name, func(t *testing.T) {
				l := aLeavingSlice(t, reclaim)
				l.see("a", class(away))
				l.write("a")
				l.see("b")
				l.decideBy(l.terms)
				if got := l.wanted("b"); got != 6000 {
					t.Fatalf("%d is to be granted to the other slice, want 6000", got)
				}
				l.write("b")
				l.see("a")
				l.decideBy(l.terms)
				if got := l.wanted("a"); got > 2000 {
					t.Errorf("%d is to be granted to the slice that returned, want at most 2000", got)
				}
				l.write("a")
				if got := l.gold(); got != 8000 {
					t.Errorf("%d of gold is granted, want 8000", got)
				}
			})
		}
	}
}

func TestASliceThatReturnsToAClassThatCordonsItIsGrantedOnlyWhatItsPodsUse(t *testing.T) {
	l := aLeavingSlice(t, offer.Retain)
	l.see("a", class(holding.LiqoClass))
	l.write("a")
	l.decider.gates.tenants.Set(aTenant(t, "rome", tenantCondition(authv1beta1.TenantConditionCordoned)))
	l.see("a")
	l.decideBy(l.terms)
	if got := l.wanted("a"); got != 2000 {
		t.Errorf("%d is to be granted, want the 2000 that its pods use", got)
	}
}

// A leader that ends before it has lowered the record leaves one that counts in full. Until then, no
// other slice is granted anything of it.
func TestWhatASliceLeavesIsGrantedToOthersOnlyOnceThatIsOnRecord(t *testing.T) {
	l := aLeavingSlice(t, offer.Retain)
	l.see("a", class(holding.LiqoClass))
	l.see("b")
	l.decideBy(l.terms)
	if got := l.wanted("b"); got > 2000 {
		t.Errorf("%d is to be granted to another slice, want at most 2000: 6000 are still on record", got)
	}
	l.write("a")
	l.write("b")
	if got := l.gold(); got != 8000 {
		t.Errorf("%d of gold is granted, want 8000", got)
	}
}

func TestTheNextLeaderGrantsASliceThatReturnsWhatIsOnRecord(t *testing.T) {
	for _, want := range []int64{6000, 2000} {
		l := aLeavingSlice(t, offer.Retain)
		cache := l.decider.cache
		cache.endTerm()
		record := recordOf(5, 1000)
		gold := protocol.Share{Class: "gold", Policy: "gold", Reclaim: offer.Retain, Amounts: capacity.Amounts{"cpu": want}}
		record.Present.Class, record.Earlier = "silver", protocol.Shares{gold}
		other := recordOf(6, 8000-want)
		other.uid, other.name, other.Present.Reclaim = "b", "other", offer.Retain
		cache.beginTerm("next", []slice{
			known(t, "s", "a", 30, asking("6"), answering(grantOfCPU(6000))),
			known(t, "other", "b", 31, asking("6"), answering(grantOfCPU(8000-want))),
		}, []grantRecord{record, other}, nobody)
		l.version = 40
		l.write("a")
		if got := entryOf(t, cache, "a").Holds.In("gold").Amounts["cpu"]; got != want {
			t.Errorf("the slice that returned holds %d of gold, want the %d on record", got, want)
		}
		if got := l.gold(); got != 8000 {
			t.Errorf("%d of gold is granted, want 8000", got)
		}
	}
}

// A slice that nothing stands in and that fails a gate still has pods in the class that it left.
func TestWhatPodsUseOfAClassThatASliceLeftCountsAlsoBehindAShutGate(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.see("a", class(holding.LiqoClass))
	l.write("a")
	l.version++
	l.decider.cache.set(known(t, "s", "a", l.version, asking("6"), class("silver"), withoutReplication))
	l.see("b", asking("8"))
	if got := l.gold(); got > 8000 {
		t.Errorf("%d of gold is granted, want at most 8000", got)
	}
	l.decideBy(l.terms)
	if got := l.wanted("b"); got > 6000 {
		t.Errorf("%d is to be granted to another slice, want at most 6000: pods use 2000", got)
	}
}

// A slice moves to a class of the same nodes, and is granted less there than its pods use. What they use
// counts beside what another slice of its consumer was granted and does not use yet.
func TestWhatPodsUseOfAClassOnTheSameNodesCountsBesideOtherGrants(t *testing.T) {
	l := aLeavingSlice(t, offer.Unused)
	l.see("b", asking("2"))
	l.write("b")
	l.terms = termsOf(offer.Unused, 8000, map[string]string{"gold": "gold", "silver": "gold"}, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
	})
	l.see("a", class("silver"), asking("1"))
	l.write("a")
	e := entryOf(t, l.decider.cache, "a")
	if silver, gold := e.Holds.In("silver").Amounts["cpu"], e.Holds.In("gold").Amounts["cpu"]; silver != 1000 || gold != 1000 {
		t.Errorf("%d of silver and %d of gold are on record, want 1000 of each: pods use 2000", silver, gold)
	}
	l.version++
	l.decider.cache.set(known(t, "third", "c", l.version, asking("8")))
	l.decideBy(l.terms)
	if got := l.wanted("c"); got != 4000 {
		t.Errorf("%d of 8000 is to be granted to a third slice, want 4000: pods of one use 2000, another has 2000", got)
	}
}

// A write of an earlier leader arrives late: by then, another slice has been granted everything. That the
// consumer has written an answer into its slice changes nothing.
func TestARecordThatComesDuringTheTermIsNoGrantToKeep(t *testing.T) {
	forged := known(t, "s", "a", 10, asking("6"), answering(grantOfCPU(6000)))
	w := aLeader(t, forged, known(t, "other", "b", 11, asking("8")))
	cache := w.decider.cache
	cache.endTerm()
	before := recordOf(5, 8000)
	before.uid, before.name, before.Present.Reclaim = "b", "other", offer.Retain
	cache.beginTerm("next", []slice{forged, known(t, "other", "b", 11, asking("8"), answering(grantOfCPU(8000)))}, []grantRecord{before}, nobody)
	late := recordOf(20, 6000)
	late.Present.Reclaim = offer.Retain
	cache.observeRecord("a", &late)
	w.decideBy(goldBy(offer.Retain, 8000))
	if got := taskOf(t, cache, "a").want.Amounts["cpu"]; got != 0 {
		t.Errorf("%d is to be granted by a record that came too late, want 0", got)
	}
}

// never is a filter that refuses what is at least an hour old.
type never struct{ offer.SliceFilter }

func (never) Rule(r *offer.Request) (offer.Ruling, string) {
	if r.Age >= time.Hour {
		return offer.Refused, ""
	}
	return offer.Admitted, ""
}

// Time alone changes what a filter of slices says.
func TestAFilterIsAskedAgainAtTheNextMinute(t *testing.T) {
	s := known(t, "s", "a", 20, asking("2"))
	created := time.Unix(s.created, 0)
	w := aLeader(t, s)
	terms := func(now time.Time, filters ...offer.SliceFilter) func() *offer.AllocationInput {
		return func() *offer.AllocationInput {
			p := offer.Policy{Name: "gold", Class: "gold", Fixed: capacity.Amounts{"cpu": 8000, "memory": 1 << 38}, Slices: offer.Slices{Filters: filters}}
			return offer.NewAllocationInput(offer.Input{Policies: []offer.Policy{p}, View: capacity.NewLedger().View(nil), Now: now})
		}
	}
	for _, step := range []struct {
		at      time.Time
		filters []offer.SliceFilter
		again   time.Duration
		granted int64
	}{
		{created.Add(time.Second), nil, 0, 2000},
		{created.Truncate(time.Minute).Add(time.Hour + 59*time.Second), []offer.SliceFilter{never{}}, time.Second, 2000},
		{created.Truncate(time.Minute).Add(time.Hour + time.Minute), []offer.SliceFilter{never{}}, time.Minute, 0},
	} {
		d := w.decider.decide(step.at, terms(step.at, step.filters...))
		w.decider.cache.endDecision()
		if got := d.Answers[0].Amounts()["cpu"]; d.Again != step.again || got != step.granted {
			t.Errorf("at %v: %d granted, and again after %v, want %d and %v", step.at, got, d.Again, step.granted, step.again)
		}
	}
}
