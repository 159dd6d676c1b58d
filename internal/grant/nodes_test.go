package grant

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// someNodes is a set of the four nodes of an estate, as bits.
type someNodes uint

const (
	fourNodes = 4
	allNodes  = someNodes(1<<fourNodes - 1)
)

func (n someNodes) isWithin(o someNodes) bool { return n&^o == 0 }

// estate is a world of four nodes. Each policy offers the whole capacity of some nodes, so the
// nodes on which a grant can be used are known exactly.
type estate struct {
	*world
	size [fourNodes]int64
	// nodes holds the nodes of each policy that ever existed, by its name, and of each former granter.
	nodes map[string]someNodes
}

func newEstate() *estate {
	e := &estate{world: newWorld(), nodes: map[string]someNodes{}}
	for i := range fourNodes {
		e.resize(i, 10)
	}
	return e
}

func (e *estate) resize(i int, size int64) {
	e.size[i] = size
	of := map[string]string{}
	for set := someNodes(1); set <= allNodes; set++ {
		if set&(1<<i) != 0 {
			of[fmt.Sprint("in-", set)] = "yes"
		}
	}
	e.ledger.SetNode(capacity.Node{Name: fmt.Sprint("n", i), Labels: of, State: capacity.Ready, Allocatable: cpu(size)})
}

// policy adds a policy of some nodes. Every policy has another selector, even for the same nodes.
func (e *estate) policy(class string, set someNodes, edits ...func(*offer.Policy)) *estate {
	e.made++
	p := offer.Policy{Name: fmt.Sprint("p", e.made), Created: int64(e.made), Class: class, Nodes: &offer.Nodes{Percent: 100, Count: offer.Allocatable}}
	p.Nodes.Selection = selectionOf(&p, set)
	for _, edit := range edits {
		edit(&p)
	}
	e.policies = append(slices.Clone(e.policies), p)
	e.nodes[p.Granter()], e.nodes[p.Name] = set, set
	return e
}

// selectionOf returns how a policy selects some nodes. No other policy does it by an equal selection.
func selectionOf(p *offer.Policy, set someNodes) capacity.Selection {
	return capacity.Selection{Selector: withLabel(fmt.Sprint("in-", set), "yes", fmt.Sprint("as in p", p.Created))}
}

// turn edits the nodes of a policy, after a decision by the former ones.
func (e *estate) turn(i int, set someNodes) *estate {
	e.terms()
	e.policies = slices.Clone(e.policies)
	p := &e.policies[i]
	nodes := *p.Nodes
	nodes.Selection = selectionOf(p, set)
	p.Nodes = &nodes
	e.nodes[p.Granter()], e.nodes[p.Name] = set, set
	return e
}

// given adds a slice with a grant of the latest policy.
func (e *estate) given(name, consumer string, age, amount int64) *estate {
	p := e.policies[len(e.policies)-1]
	s := having(name, consumer, age, amount)
	s.Class, s.GrantedBy, s.GrantedIn, s.Reclaim = p.Class, p.Granter(), p.Class, p.Reclaim
	e.slice(s)
	return e
}

// asks adds a slice without a grant that asks for the class of the latest policy.
func (e *estate) asks(name, consumer string, age, amount int64) *estate {
	s := asking(name, consumer, age, amount)
	s.Class = e.policies[len(e.policies)-1].Class
	e.slice(s)
	return e
}

// excess returns, for each set of nodes, by how much the demand on it or on a subset exceeds what
// these nodes have.
func (e *estate) excess(demand func(among someNodes) int64) (all [allNodes + 1]int64) {
	for set := someNodes(1); set <= allNodes; set++ {
		excess := demand(set)
		for i, size := range e.size {
			if set&(1<<i) != 0 {
				excess -= size
			}
		}
		all[set] = max(0, excess)
		for part := someNodes(1); part < set; part++ {
			if part.isWithin(set) {
				all[set] = max(all[set], all[part])
			}
		}
	}
	return all
}

// on returns the amount if it can be used only on these nodes, 0 otherwise.
func (e *estate) on(among someNodes, granters string, amount int64) int64 {
	for _, granter := range offer.Granters(granters) {
		if set, known := e.nodes[granter]; !known || !set.isWithin(among) {
			return 0
		}
	}
	if granters == "" {
		return 0
	}
	return amount
}

