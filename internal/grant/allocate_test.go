package grant

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

func TestRequestsAreRaisedOldestFirst(t *testing.T) {
	w := newWorld(gold()).node("n", "a", cpu(8)).
		slice(asking("young", "rome", 3, 4)).slice(asking("old", "oslo", 1, 5)).slice(asking("middle", "rome", 2, 2))
	answers := w.settle(t)
	w.want(t, "young cpu=1; old cpu=5; middle cpu=2")
	if got, want := becauseOf(&answers[0], ""), "granted 1m of 4m cpu: policy standard leaves 1m for this cluster"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if answers[0].Reason() != ReasonCapped || answers[1].Reason() != ReasonIncomplete {
		t.Errorf("reasons %s and %s, want Capped and Incomplete", answers[0].Reason(), answers[1].Reason())
	}
}

func TestSlicesOfOneSecondAreRaisedInTheOrderOfTheirNames(t *testing.T) {
	w := newWorld(gold()).node("n", "a", cpu(4)).slice(asking("b", "rome", 1, 4)).slice(asking("a", "oslo", 1, 3))
	w.settle(t)
	w.want(t, "b cpu=1; a cpu=3")
}

func TestWhatIsGrantedIsKeptBeforeAnythingIsRaised(t *testing.T) {
	older := having("older", "rome", 1, 2)
	older.Request = cpu(8)
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(older).slice(having("younger", "oslo", 2, 4))
	w.settle(t)
	w.want(t, "older cpu=4; younger cpu=4")
}

func TestAFallOfCapacityTakesFromTheYoungestFirst(t *testing.T) {
	w := newWorld(gold()).node("n", "a", cpu(5)).
		slice(having("first", "rome", 1, 4)).slice(having("second", "oslo", 2, 4)).slice(having("third", "rome", 3, 4))
	w.settle(t)
	w.want(t, "first cpu=4; second cpu=1; third cpu=0")
}

func TestReclaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reclaim offer.Reclaim
		want    string
	}{
		// Rome's pods use 3 and Oslo's 1. Unused keeps that.
		{"Unused", offer.Unused, "rome cpu=4; oslo cpu=1"},
		{"Evict", offer.Evict, "rome cpu=5; oslo cpu=0"},
		{"Retain", offer.Retain, "rome cpu=8; oslo cpu=4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = tc.reclaim })).node("n", "a", cpu(5)).
				pod("r", "n", "rome", cpu(3)).pod("o", "n", "oslo", cpu(1)).
				slice(having("rome", "rome", 1, 8)).slice(having("oslo", "oslo", 2, 4))
			w.settle(t)
			w.want(t, tc.want)
		})
	}
}

func TestCPUAndMemoryStayAboveZeroWhilePodsRun(t *testing.T) {
	has := capacity.Amounts{"cpu": 4, "memory": 4, "pods": 4}
	slice := Slice{Key: "s", Consumer: "rome", Class: "gold", Created: 1, Request: has, Granted: has, GrantedBy: "standard"}
	w := newWorld(gold()).node("n", "a", capacity.Amounts{"cpu": 0, "memory": 0, "pods": 0}).
		pod("p", "n", "rome", capacity.Amounts{}).slice(slice)
	w.settle(t)
	w.want(t, "s cpu=1,memory=1,pods=1")

	w.policies[0].Reclaim = offer.Evict
	w.settle(t)
	w.want(t, "s cpu=0,memory=0,pods=0")
}

func TestUseOfOthersIsCommittedToo(t *testing.T) {
	// Oslo has no slice in this class: an older Liqo offloaded its pods, or they belong to another
	// class.
	w := newWorld(gold()).node("n", "a", cpu(8)).pod("o", "n", "oslo", cpu(3)).pod("r", "n", "rome", cpu(2)).slice(asking("s", "rome", 1, 8))
	w.settle(t)
	w.want(t, "s cpu=5")
}

func TestOnlyGrantsCountOfAllocatable(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Count = offer.Allocatable })).node("n", "a", cpu(8)).
		pod("o", "n", "oslo", cpu(3)).slice(asking("s", "rome", 1, 10))
	w.settle(t)
	w.want(t, "s cpu=8")
}

