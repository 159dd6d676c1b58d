package grant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// fitting returns a policy of all nodes that grants each slice from one node, named by the label host.
func fitting(edits ...func(*offer.Policy)) offer.Policy {
	return gold(append([]func(*offer.Policy){fitNode}, edits...)...)
}

func fitNode(p *offer.Policy) {
	nodes := *p.Nodes
	nodes.Selection.Single = true
	p.Nodes, p.Slices.FitNode, p.Slices.NodeKey = &nodes, true, "host"
}

// fitPool turns a policy back.
func fitPool(p *offer.Policy) {
	nodes := *p.Nodes
	nodes.Selection.Single = false
	p.Nodes, p.Slices.FitNode, p.Slices.NodeKey = &nodes, false, ""
}

func denyExcess(p *offer.Policy) { p.Slices.DenyExcess = true }

// host adds a node that its label host names.
func (w *world) host(name string, amounts capacity.Amounts, edits ...func(*capacity.Node)) *world {
	n := capacity.Node{
		Name: name, Labels: map[string]string{"host": name, "zone": "a"}, State: capacity.Ready, Allocatable: amounts,
	}
	for _, edit := range edits {
		edit(&n)
	}
	w.ledger.SetNode(n)
	return w
}

func cordonedNode(n *capacity.Node) {
	n.State = capacity.Cordoned
	n.Taints = []capacity.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: capacity.NoSchedule}}
}

func downNode(n *capacity.Node) { n.State = capacity.NotReady }

// podOf adds a pod of a slice, whose key is its creator.
func (w *world) podOf(key, node, consumer, slice string, amount int64) *world {
	w.ledger.SetPod(capacity.Pod{Key: key, Node: node, Consumer: consumer, Creator: slice, Requests: cpu(amount)})
	return w
}

// use sets the use of each slice as the ledger has it, as package holding does.
func (w *world) use() *world {
	for i := range w.slices {
		s := &w.slices[i]
		s.Creator, s.Used = s.Key, nil
		used := w.ledger.View(offer.Selections(w.policies)).Used.Of(s.Consumer).By(s.Key).At(0)
		if held := s.Granted["cpu"]; min(used, held) > 0 {
			s.Used = cpu(min(used, held))
		}
	}
	return w
}

// seats returns what each slice has and from which node, as in "a 4 on n1".
func (w *world) seats() string {
	var out []string
	for i := range w.slices {
		s := &w.slices[i]
		if s.Granted == nil {
			out = append(out, s.Key+" -")
			continue
		}
		var seats []string
		for _, by := range offer.Granters(s.GrantedBy) {
			seats = append(seats, cmp.Or(offer.SeatOf(by), "the pool"))
		}
		out = append(out, fmt.Sprintf("%s %d on %s", s.Key, s.Granted["cpu"], strings.Join(seats, "+")))
	}
	return strings.Join(out, "; ")
}

func (w *world) wantSeats(t *testing.T, want string) {
	t.Helper()
	if got := w.seats(); got != want {
		t.Errorf("granted %s\nwant %s", got, want)
	}
}

func TestASliceIsGrantedFromOneNode(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8))
	w.slice(asking("a", "rome", 1, 5)).slice(asking("b", "rome", 2, 5)).slice(asking("c", "oslo", 3, 5))
	answers := w.step()
	w.wantSeats(t, "a 5 on n1; b 5 on n2; c 3 on n1")
	if got, want := becauseOf(&answers[2], ""), "granted 3 of 5 cpu"; !strings.HasPrefix(got, "granted 3m of 5m cpu: policy standard grants from one node, which leaves 3m") {
		t.Errorf("c is told %q, want %s and why", got, want)
	}
	if want := map[string]string{"host": "n1"}; !maps.Equal(answers[0].NodeSelector(), want) {
		t.Errorf("the answer names %v, want %v", answers[0].NodeSelector(), want)
	}
	w.settle(t)
	w.wantSeats(t, "a 5 on n1; b 5 on n2; c 3 on n1")
}

func TestTheNodeIsChosenThatIsLeftFullest(t *testing.T) {
	w := newWorld(fitting()).host("big", capacity.Amounts{"cpu": 16, "memory": 16}).
		host("small", capacity.Amounts{"cpu": 4, "memory": 4}).host("wide", capacity.Amounts{"cpu": 4, "memory": 16})
	s := asking("a", "rome", 1, 4)
	s.Request["memory"] = 4
	w.slice(s).step()
	w.wantSeats(t, "a 4 on small")
}

func TestAllOrNothingNeedsANodeWithAllOfIt(t *testing.T) {
	w := newWorld(fitting(denyExcess)).host("n1", cpu(4)).host("n2", cpu(3))
	w.slice(asking("a", "rome", 1, 5)).slice(asking("b", "rome", 2, 4))
	answers := w.step()
	w.wantSeats(t, "a -; b 4 on n1")
	want := "denied: 5m cpu asked, but policy standard grants from one node, which leaves 4m; it grants all or nothing"
	if got := becauseOf(&answers[0], ""); got != want {
		t.Errorf("a is told %q, want %q", got, want)
	}
	w.host("n3", cpu(8)).step()
	w.wantSeats(t, "a 5 on n3; b 4 on n1")
}

