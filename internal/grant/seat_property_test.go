package grant

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// seatWorld is a world of three nodes, on which policies grant from the pool or from single nodes.
type seatWorld struct {
	*world
	pods   int
	events []string
}

func (w *seatWorld) note(format string, args ...any) {
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

func (w *seatWorld) String() string {
	out := ""
	for _, e := range w.events {
		out += e + "\n"
	}
	return out + w.seats()
}

func (w *seatWorld) setNode(t *rapid.T, i int) {
	name, state := fmt.Sprint("n", i), rapid.IntRange(0, 5).Draw(t, "state")
	size := rapid.Int64Range(0, 12).Draw(t, "size")
	w.note("%s: state %d, size %d", name, state, size)
	switch state {
	case 0:
		w.host(name, cpu(size), cordonedNode)
	case 1:
		w.host(name, cpu(size), downNode)
	case 2:
		w.ledger.DeleteNode(name)
	default:
		w.host(name, cpu(size))
	}
}

func (w *seatWorld) happen(t *rapid.T) {
	some := func(name string) (i int, ok bool) {
		if len(w.slices) == 0 {
			return 0, false
		}
		return rapid.IntRange(0, len(w.slices)-1).Draw(t, name), true
	}
	switch rapid.IntRange(0, 9).Draw(t, "event") {
	case 0, 1:
		w.setNode(t, rapid.IntRange(0, 2).Draw(t, "node"))
	case 2, 3, 4:
		if len(w.slices) < 6 {
			s := asking(fmt.Sprint("s", len(w.slices)), anyID.Draw(t, "consumer"), rapid.Int64Range(0, 3).Draw(t, "created"), rapid.Int64Range(0, 12).Draw(t, "request"))
			s.Class = rapid.SampledFrom([]string{"gold", "silver"}).Draw(t, "class")
			s.Creator = s.Key
			w.slice(s)
			w.note("%s of %s asks for %d %s", s.Key, s.Consumer, s.Request["cpu"], s.Class)
		}
	case 5:
		if i, ok := some("slice"); ok {
			w.slices[i].Request = cpu(rapid.Int64Range(0, 12).Draw(t, "new request"))
			w.note("%s asks for %d", w.slices[i].Key, w.slices[i].Request["cpu"])
		}
	case 6: // The pods of a slice start where its grant may be, within what it has.
		if i, ok := some("user"); ok {
			w.startPod(t, &w.slices[i])
		}
	case 7:
		w.pods++
		node, amount := fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "where")), rapid.Int64Range(0, 4).Draw(t, "local")
		w.pod(fmt.Sprint("local", w.pods%4), node, "", cpu(amount))
		w.note("a local pod of %d on %s", amount, node)
	case 8:
		i := rapid.IntRange(0, len(w.policies)-1).Draw(t, "policy")
		w.policies = slices.Clone(w.policies)
		if p := &w.policies[i]; p.Slices.FitNode {
			fitPool(p)
		} else {
			fitNode(p)
		}
		w.note("%s fits nodes: %v", w.policies[i].Name, w.policies[i].Slices.FitNode)
	case 9:
		w.ledger.DeletePod(fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "ended")))
	}
	w.use()
}

// startPod starts or replaces the pod of a slice on a node where its grant may be, for as much as it has and the node
// has left.
func (w *seatWorld) startPod(t *rapid.T, s *Slice) {
	key := "p" + s.Key[1:]
	w.ledger.DeletePod(key)
	granters := offer.Granters(s.GrantedBy)
	if s.Granted["cpu"] == 0 || len(granters) == 0 {
		return
	}
	node := offer.SeatOf(granters[len(granters)-1])
	if node == "" {
		node = fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "on"))
	}
	amount := rapid.Int64Range(1, s.Granted["cpu"]).Draw(t, "pod")
	w.podOf(key, node, s.Consumer, s.Creator, amount)
	w.note("a pod of %s of %d on %s", s.Key, amount, node)
}

// onNode returns what may count on a node, given what each slice may have there.
func onNode(n *capacity.Single, w *seatWorld, has func(i int) int64) int64 {
	sum := n.InUse.At(0)
	for i := range w.slices {
		used := n.UsedBy(w.slices[i].Consumer, w.slices[i].Creator).At(0)
		sum += max(0, has(i)-used)
	}
	return sum
}

// check checks that, whatever part of the answers is written, no node is exceeded by a raise, that no seat moves while
// it is usable, and that nothing is granted that was not asked for.
func (w *seatWorld) check(t *rapid.T, terms *offer.AllocationInput, answers []Answer) {
	for i := range terms.View.Singles {
		n := &terms.View.Singles[i]
		on := func(granters string, amount int64) int64 {
			for _, by := range offer.Granters(granters) {
				if offer.SeatOf(by) == n.Name {
					return amount
				}
			}
			return 0
		}
		was := func(i int) int64 { return on(w.slices[i].GrantedBy, w.slices[i].Granted["cpu"]) }
		is := func(i int) int64 {
			a := &answers[i]
			if a.Seat == nil || a.Seat.Node != n.Name {
				return 0
			}
			return a.Amounts()["cpu"]
		}
		before := max(n.Free.At(0), onNode(n, w, was))
		if after := onNode(n, w, func(i int) int64 { return max(was(i), is(i)) }); len(n.Pools) > 0 && after > before {
			t.Fatalf("up to %d may be used on %s, which has %d\n%s", after, n.Name, before, w)
		}
	}
	for i := range answers {
		w.checkSeat(t, terms, &w.slices[i], &answers[i])
	}
}