func TestDenyIsAllOrNothing(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) { p.Slices.DenyExcess = true })).node("n", "a", cpu(8)).
		slice(asking("big", "rome", 1, 10)).slice(asking("small", "oslo", 2, 8))
	answers := w.step()
	w.want(t, "big -; small cpu=8")
	if got, want := becauseOf(&answers[0], ""), "denied: 10m cpu asked, but policy standard leaves 8m for this cluster; it grants all or nothing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.slices[1].Request = cpu(9)
	w.settle(t)
	w.want(t, "big -; small cpu=8")
	w.node("m", "a", cpu(1))
	w.settle(t)
	w.want(t, "big -; small cpu=9")
}

func TestDenyWithholdsWhatThereWouldBeEnoughOf(t *testing.T) {
	s := asking("s", "rome", 1, 10)
	s.Request["memory"] = 1
	w := newWorld(gold(func(p *offer.Policy) { p.Slices.DenyExcess = true })).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).slice(s)
	w.settle(t)
	w.want(t, "s -")
	s = asking("s", "rome", 1, 8)
	s.Request["example.com/unknown"] = 1
	w.slices[0] = s
	answers := w.settle(t)
	w.want(t, "s -")
	if got, want := becauseOf(&answers[0], ""), "denied: 1 example.com/unknown asked, but policy standard does not offer it; it grants all or nothing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASliceIsNotAcceptedWithoutWhatAVirtualNodeNeeds(t *testing.T) {
	s := asking("s", "rome", 1, 4)
	s.Request["memory"] = 4
	w := newWorld(gold()).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).
		slice(Slice{Key: "all", Consumer: "oslo", Class: "gold", Request: capacity.Amounts{"memory": 8}}).slice(s)
	answers := w.settle(t)
	w.want(t, "all memory=8; s -")
	if got, want := becauseOf(&answers[1], ""), "denied: 4 memory asked, but policy standard leaves 0 for this cluster"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDefaultsStandInForWhatIsLeftOut(t *testing.T) {
	s := asking("s", "rome", 1, 4)
	zero := asking("zero", "rome", 2, 0)
	zero.Request["memory"] = 1
	w := newWorld(gold(func(p *offer.Policy) { p.Slices.Defaults = capacity.Amounts{"cpu": 1, "pods": 3} })).
		node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8, "pods": 8}).slice(s).slice(zero)
	w.settle(t)
	w.want(t, "s cpu=4,pods=3; zero cpu=0,memory=1,pods=3")
}