// check checks that, whatever part of the answers is written, the excess of no set of nodes grows.
func (e *estate) check(t reporter, terms *offer.AllocationInput, answers []Answer) {
	demand := func(after bool) func(someNodes) int64 {
		return func(among someNodes) (sum int64) {
			for i := range answers {
				s, a := &e.slices[i], &answers[i]
				policy, amount := a.Granter, a.Amounts()["cpu"]
				was, is := e.on(among, s.GrantedBy, s.Granted["cpu"]), e.on(among, policy, amount)
				gone := !terms.FromUnknownNodes(s.GrantedBy) && terms.PoolOf(s.GrantedBy) == nil
				retains := !s.Pinned && a.Policy != nil && a.Policy.Reclaim == offer.Retain
				if s.GrantedIn == s.Class && (gone || retains) {
					// The policy was replaced in its class by one of other nodes, so the grant now
					// counts there; or nothing is taken back, whatever the nodes of the policy have.
					was = max(was, e.on(among, policy, min(s.Granted["cpu"], amount)))
				}
				if s.Pinned {
					is = was
				}
				if after {
					was = max(was, is)
				}
				sum += was
			}
			return sum
		}
	}
	before, after := e.excess(demand(false)), e.excess(demand(true))
	for set := range after {
		if after[set] > before[set] {
			t.Fatalf("the demand on the nodes %04b exceeds them by %d; before, by %d\n%s", set, after[set], before[set], e)
		}
	}
}

func (e *estate) String() string {
	out := fmt.Sprintln("nodes", e.size)
	for _, p := range e.policies {
		out += fmt.Sprintf("%s of %s: nodes %04b, reclaim %d, deny %v\n", p.Name, p.Class, e.nodes[p.Name], p.Reclaim, p.Slices.DenyExcess)
	}
	for _, s := range e.slices {
		out += fmt.Sprintf("%+v\n", s)
	}
	return out
}

func (e *estate) happen(t *rapid.T) {
	class := rapid.SampledFrom([]string{"gold", "silver", "bronze"})
	switch rapid.IntRange(0, 16).Draw(t, "event") {
	case 0:
		e.resize(rapid.IntRange(0, fourNodes-1).Draw(t, "node"), rapid.Int64Range(0, 20).Draw(t, "size"))
	case 1, 2:
		if len(e.policies) == 20 {
			return
		}
		set := someNodes(rapid.UintRange(1, uint(allNodes)).Draw(t, "nodes"))
		e.policy(class.Draw(t, "class"), set, func(p *offer.Policy) {
			p.Reclaim = rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict, offer.Retain}).Draw(t, "reclaim")
			p.Slices.DenyExcess = rapid.IntRange(0, 3).Draw(t, "deny") == 0
			if rapid.Bool().Draw(t, "for some") {
				p.Consumers = offer.Scope{IDs: map[string]struct{}{anyID.Draw(t, "consumer"): {}}}
			}
			if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
				p.Max = cpu(rapid.Int64Range(0, 20).Draw(t, "max"))
			}
		})
	case 3:
		if i := rapid.IntRange(0, 19).Draw(t, "policy"); i < len(e.policies) {
			e.policies = slices.Delete(slices.Clone(e.policies), i, i+1)
		}
	case 16: // Another process starts, which has not seen former nodes.
		e.former = offer.FormerPolicies{}
	case 14, 15:
		if i := rapid.IntRange(0, 9).Draw(t, "turned"); i < len(e.policies) {
			e.turn(i, someNodes(rapid.UintRange(1, uint(allNodes)).Draw(t, "other nodes")))
		}
	case 4, 5, 6:
		if len(e.slices) < 6 {
			s := asking(fmt.Sprint("s", len(e.slices)), anyID.Draw(t, "consumer"), rapid.Int64Range(0, 3).Draw(t, "created"), rapid.Int64Range(0, 30).Draw(t, "request"))
			s.Class = class.Draw(t, "class")
			e.slice(s)
		}
	default:
		e.edit(t, class)
	}
}

func (e *estate) edit(t *rapid.T, class *rapid.Generator[string]) {
	i := rapid.IntRange(0, 5).Draw(t, "slice")
	if i >= len(e.slices) {
		return
	}
	s := &e.slices[i]
	switch rapid.IntRange(0, 5).Draw(t, "edit") {
	case 0, 1, 2:
		s.Class = class.Draw(t, "new class")
	case 3:
		s.Pinned = !s.Pinned && s.Granted != nil
	default:
		s.Request = cpu(rapid.Int64Range(0, 30).Draw(t, "new request"))
	}
}

// TestNoHistoryExceedsTheNodes moves slices between classes of any nodes. Some answers are lost,
// and of some it is unknown whether they were written. Each step knows only what was granted, like
// a leader that takes over. To run more histories:
//
//	go test -run TestNoHistoryExceedsTheNodes ./internal/grant -rapid.checks=1000000
func TestNoHistoryExceedsTheNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEstate()
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				e.happen(t)
			}
			e.decide(t)
		}
		e.finish(t)
	})
}