func TestASeatIsKeptWhileItIsUsable(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8))
	w.slice(asking("a", "rome", 1, 6)).slice(asking("b", "oslo", 2, 6)).settle(t)
	w.wantSeats(t, "a 6 on n1; b 6 on n2")
	w.slices[0].Request = cpu(1) // Both would fit on n1 now.
	w.host("n0", cpu(6)).settle(t)
	w.wantSeats(t, "a 1 on n1; b 6 on n2")
}

func TestALocalPodTakesWhatIsUnusedOfASeat(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8))
	w.slice(asking("old", "rome", 1, 4)).slice(asking("young", "oslo", 2, 4)).settle(t)
	w.wantSeats(t, "old 4 on n1; young 4 on n1")
	w.pod("local", "n1", "", cpu(3)).settle(t)
	w.wantSeats(t, "old 4 on n1; young 1 on n1")
	w.podOf("p", "n1", "oslo", "young", 1).use().pod("more", "n1", "", cpu(3)).settle(t)
	w.wantSeats(t, "old 1 on n1; young 1 on n1")
}

func TestWhatOthersUseOfANodeIsNotGrantedFromIt(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8))
	w.pod("p", "n1", "oslo", cpu(5)).slice(asking("a", "rome", 1, 8)).settle(t)
	w.wantSeats(t, "a 3 on n1")
}

func TestASliceKeepsTheSeatOnACordonedNode(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8))
	w.slice(asking("a", "rome", 1, 5)).slice(asking("b", "oslo", 2, 6)).settle(t)
	w.host("n1", cpu(8), cordonedNode)
	w.slices[0].Request = cpu(7)
	answers := w.settle(t)
	w.wantSeats(t, "a 5 on n1; b 6 on n2")
	want := "granted 5m of 7m cpu: the node that it is granted from is cordoned"
	if got := becauseOf(&answers[0], ""); got != want || !answers[0].Seat.Cordoned {
		t.Errorf("a is told %q, want %q", got, want)
	}
	w.slice(asking("c", "oslo", 3, 4)).settle(t)
	w.wantSeats(t, "a 5 on n1; b 6 on n2; c 2 on n2")
	w.host("n1", cpu(8)).settle(t)
	w.wantSeats(t, "a 7 on n1; b 6 on n2; c 2 on n2")
}

func TestASliceWhoseNodeIsGoneIsSeatedAnew(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8)).host("n3", cpu(4))
	w.slice(asking("a", "rome", 1, 7)).slice(asking("b", "oslo", 2, 6)).settle(t)
	w.wantSeats(t, "a 7 on n1; b 6 on n2")
	w.podOf("p", "n1", "rome", "a", 3).use()
	w.host("n1", cpu(8), downNode)
	answers := w.step()
	w.wantSeats(t, "a 4 on n3; b 6 on n2") // b does not make room.
	if got := answers[0].Reason(); got != ReasonSeatLost {
		t.Errorf("the reason is %s, want %s", got, ReasonSeatLost)
	}
	w.ledger.DeletePod("p")
	answers = w.use().settle(t)
	w.wantSeats(t, "a 4 on n3; b 6 on n2")
	if got := answers[0].Reason(); got != ReasonCapped {
		t.Errorf("the reason is %s, want %s", got, ReasonCapped)
	}
}

func TestWithoutRoomForItASliceFallsToWhatItsPodsUse(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(2))
	w.slice(asking("a", "rome", 1, 7)).settle(t)
	w.podOf("p", "n1", "rome", "a", 3).use()
	w.host("n1", cpu(8), downNode)
	answers := w.step()
	w.wantSeats(t, "a 3 on n1")
	if got := answers[0].Seat; got.Node != "" || got.Lost != "n1" || answers[0].NodeSelector()["host"] != noSeat {
		t.Errorf("the seat is %+v, want none, and n1 lost", got)
	}
	w.host("n3", cpu(5)).settle(t)
	w.wantSeats(t, "a 5 on n3")
}

func TestAFullSeatIsNeitherRaisedNorMoved(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(20))
	w.slice(asking("a", "rome", 1, 8)).settle(t)
	w.slices[0].Request = cpu(12)
	w.settle(t)
	w.wantSeats(t, "a 8 on n1")
}

// TestRoomThatOthersHaveYetToGiveUpIsNotTaken: until the lower answer of one slice is written, no other is granted that.
func TestRoomThatOthersHaveYetToGiveUpIsNotTaken(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(1))
	w.slice(asking("a", "rome", 1, 8)).settle(t)
	w.slices[0].Request = cpu(2)
	w.slice(asking("b", "oslo", 2, 6))
	answers := w.allocate(w.terms())
	if got := answers[1]; got.Seat.Node != "n2" && got.Verdict == Accept {
		t.Errorf("b is granted %v on %s before a has given it up", got.Amounts(), got.Seat.Node)
	}
	w.write(0, &answers[0])
	w.settle(t)
	w.wantSeats(t, "a 2 on n1; b 6 on n1")
}

