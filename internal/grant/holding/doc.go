// Package holding decides what every ResourceSlice is to have, and what counts as granted until then. It
// is pure: the states of the slices, their records, the gates, the use of the nodes and the time are
// values. Package grant has the arithmetic below it, and package protocol the order of the writes that
// follow.
//
// # What is decided
//
// Decide takes all slices at once, in these steps:
//
//  1. Each slice is decided on in its class, or in the class of its last grant while nobody answers it in
//     the class that it has moved to (custody).
//  2. A slice that is gone or drained holds what its pods use; one that is gone holds everything for
//     ReleaseGrace. What pods use counts for the next slice of the same name, which bounds them
//     (release, bequeath).
//  3. Every other slice adds what it asks for and has, and what is on record for it in its class (askFor).
//     What it holds in classes that it has left is pinned beside that (pin, keepEarlier, giveUpEarlier). What
//     is about to be given up lowers nobody else.
//  4. grant.Allocate answers all of it, or grant.AllocateInGrace: for Grace.Nodes after the first decision of a
//     process, capacity that is missing from the start lowers no grant.
//  5. The record of each answer is to name the nodes that it is from: those of its policy, or its seat.
//
// The result is one Verdict for each slice:
//
//	                gate open                     gate shut, or moved where nobody answers
//	WriteAnswer <-------------- a slice of ours ---------------------------------> Reclaim
//	                               |        |  no answer fits into it
//	           another controller  |        +---------------------> Unwritable
//	           has accepted it     v
//	                           Overtaken            deleted, or its tenant is drained: Release
//
// With Leave, nothing is written: the slice waits for its gates and has nothing, or Grace leaves it alone
// because its policy is gone for a moment.
//
// Rehearse makes the same decision for other terms, as if every answer were written at once.
//
// # What is on record, what stands, what is vouched for
//
// A record can hold more than its slice was ever answered, and a slice can show more than it was granted:
// its consumer may write there. So a slice keeps the least of three: what is on record, what stands in it as
// accepted, and what the term vouches for (holdings). The rest of the record counts, and is not kept.
//
// # An example
//
// The slice s has 6 of 8 cpu of gold, of which its pods use 2, and moves to silver. Until silver is
// answered, all 6 count in gold. Then the record falls to 2, and another slice can get 6. If s returns to
// gold, it gets what is left: 2, whatever stands in its status
// (internal/controllers/slice, TestASliceThatReturnsIsGrantedNoMoreThanIsLeft).
//
// # What always holds
//
// The tests are in internal/controllers/slice, which keeps the states. They need no API server.
//
//   - No order of events lets pods use more of a pool than it has, counts less than they may use, or lowers
//     a grant without a reason; a replica that does not lead decides the same, and writes end
//     (TestNoOrderOfEventsGrantsTwiceWhatPodsMayUse, TestNoHistoryGrantsTwiceWhatPodsMayUse).
package holding
