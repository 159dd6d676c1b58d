// Package grant decides what each ResourceSlice is granted: slices x policies x capacity ->
// answers. Allocate is a pure function: the package knows no API client, clock or log. The order of
// the input does not matter.
//
// # The formula
//
// Amounts are as in package offer. For each resource of a pool and a consumer K:
//
//	committed(C) = max(granted(C), used(C))             count: Allocatable: granted(C)
//	remaining    = pool - the sum of committed over all consumers
//	headroom(K)  = max(0, remaining) + max(0, used(K) - granted(K))
//
// What K's pods use beyond its grants is already committed, so K can be granted that much more.
// Pools that share nodes are charged with each other's grants, and every union of pools is a limit
// of its own (union).
//
// Allocate grants in this order, each step oldest slice first:
//
//  1. A pinned slice keeps its grant, apart from what is about to fall: its answer cannot be written now
//     (keepPinned).
//  2. Every slice keeps what reclaim does not take back, whatever there is, apart from the next step
//     (keepFloor). What its own pods use keeps no other slice of its consumer what that has (claimOwnUse).
//  3. What the pods of a slice use counts even if the slice is granted less (count). Every slice keeps
//     what it had, within the headroom, and what reclaim does not take back because of pods on nodes that
//     are not Ready: for these, no older slice is lowered (keepGranted). In the grace after a start, a pool
//     is exceeded by what it has lacked since then, and nobody is granted that (AllocateInGrace).
//  4. What is about to fall, and what is on record beyond a grant, counts only after that, so nobody is
//     lowered for it (countFalling, count), nor for what pods of consumers that are evicted use.
//  5. Requests are raised, within the consumer's limit and the headroom of the pool (raise).
//  6. A raise waits for the part of it that other slices have not given up yet (deferRaises).
//
// While a policy is paused, step 2 keeps everything that its slices have, and step 5 raises none of them.
//
// A slice whose request a filter of its policy does not admit keeps what step 2 leaves it, after the other
// slices, and nothing else.
//
// The answers of one allocation can be written in any order, and any of them can fail or be lost in
// a crash. So what one slice gives up is granted to another only by a later allocation, after the
// first answer is known to be written. Until then the other slice gets what is free, and its answer
// says that it waits.
//
// # Seats
//
// A policy with Slices.FitNode grants each slice from one node, its seat. For each resource of a node n:
//
//	free(n) = allocatable(n) - local(n) - the sum over seats on n of max(granted, used)
//	          - what pods without a seat on n use
//
// The pool counts as above, and free(n) limits a grant as well. In step 5, a slice without a seat gets one: of the
// nodes where everything fits the one that is left fullest, by the largest share of a resource that is left, then by
// the sum of the shares, then by name; if there is none, the one that gives most of the request. A seat is kept
// while the node is in the pool. On a cordoned node the slice keeps what it has and is not raised. A node that is gone
// or not usable leaves the slice what step 2 does, until another node has room for it. Both count in no pool: it does
// not have the node any longer. Nothing is granted from a node that other slices have yet to give up.
//
// Two nodes have 8 cpu each, and three slices ask for 5. They are granted 5 from the first node, 5 from the second, and
// 3 from the first (TestASliceIsGrantedFromOneNode).
//
// # An example
//
// A pool has 8 cpu. The oldest slice asks for 5, a younger one for 2, the youngest for 4. They are
// granted 5, 2 and 1 (TestRequestsAreRaisedOldestFirst). If the oldest has 8 and now asks for 2, a
// younger one that asks for 4 gets nothing at first, and 4 once the 2 are written
// (TestWhatIsTakenBackIsGivenToOthersOnlyWhenThatIsWritten).
//
// # What always holds
//
// TestWhatIsAlwaysTrueOfGrants draws nodes, pods, policies and slices, loses some of the answers,
// and checks after each allocation:
//
//   - The order of slices and policies does not matter (checkOrder).
//   - No slice is granted more than it asks for, or has a default for, or its pods use of a default
//     that fell. An answer without cpu, memory or pods is not ReasonGranted. Nothing is raised under
//     a cordon, by a policy that is paused, for an invalid request or against a filter, Retain and a pause lower
//     nothing, and cpu and memory stay above 0 while pods run, except under Evict (checkAnswer).
//   - The slices of a consumer in a class are not raised beyond its limit, nor lowered below what
//     its pods use, except under Evict (checkGroups).
//   - Whatever part of the answers is written, no pool and no union of pools is exceeded by a raise
//     (checkPools).
//   - A slice that asks for more takes nothing from others (checkRaiseTakesNothing), nor do defaults
//     that a policy gets (TestNewDefaultsTakeNothingFromAnybody).
//
// TestNoHistoryExceedsTheNodes moves slices between classes of known nodes, and checks that no set
// of nodes has to bear more than it has, or more than before (estate.check).
// TestNoHistoryExceedsANode does the same with seats: whatever part of the answers is written, no raise exceeds a node,
// no seat moves while its node is usable, and a slice without a seat keeps no more than reclaim leaves it.
// TestNoHistoryInTheGraceTakesAGrant checks the same in the grace after a start, and that no grant falls below its
// request.
package grant