func TestNothingAskedForIsDeniedWithAnExplanation(t *testing.T) {
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(Slice{Key: "s", Consumer: "rome", Class: "gold"})
	answers := w.settle(t)
	w.want(t, "s -")
	if got, want := becauseOf(&answers[0], ""), "denied: nothing is asked for, and policy standard has no defaults of what it offers: write resources in the request"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimitsHoldForAllSlicesOfAConsumerTogether(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) {
		p.Max = cpu(6)
		p.Overrides = []offer.Override{{Consumers: offer.Scope{IDs: map[string]struct{}{"oslo": {}}}, Fixed: cpu(3)}}
	})).node("n", "a", cpu(100)).
		slice(asking("r1", "rome", 1, 4)).slice(asking("r2", "rome", 2, 4)).slice(asking("o", "oslo", 3, 9))
	answers := w.settle(t)
	w.want(t, "r1 cpu=4; r2 cpu=2; o cpu=3")
	for i, want := range map[int]string{
		1: "granted 2m of 4m cpu: policy standard gives this cluster at most 6m, of which its other slices have 4m",
		2: "granted 3m of 9m cpu: policy standard gives this cluster at most 3m",
	} {
		if got := becauseOf(&answers[i], ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFixedAmountsNeedNoNodes(t *testing.T) {
	p := offer.Policy{Name: "standard", Class: "gold", Fixed: capacity.Amounts{"cpu": 4, "example.com/licence": 2}}
	s := asking("s", "rome", 1, 8)
	s.Request["example.com/licence"] = 1
	w := newWorld(p).slice(s).slice(asking("o", "oslo", 2, 8))
	w.settle(t)
	w.want(t, "s cpu=4,example.com/licence=1; o cpu=4")
}

func TestOverlappingPoolsSubtractEachOther(t *testing.T) {
	silver := offer.Policy{Name: "zone", Class: "silver", Nodes: &offer.Nodes{Percent: 100, Selection: inZone("a")}}
	s := asking("s", "oslo", 2, 8)
	s.Class = "silver"
	w := newWorld(gold(), silver).node("n", "a", cpu(4)).node("m", "b", cpu(4)).slice(asking("g", "rome", 1, 3)).slice(s)
	w.settle(t)
	w.want(t, "g cpu=3; s cpu=1")
}

func TestWhatIsTakenBackIsGivenToOthersOnlyWhenThatIsWritten(t *testing.T) {
	lowered := having("lowered", "rome", 1, 8)
	lowered.Request = cpu(2)
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(lowered).slice(asking("waiting", "oslo", 2, 4))
	answers := w.step()
	w.want(t, "lowered cpu=2; waiting -")
	if got, want := becauseOf(&answers[1], ""), "denied: 4m cpu asked, but others have not given it back yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.step()
	w.want(t, "lowered cpu=2; waiting cpu=4")
}

// The record of a slice is above its answer, as after a first answer that met a conflict.
func TestWhatIsOnRecordCountsAgainstOthersUntilTheAnswerIsWritten(t *testing.T) {
	recorded := asking("recorded", "rome", 1, 6)
	recorded.Recorded = cpu(6)
	less := having("less", "rome", 2, 1)
	less.Recorded = cpu(2)
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(recorded).slice(less).slice(asking("other", "oslo", 3, 4))
	for i, want := range []int64{6, 1, 0} {
		if got := Allocate(w.terms(), w.slices)[i].Amounts()["cpu"]; got != want {
			t.Errorf("%s is granted %d, want %d", w.slices[i].Key, got, want)
		}
	}
	if got := Settle(w.terms(), w.slices)[2].Amounts()["cpu"]; got != 1 {
		t.Errorf("once the answers are written, %d is granted, want the 1 that is left", got)
	}
}

// A slice has moved: 6 are on record where it was, of which its pods use 2.
func TestWhatFallsIsGrantedToOthersOnceItIsWritten(t *testing.T) {
	falls := pinned("falls", "rome", 1, 6)
	falls.Falling = cpu(4)
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(falls).slice(asking("other", "oslo", 2, 8))
	if got := Allocate(w.terms(), w.slices)[1].Amounts()["cpu"]; got != 2 {
		t.Errorf("before the record is written, %d is granted, want the 2 that nobody has", got)
	}
	has := w.slices[0].Granted
	if got := Settle(w.terms(), w.slices)[1].Amounts()["cpu"]; got != 6 {
		t.Errorf("once the record is written, %d is granted, want all but the 2 that pods use", got)
	}
	if has["cpu"] != 6 {
		t.Errorf("Settle has changed what others share: %v", has)
	}
}

func TestAnAnswerThatWaitsStillLowers(t *testing.T) {
	lowered := having("lowered", "rome", 1, 8)
	lowered.Request = cpu(2)
	both := Slice{
		Key: "both", Consumer: "oslo", Class: "gold", Created: 2,
		Request: capacity.Amounts{"cpu": 4, "memory": 1}, Granted: capacity.Amounts{"cpu": 0, "memory": 8}, GrantedBy: "standard",
	}
	w := newWorld(gold()).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).slice(lowered).slice(both)
	answers := w.step()
	w.want(t, "lowered cpu=2; both cpu=0,memory=1")
	if got, want := becauseOf(&answers[1], ""), "granted 0 of 4m cpu: the rest is being taken back from others"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.step()
	w.want(t, "lowered cpu=2; both cpu=4,memory=1")
}

func TestAGrantCountsWhereItCameFromUntilItIsAnsweredAnew(t *testing.T) {
	silver := offer.Policy{Name: "other", Class: "silver", Nodes: &offer.Nodes{Percent: 100, Selection: inZone("b")}}
	moved := having("moved", "rome", 1, 4)
	moved.Class = "silver"
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }), silver).
		node("n", "a", cpu(4)).node("m", "b", cpu(2)).slice(moved).slice(asking("waiting", "oslo", 2, 4))
	w.step()
	w.want(t, "moved cpu=2; waiting -")
	w.step()
	w.want(t, "moved cpu=2; waiting cpu=4")

	// The policy that granted the slice is gone, and may have selected any node.
	moved.GrantedBy = "gone"
	w.slices = []Slice{moved, asking("waiting", "oslo", 2, 4)}
	w.step()
	w.want(t, "moved cpu=2; waiting -")
	w.step()
	w.want(t, "moved cpu=2; waiting cpu=4")
}