func TestTwoRaisesShareTheRoomThatIsFreeNow(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(12)).host("n2", cpu(1))
	w.slice(asking("a", "rome", 1, 8)).settle(t)
	w.slices[0].Request = cpu(2)
	w.slice(asking("b", "oslo", 2, 4)).slice(asking("c", "oslo", 3, 4))
	answers := w.allocate(w.terms())
	if b, c := answers[1].Amounts()["cpu"], answers[2].Amounts()["cpu"]; b != 4 || c > 1 {
		t.Errorf("before a has given anything up, b is granted %d and c %d", b, c)
	}
}

func TestAPoolAndSeatsShareTheirNodes(t *testing.T) {
	silver := gold(func(p *offer.Policy) { p.Name, p.Class, p.Created = "silver", "silver", 1 })
	w := newWorld(fitting(), silver).host("n1", cpu(8)).host("n2", cpu(8))
	s := asking("pooled", "oslo", 1, 9)
	s.Class = "silver"
	w.slice(s).slice(asking("a", "rome", 2, 8)).settle(t)
	w.wantSeats(t, "pooled 9 on the pool; a 7 on n1")
	w.slice(asking("b", "rome", 3, 1)).settle(t)
	w.wantSeats(t, "pooled 9 on the pool; a 7 on n1; b -")
}

func TestARequestNarrowsTheNodes(t *testing.T) {
	inB := func(n *capacity.Node) { n.Labels["zone"] = "b" }
	w := newWorld(fitting(func(p *offer.Policy) { p.Slices.RequestKeys = []string{"zone"} })).
		host("n1", cpu(8)).host("n2", cpu(8), inB)
	a, b := asking("a", "rome", 1, 5), asking("b", "rome", 2, 5)
	a.Nodes, b.Nodes = map[string]string{"zone": "b"}, map[string]string{"rack": "1"}
	answers := w.slice(a).slice(b).step()
	w.wantSeats(t, "a 5 on n2; b -")
	want := "denied: 5m cpu asked, but policy standard lets requests choose nodes by zone only, not by rack"
	if got := becauseOf(&answers[1], ""); got != want {
		t.Errorf("b is told %q, want %q", got, want)
	}
}

func TestANodeWithoutANameOfItsOwnIsNoSeat(t *testing.T) {
	alike := func(n *capacity.Node) { n.Labels["host"] = "same" }
	unnamed := func(n *capacity.Node) { delete(n.Labels, "host") }
	w := newWorld(fitting()).host("n1", cpu(9), alike).host("n2", cpu(9), alike).host("n3", cpu(9), unnamed).host("n4", cpu(3))
	w.slice(asking("a", "rome", 1, 8)).settle(t)
	w.wantSeats(t, "a 3 on n4")
}

func TestAPolicyTurnsFromItsPoolToSeatsAndBack(t *testing.T) {
	w := newWorld(gold()).host("n1", cpu(8)).host("n2", cpu(8))
	w.slice(asking("a", "rome", 1, 12)).slice(asking("b", "oslo", 2, 4)).settle(t)
	w.wantSeats(t, "a 12 on the pool; b 4 on the pool")
	w.podOf("p", "n2", "rome", "a", 5).use()
	w.policies = []offer.Policy{fitting()}
	w.settle(t)
	w.wantSeats(t, "a 8 on n1; b 3 on n2")
	w.policies = []offer.Policy{gold()}
	w.settle(t)
	w.wantSeats(t, "a 12 on the pool; b 4 on the pool")
}

func TestAProspectIsWhatOneNodeHas(t *testing.T) {
	w := newWorld(fitting()).host("n1", capacity.Amounts{"cpu": 8, "memory": 2}).host("n2", capacity.Amounts{"cpu": 6, "memory": 6})
	p := Prospects(w.terms(), nil, []Asker{{"rome", "gold"}})[0]
	want := []Available{
		{Resource: "cpu", Amount: 6, Bound: BySeat, Ceiling: 14}, {Resource: "memory", Amount: 6, Bound: BySeat, Ceiling: 8},
	}
	if !slices.Equal(p.Resources, want) {
		t.Errorf("the prospect is %+v, want %+v", p.Resources, want)
	}
}

// TestAnAnswerUnderWayIsDecidedAgain: as long as the answer that moves a slice is not confirmed, its record names both
// nodes, and the next decision is the same.
func TestAnAnswerUnderWayIsDecidedAgain(t *testing.T) {
	w := newWorld(fitting()).host("n1", cpu(8)).host("n2", cpu(8)).host("n3", cpu(8))
	w.slice(asking("a", "rome", 1, 6)).settle(t)
	w.ledger.DeleteNode("n1")
	answers := w.allocate(w.terms())
	s := &w.slices[0]
	s.GrantedBy = offer.BothGranters(s.GrantedBy, answers[0].Granter)
	w.slice(asking("b", "oslo", 2, 6)).wantSeats(t, "a 6 on n1+n2; b -")
	w.step()
	w.wantSeats(t, "a 6 on n2; b 6 on n3")
}