// decide decides once, checks the answers, and writes some of them.
func (e *estate) decide(t *rapid.T) {
	terms := e.terms()
	answers := Allocate(terms, e.slices)
	e.check(t, terms, answers)
	for i := range answers {
		s := &e.slices[i]
		if s.Pinned {
			continue
		}
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0: // Lost.
		case 1: // The outcome is unknown: the larger amount counts.
			if had, by := s.Granted["cpu"], s.GrantedBy; s.Granted != nil && answers[i].Policy != nil && s.GrantedIn == s.Class {
				e.write(i, &answers[i])
				s.Granted, s.GrantedBy = cpu(max(had, s.Granted["cpu"])), offer.BothGranters(by, s.GrantedBy)
			}
		default:
			e.write(i, &answers[i])
		}
	}
}

// finish writes all answers until nothing changes, and checks that no set of nodes is exceeded
// then, unless a grant is retained.
func (e *estate) finish(t *rapid.T) {
	retains := false
	for i := range e.slices {
		e.slices[i].Pinned = false
	}
	for _, p := range e.policies {
		retains = retains || p.Reclaim == offer.Retain
	}
	for _, s := range e.slices {
		retains = retains || s.Reclaim == offer.Retain
	}
	for range 10 {
		terms := e.terms()
		answers := Allocate(terms, e.slices)
		e.check(t, terms, answers)
		for i := range answers {
			e.write(i, &answers[i])
		}
	}
	after := e.excess(func(among someNodes) (sum int64) {
		for _, s := range e.slices {
			sum += e.on(among, s.GrantedBy, s.Granted["cpu"])
		}
		return sum
	})
	for set, excess := range after {
		if excess > 0 && !retains {
			t.Fatalf("in the end the demand on the nodes %04b exceeds them by %d\n%s", set, excess, e)
		}
	}
}

// TestNoHistoryInTheGraceTakesAGrant starts while nodes lack a part of what they have, and gives it back bit by
// bit. Meanwhile slices come and ask for more or less, and policies are added. Nothing that a slice has and asks
// for falls, nobody is granted what is missing, and in the end everything fits on the nodes again.
func TestNoHistoryInTheGraceTakesAGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEstate()
		for range rapid.IntRange(1, 16).Draw(t, "events before") {
			e.happen(t)
		}
		e.finish(t)
		whole := e.size
		for i := range whole {
			e.resize(i, rapid.Int64Range(0, whole[i]).Draw(t, "left"))
		}
		e.start()
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				e.happenInGrace(t, &whole)
			}
			e.decideInGrace(t)
		}
		for i := range whole {
			e.resize(i, whole[i])
		}
		e.decideInGrace(t)
		e.inGrace = false
		e.decideInGrace(t)
	})
}

func (e *estate) happenInGrace(t *rapid.T, whole *[fourNodes]int64) {
	class := rapid.SampledFrom([]string{"gold", "silver", "bronze"})
	switch rapid.IntRange(0, 5).Draw(t, "event") {
	case 0:
		i := rapid.IntRange(0, fourNodes-1).Draw(t, "node")
		e.resize(i, rapid.Int64Range(e.size[i], whole[i]).Draw(t, "size"))
	case 1:
		e.policy("platinum", someNodes(rapid.UintRange(1, uint(allNodes)).Draw(t, "nodes")))
	case 2:
		s := asking(fmt.Sprint("s", len(e.slices)), anyID.Draw(t, "consumer"), rapid.Int64Range(0, 3).Draw(t, "created"), rapid.Int64Range(0, 30).Draw(t, "request"))
		s.Class = rapid.OneOf(class, rapid.Just("platinum")).Draw(t, "class")
		e.slice(s)
	default:
		if i := rapid.IntRange(0, 9).Draw(t, "slice"); i < len(e.slices) {
			e.slices[i].Request = cpu(rapid.Int64Range(0, 30).Draw(t, "new request"))
		}
	}
}

// decideInGrace decides once, checks the answers, and writes those that lower and some that raise.
func (e *estate) decideInGrace(t *rapid.T) {
	terms := e.terms()
	answers := e.allocate(terms)
	e.check(t, terms, answers)
	for i := range answers {
		s, had := &e.slices[i], e.slices[i].Granted["cpu"]
		gets := answers[i].Amounts()["cpu"]
		if least := min(had, s.Request["cpu"]); answers[i].Policy != nil && gets < least {
			t.Fatalf("%s has %d and keeps %d\n%s", s.Key, least, gets, e)
		}
		if gets <= had || rapid.Bool().Draw(t, "written") {
			e.write(i, &answers[i])
		}
	}
}