func TestASliceFromAnotherClassTakesNothingFromThoseThatAreThere(t *testing.T) {
	silver := offer.Policy{Name: "other", Class: "silver", Nodes: &offer.Nodes{Percent: 100, Selection: inZone("b")}, Reclaim: offer.Retain}
	moved, there := having("moved", "rome", 1, 4), having("there", "oslo", 2, 3)
	moved.Class = "silver"
	there.Class, there.GrantedBy, there.GrantedIn = "silver", "other", "silver"
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }), silver).
		node("n", "a", cpu(4)).node("m", "b", cpu(4)).slice(moved).slice(there)
	w.settle(t)
	w.want(t, "moved cpu=1; there cpu=3")

	// Pods on other nodes do not count here. One unit of cpu stays, because Liqo evicts all pods at
	// 0.
	w.node("n", "a", cpu(8)).node("m", "b", cpu(3))
	w.slices = []Slice{moved, there}
	w.pod("p", "n", "rome", cpu(2))
	w.settle(t)
	w.want(t, "moved cpu=1; there cpu=3")

	// Pods on these nodes do.
	w.slices = []Slice{moved, there}
	w.pod("p", "m", "rome", cpu(2))
	w.settle(t)
	w.want(t, "moved cpu=2; there cpu=3")
}

func TestUnderACordonAnotherClassGrantsNothing(t *testing.T) {
	silver := offer.Policy{Name: "other", Class: "silver", Nodes: &offer.Nodes{Percent: 100}}
	moved := having("moved", "rome", 1, 4)
	moved.Class, moved.Frozen = "silver", true
	w := newWorld(gold(), silver).node("n", "a", cpu(8)).slice(moved)
	w.settle(t)
	w.want(t, "moved cpu=0")
}

func TestSlicesThatChangePlacesDoNotWaitForEachOther(t *testing.T) {
	silver := offer.Policy{Name: "other", Class: "silver", Nodes: &offer.Nodes{Percent: 100, Selection: inZone("b")}}
	a, b := having("a", "rome", 1, 4), having("b", "oslo", 2, 4)
	a.Class = "silver"
	b.GrantedBy, b.GrantedIn = "other", "silver"
	w := newWorld(gold(func(p *offer.Policy) { p.Nodes.Selection = inZone("a") }), silver).
		node("n", "a", cpu(4)).node("m", "b", cpu(4)).slice(a).slice(b)
	answers := w.step()
	w.want(t, "a cpu=0; b cpu=0")
	if got, want := becauseOf(&answers[0], ""), "granted 0 of 4m cpu: the rest is being taken back from others"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.step()
	w.want(t, "a cpu=4; b cpu=4")
}

func TestAClassOfTheSameNodesIsChangedWithoutALoss(t *testing.T) {
	silver := offer.Policy{Name: "other", Class: "silver", Nodes: &offer.Nodes{Percent: 100}}
	moved := having("moved", "rome", 1, 8)
	moved.Class = "silver"
	w := newWorld(gold(), silver).node("n", "a", cpu(8)).slice(moved)
	w.step()
	w.want(t, "moved cpu=8")
}

