// Package rehearse evaluates a change of the world before anybody makes it: what would be offered and
// granted once everything that follows from the change has happened. It is pure: the world is a value,
// and the time is counted forward, not awaited.
//
// A rehearsal runs the code that the operator runs, in the same order: evaluation.State.Step is one
// evaluation of both. It takes the policies as table.NewPolicyList lists them, and lets
// table.SliceDecisions.DryRun decide on the slices. It does so until nothing changes, and moves its clock
// to when the next level would change.
//
// # An example
//
// A policy offers all of a node of 10 cpu, with a threshold of 5 percent, and a local pod that requests
// 800m has started. The pool stays at its level of 10 for 30 s. A rehearsal of nothing yields 9200m all
// the same, because that follows without any change. Outcome therefore has three states: what is
// published, what follows without the change, and what follows with it. Package world lists what the
// change makes different (TestARehearsalGoesOnUntilNothingChanges).
//
// # What always holds
//
// TestWhatIsRehearsedIsWhatIsPublishedThen, in package world, draws policies, consumers, nodes, pods
// and histories. It rehearses a change, makes the same change to an engine and its ledger, and lets
// both rest: the engine publishes the outcome of the rehearsal.
//
// With ResourceSlices there is one difference. The operator answers them one after another and
// publishes the states between. Where a policy has a threshold, a published amount can therefore differ
// from the rehearsed one by no more than the threshold.
package rehearse
