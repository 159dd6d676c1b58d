package grant

import (
	"testing"

	"proffer.dev/proffer/internal/offer"
)

// Of two slices of gold, the nodes of which are edited, the older one keeps what still fits. A third one asks for
// nodes that become free, or has some of those that gold selects now.
func TestWhatAnEditOfNodesFreesIsGrantedOnceItHasBeenAnswered(t *testing.T) {
	const nodeC = someNodes(4)
	for _, tc := range []struct {
		name       string
		to, beside someNodes
		besideHas  int64
		at, then   string
	}{
		{"fewer", nodeA, nodeB, 0, "old cpu=10; young cpu=0; beside -", "old cpu=10; young cpu=0; beside cpu=10"},
		{"others", nodeC, nodeA, 0, "old cpu=10; young cpu=0; beside -", "old cpu=10; young cpu=0; beside cpu=10"},
		{"more", nodesAB | nodeC, nodeC, 0, "old cpu=10; young cpu=10; beside -", "old cpu=10; young cpu=10; beside -"},
		{"some others", nodeB | nodeC, nodeA, 0, "old cpu=10; young cpu=10; beside -", "old cpu=10; young cpu=10; beside cpu=10"},
		{"those of another", nodeC, nodeC, 10, "old cpu=0; young cpu=0; beside cpu=0", "old cpu=10; young cpu=0; beside cpu=0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate().policy("gold", nodesAB).given("old", "rome", 1, 10).given("young", "oslo", 2, 10).policy("silver", tc.beside)
			if tc.besideHas > 0 {
				e.given("beside", "paris", 3, tc.besideHas)
			} else {
				e.asks("beside", "paris", 3, 10)
			}
			e.slices[1].Request["x"] = 1 // Nothing offers it.
			e.turn(0, tc.to).checkedStep(t)
			e.want(t, tc.at)
			e.checkedStep(t)
			e.want(t, tc.then)
		})
	}
}

// A process that has started since an edit of nodes does not know from which a slice was granted.
func TestAGrantFromUnknownNodesCountsOnAllNodesUntilItHasBeenAnswered(t *testing.T) {
	for _, by := range []string{"p1@0123abcd", "gone@0123abcd"} {
		e := newEstate().policy("gold", nodeA).given("old", "rome", 1, 8).policy("silver", nodeB)
		e.slices[0].GrantedBy = by
		e.asks("beside", "paris", 3, 10).checkedStep(t)
		e.want(t, "old cpu=8; beside cpu=2")
		e.checkedStep(t)
		e.want(t, "old cpu=8; beside cpu=10")
	}
}

// What pods use on the nodes of several pools together is not known.
func TestAnEditOfNodesLeavesRoomForWhatPodsUse(t *testing.T) {
	const nodeC, nodeD = someNodes(4), someNodes(8)
	counts := func(p *offer.Policy) { p.Nodes.Count = offer.Free }
	e := newEstate()
	for i := range fourNodes {
		e.resize(i, 5)
	}
	e.policy("gold", nodesAB, counts).given("moves", "rome", 1, 10).policy("silver", nodeC|nodeD, counts).given("there", "oslo", 2, 5)
	e.pod("on d", "n3", "bern", cpu(5))
	e.turn(0, nodeB|nodeC).checkedStep(t)
	e.want(t, "moves cpu=5; there cpu=5")
}

// What is left of a deleted slice is on the former nodes, and takes nothing from a slice that moves to the present ones.
func TestWhatCannotBeTakenBackFromFormerNodesCountsThereAlone(t *testing.T) {
	e := newEstate().policy("gold", nodeA).given("gone", "rome", 1, 4).given("moves", "oslo", 2, 6)
	e.resize(1, 5)
	e.slices[0].Pinned = true
	e.turn(0, nodeB).checkedStep(t)
	e.want(t, "gone cpu=4; moves cpu=5")
	e.policy("silver", nodeA).asks("beside", "paris", 3, 10).checkedStep(t)
	e.want(t, "gone cpu=4; moves cpu=5; beside cpu=6")
}

// The record names both selections before the answer from the second one is written.
func TestAGrantThatMayBeOnEitherNodesClaimsNothingThatOthersHave(t *testing.T) {
	e := newEstate().policy("gold", nodeA).given("old", "rome", 1, 10).turn(0, nodeB).given("there", "oslo", 2, 10)
	e.slices[0].GrantedBy = offer.BothGranters(e.slices[0].GrantedBy, e.slices[1].GrantedBy)
	e.checkedStep(t)
	e.want(t, "old cpu=0; there cpu=0")
	e.checkedStep(t)
	e.want(t, "old cpu=10; there cpu=0")
}

// What a policy has granted that does not decide any longer may be on a node that gold comes to select.
func TestAnEditOfNodesLeavesRoomForWhatADryRunHasGranted(t *testing.T) {
	const nodeC, nodeX = someNodes(4), someNodes(8)
	e := newEstate().policy("gold", nodeA|nodeX).given("old", "rome", 1, 10).given("young", "oslo", 2, 10).
		policy("dry", nodeB|nodeC, func(p *offer.Policy) { p.Reclaim = offer.Retain }).given("held", "bern", 3, 10).
		policy("last", nodeC).given("last", "paris", 4, 10)
	e.policies[1].DryRun = true
	e.turn(0, nodesAB)
	for range 3 {
		e.checkedStep(t)
	}
	e.want(t, "old cpu=10; young cpu=0; held cpu=10; last cpu=0")
}

// Both policies have got other nodes while no process ran: each slice may be where the other one is to be.
func TestGrantsFromUnknownNodesClaimNothingThatOthersMayHave(t *testing.T) {
	e := newEstate().policy("gold", nodeA).given("old", "rome", 1, 10).policy("silver", nodeB).given("young", "oslo", 2, 10)
	e.turn(0, nodeB).turn(1, nodeA)
	e.former = offer.FormerPolicies{}
	e.checkedStep(t)
	e.want(t, "old cpu=0; young cpu=0")
	e.checkedStep(t)
	e.want(t, "old cpu=10; young cpu=10")
}

// A policy that is deleted and created again by another name has the same nodes.
func TestAGrantByAPolicyThatIsGoneCountsOnTheNodesOfOneThatSelectsTheSame(t *testing.T) {
	e := newEstate().policy("gold", nodeA).given("old", "rome", 1, 10).policy("silver", nodeB)
	e.policies[0].Name = "renamed"
	e.nodes["renamed"], e.nodes[e.policies[0].Granter()] = nodeA, nodeA
	e.asks("beside", "paris", 3, 10).checkedStep(t)
	e.want(t, "old cpu=10; beside cpu=10")
	if by := e.slices[0].GrantedBy; offer.PolicyOf(by) != "renamed" {
		t.Errorf("granted by %s", by)
	}
}