func TestWhatIsNotOfferedAnyMoreStandsAsZero(t *testing.T) {
	s := having("s", "rome", 1, 4)
	s.Request["nvidia.com/gpu"], s.Granted["nvidia.com/gpu"] = 1, 1
	s.Request["never"] = 1
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(s)
	answers := w.settle(t)
	w.want(t, "s cpu=4,nvidia.com/gpu=0")
	want := "granted 0 of 1 never: policy standard does not offer it; 0 of 1 nvidia.com/gpu: policy standard does not offer it"
	if got := becauseOf(&answers[0], ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.policies[0].Reclaim = offer.Retain
	w.slices[0].Granted["nvidia.com/gpu"] = 1
	w.settle(t)
	w.want(t, "s cpu=4,nvidia.com/gpu=1")
}

func TestACordonKeepsAndAcceptsNothingNew(t *testing.T) {
	kept, fresh := having("kept", "rome", 1, 2), asking("fresh", "rome", 2, 2)
	kept.Request = cpu(4)
	kept.Frozen, fresh.Frozen = true, true
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(kept).slice(fresh)
	answers := w.settle(t)
	w.want(t, "kept cpu=2; fresh -")
	if got, want := becauseOf(&answers[1], ""), "denied: 2m cpu asked, but the provider has cordoned this cluster and grants it nothing new"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if answers[0].Reason() != ReasonCordoned || answers[1].Reason() != ReasonCordoned {
		t.Errorf("reasons %s and %s, want Cordoned", answers[0].Reason(), answers[1].Reason())
	}
	w.slices[0].Frozen, w.slices[1].Frozen = false, false
	w.settle(t)
	w.want(t, "kept cpu=4; fresh cpu=2")
}

func TestAnInvalidRequestChangesNothing(t *testing.T) {
	kept, fresh := having("kept", "rome", 1, 2), asking("fresh", "rome", 2, 2)
	kept.Invalid, fresh.Invalid = true, true
	kept.Request = nil
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(kept).slice(fresh)
	answers := w.settle(t)
	w.want(t, "kept cpu=2; fresh -")
	for i, want := range []string{"nothing more is granted until the request is corrected: write 0 or more", "denied: write 0 or more"} {
		if got := becauseOf(&answers[i], "write 0 or more"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := answers[i].Reason(); got != ReasonInvalid {
			t.Errorf("got reason %s, want %s", got, ReasonInvalid)
		}
	}
}

func TestAnInvalidRequestWhoseGrantFallsIsToldOfThat(t *testing.T) {
	s := having("s", "rome", 1, 6)
	s.Invalid, s.Request = true, nil
	w := newWorld(gold()).node("n", "a", cpu(2)).slice(s)
	answers := w.step()
	want := "granted 2m of 6m cpu: policy standard leaves 2m for this cluster; nothing more is granted until the request is corrected: write 0 or more"
	if got := becauseOf(&answers[0], "write 0 or more"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := answers[0].Reason(); got != ReasonInvalid {
		t.Errorf("got reason %s, want %s", got, ReasonInvalid)
	}
}

func TestWhatNoPolicyDecidesOnIsTakenBackButForUse(t *testing.T) {
	w := newWorld().node("n", "a", cpu(8)).pod("p", "n", "rome", cpu(3)).
		slice(having("used", "rome", 1, 4)).slice(having("unused", "oslo", 2, 4))
	answers := w.settle(t)
	w.want(t, "used cpu=3; unused cpu=0")
	if got, want := becauseOf(&answers[0], ""), "granted 3m of 4m cpu: no policy of the provider serves this cluster in this class any more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if answers[0].Reason() != ReasonWithdrawn {
		t.Errorf("got reason %s, want %s", answers[0].Reason(), ReasonWithdrawn)
	}
}

func TestARaiseThatIsHardlyWorthItWaits(t *testing.T) {
	s := having("s", "rome", 1, 100)
	s.Request = cpu(200)
	w := newWorld(gold(func(p *offer.Policy) { p.ThresholdPercent = 5 })).node("n", "a", cpu(105)).slice(s)
	w.settle(t)
	w.want(t, "s cpu=100")
	w.node("n", "a", cpu(106))
	w.settle(t)
	w.want(t, "s cpu=106")
	// A raise that completes the request is never too small.
	w.slices[0].Request = cpu(107)
	w.node("n", "a", cpu(107))
	w.settle(t)
	w.want(t, "s cpu=107")
}

func TestARaiseByOneDeviceDoesNotWait(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	s := having("s", "rome", 1, 100)
	s.Request, s.Granted = capacity.Amounts{"cpu": 100, gpu: 32}, capacity.Amounts{"cpu": 100, gpu: 23}
	w := newWorld(gold(func(p *offer.Policy) { p.ThresholdPercent = 100 })).
		node("n", "a", capacity.Amounts{"cpu": 100, gpu: 24}).slice(s)
	w.settle(t)
	w.want(t, "s cpu=100,nvidia.com/gpu=24")
}

func TestAmountsAtTheEndOfTheRange(t *testing.T) {
	w := newWorld(gold()).node("n", "a", cpu(math.MaxInt64)).pod("o", "n", "oslo", cpu(math.MaxInt64)).
		slice(asking("r1", "rome", 1, math.MaxInt64)).slice(having("o1", "oslo", 2, math.MaxInt64)).slice(asking("o2", "oslo", 3, math.MaxInt64))
	w.settle(t)
	w.want(t, "r1 -; o1 cpu=9223372036854775807; o2 -")
}

func TestExplanationsStayReadable(t *testing.T) {
	s := Slice{Key: "s", Consumer: "rome", Class: "gold", Request: capacity.Amounts{"cpu": 1}}
	for _, c := range "abcdefghij" {
		name := ""
		for range 10_000 {
			name += string(c)
		}
		s.Request[name] = 1
	}
	w := newWorld(gold()).node("n", "a", cpu(8)).slice(s)
	answers := w.settle(t)
	w.want(t, "s cpu=1")
	text := becauseOf(&answers[0], "")
	if len(text) > 1000 {
		t.Errorf("%d bytes, want at most 1000: %s", len(text), text)
	}
	if diff := cmp.Diff("and 5 more resources", text[len(text)-len("and 5 more resources"):]); diff != "" {
		t.Error(diff)
	}
}

func TestWhatPodsStillUseIsNotGivenToOthersWhileItIsEvicted(t *testing.T) {
	w := newWorld(gold(func(p *offer.Policy) { p.Reclaim = offer.Evict })).node("n", "a", cpu(8)).pod("r", "n", "rome", cpu(8)).
		slice(having("r", "rome", 1, 4)).slice(asking("o", "oslo", 2, 4))
	w.settle(t)
	w.want(t, "r cpu=4; o -")
}

func TestAConsumerCanBeGrantedWhatItsPodsUseAlready(t *testing.T) {
	// Oslo's pods use more than the pool, but Rome can be granted what its own pods use.
	w := newWorld(gold()).node("n", "a", cpu(8)).pod("o", "n", "oslo", cpu(10)).pod("r", "n", "rome", cpu(3)).slice(asking("s", "rome", 1, 5))
	w.settle(t)
	w.want(t, "s cpu=3")
}

func TestAPoolInsideAnotherKeepsWhatItGranted(t *testing.T) {
	inside := offer.Policy{Name: "zone", Class: "silver", Nodes: &offer.Nodes{Percent: 100, Selection: inZone("a")}}
	for _, ages := range [][2]int64{{1, 2}, {2, 1}} {
		s := having("s", "oslo", ages[0], 8)
		s.Class, s.GrantedBy, s.GrantedIn = "silver", "zone", "silver"
		w := newWorld(gold(), inside).node("n", "a", cpu(8)).node("m", "b", cpu(8)).slice(having("g", "rome", ages[1], 8)).slice(s)
		w.settle(t)
		w.want(t, "g cpu=8; s cpu=8")
		// A fall of capacity takes from the youngest slice of all pools.
		w.node("m", "b", cpu(4))
		w.settle(t)
		if ages[0] < ages[1] {
			w.want(t, "g cpu=4; s cpu=8")
		} else {
			w.want(t, "g cpu=8; s cpu=4")
		}
	}
}

func TestPoolsThatShareNoNodeCountEachForItself(t *testing.T) {
	// One pool has all nodes, and two others have a zone each. Together, the two may grant as much
	// as all nodes have.
	apart := func(name, class, zone string) offer.Policy {
		return offer.Policy{Name: name, Class: class, Nodes: &offer.Nodes{Percent: 100, Selection: inZone(zone)}}
	}
	of := func(name, class, by string, age int64) Slice {
		s := having(name, "rome", age, 8)
		s.Class, s.GrantedBy, s.GrantedIn = class, by, class
		return s
	}
	all := gold(func(p *offer.Policy) { p.Nodes.Percent = 50 })
	w := newWorld(all, apart("za", "silver", "a"), apart("zb", "bronze", "b")).node("n", "a", cpu(8)).node("m", "b", cpu(8)).
		slice(of("s", "silver", "za", 1)).slice(of("b", "bronze", "zb", 2))
	w.settle(t)
	w.want(t, "s cpu=8; b cpu=8")
}