func (w *seatWorld) checkSeat(t *rapid.T, terms *offer.AllocationInput, s *Slice, a *Answer) {
	if a.Seat == nil {
		return
	}
	if granters := offer.Granters(s.GrantedBy); len(granters) > 0 && (s.GrantedIn == "" || s.GrantedIn == s.Class) {
		name := offer.SeatOf(granters[len(granters)-1])
		usable := func(n capacity.Single) bool { return n.Name == name }
		if slices.ContainsFunc(terms.View.Singles, usable) && a.Seat.Node != name {
			t.Fatalf("%s moves from %s to %q, although its node is usable\n%s", s.Key, name, a.Seat.Node, w)
		}
	}
	if a.Amounts()["cpu"] > max(s.Request["cpu"], s.Used["cpu"]) {
		t.Fatalf("%s is granted %d, more than it asks for\n%s", s.Key, a.Amounts()["cpu"], w)
	}
	if a.Seat.Node == "" && a.Amounts()["cpu"] > w.floor(terms, s, a.Policy) {
		t.Fatalf("%s is granted %d without a seat\n%s", s.Key, a.Amounts()["cpu"], w)
	}
}

// floor returns the most that reclaim leaves a slice whatever there is.
func (w *seatWorld) floor(terms *offer.AllocationInput, s *Slice, p *offer.Policy) int64 {
	switch used := terms.View.Used.Of(s.Consumer); {
	case p.Reclaim == offer.Retain:
		return s.Granted["cpu"]
	case p.Reclaim == offer.Evict || used == nil:
		return 0
	default:
		return max(1, used.Everywhere.At(0))
	}
}

// finish writes all answers until nothing changes, and checks that no node is exceeded then but by what reclaim leaves.
func (w *seatWorld) finish(t *rapid.T) {
	for range 10 {
		w.step()
		w.use()
	}
	terms := w.terms()
	answers := Allocate(terms, w.slices)
	for k := range terms.View.Singles {
		n := &terms.View.Singles[k]
		seated := func(i int) bool { return answers[i].Seat != nil && answers[i].Seat.Node == n.Name }
		sum := onNode(n, w, func(i int) int64 {
			if !seated(i) {
				return 0
			}
			return w.slices[i].Granted["cpu"]
		})
		for i := range w.slices {
			s := &w.slices[i]
			if len(n.Pools) > 0 && sum > n.Free.At(0) && seated(i) && s.Granted["cpu"] > w.floor(terms, s, answers[i].Policy) {
				t.Fatalf("in the end %d counts on %s, which has %d, and %s keeps %d\n%s", sum, n.Name, n.Free.At(0), s.Key, s.Granted["cpu"], w)
			}
		}
	}
}

// TestNoHistoryExceedsANode lets nodes come, go and change, slices ask, pods start and policies turn between pools and
// seats. Some answers are lost, and of some it is unknown whether they were written. To run more histories:
//
//	go test -run TestNoHistoryExceedsANode ./internal/grant -rapid.checks=1000000
func TestNoHistoryExceedsANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &seatWorld{world: newWorld()}
		for i, class := range []string{"gold", "silver"} {
			p := gold(func(p *offer.Policy) {
				p.Name, p.Class, p.Created = class, class, int64(i)
				p.Nodes.Percent = rapid.SampledFrom([]int64{100, 60}).Draw(t, "percent")
				p.Reclaim = rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict, offer.Retain}).Draw(t, "reclaim")
				p.Slices.DenyExcess = rapid.IntRange(0, 3).Draw(t, "deny") == 0
			})
			if rapid.IntRange(0, 3).Draw(t, "fit") > 0 {
				fitNode(&p)
			}
			w.policies = append(w.policies, p)
			w.note("%s: %d %%, reclaim %d, deny %v, fits nodes: %v", class, p.Nodes.Percent, p.Reclaim, p.Slices.DenyExcess, p.Slices.FitNode)
		}
		for i := range 3 {
			w.setNode(t, i)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				w.happen(t)
			}
			w.decide(t)
		}
		w.finish(t)
	})
}

// decide decides once, checks the answers and that the order of the slices does not matter, and writes some of them.
func (w *seatWorld) decide(t *rapid.T) {
	terms := w.terms()
	answers := Allocate(terms, w.slices)
	w.check(t, terms, answers)
	reversed := slices.Clone(w.slices)
	slices.Reverse(reversed)
	again := Allocate(terms, reversed)
	for i := range answers {
		a, b := &answers[i], &again[len(again)-1-i]
		if a.Granter != b.Granter || a.Amounts()["cpu"] != b.Amounts()["cpu"] {
			t.Fatalf("the order matters: %s has %v by %s, or %v by %s\n%s", w.slices[i].Key, a.Amounts(), a.Granter, b.Amounts(), b.Granter, w)
		}
	}
	for i := range answers {
		s := &w.slices[i]
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0: // Lost.
			w.note("the answer to %s is lost", s.Key)
		case 1: // The outcome is unknown: the larger amount counts, on both nodes.
			if had, by := s.Granted["cpu"], s.GrantedBy; s.Granted != nil && answers[i].Verdict == Accept {
				w.write(i, &answers[i])
				s.Granted, s.GrantedBy = cpu(max(had, s.Granted["cpu"])), offer.BothGranters(by, s.GrantedBy)
				w.note("%s has up to %d by %s", s.Key, s.Granted["cpu"], s.GrantedBy)
			}
		default:
			w.write(i, &answers[i])
			w.note("%s has %d by %s", s.Key, s.Granted["cpu"], s.GrantedBy)
		}
	}
	w.use()
}
