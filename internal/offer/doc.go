// Package offer computes the offers of each consumer: policies x capacity x consumers -> offers, and
// the explanation of each amount. Evaluate is a pure function: the package knows no API client, clock
// or log, and keeps nothing from one evaluation to the next. What was offered before is part of its
// input.
//
// # The formula
//
// All amounts are integers: cpu in milli, everything else in whole units. Percentages round down.
// For each resource, with a policy of nodes and a consumer K for which it decides:
//
//	counted      = the sum over the usable nodes of max(0, allocatable - local requests)   count: Free
//	               less what is left on nodes that take no more pods
//	counted      = the sum over the usable nodes of allocatable                            count: Allocatable
//	pool         = percent x max(0, counted - reserve)
//	committed(C) = max(granted(C), used(C))                              count: Allocatable: granted(C)
//	remaining    = max(0, pool - the sum of committed over all consumers)
//	offer(K)     = min(max, maxPercent x pool, committed(K) + remaining)
//
// What a peer gives is not offered back to it. With a policy of peers, and a consumer K that gives
// nodes of the pool, back is the difference that these make to the pool, and taken the requests
// of pods there, at most back (count: Allocatable: 0):
//
//	offer(K)     = min(max, maxPercent x pool, pool - back, committed(K) + max(0, remaining - back + taken))
//
// A policy of fixed amounts has no pool: offer(K) = min(max, fixed). Nor has one with an external
// source: offer(K) = min(max, what the source answers for K). Then reclaim raises what would fall below
// what the consumer keeps: its pods' requests up to the amount offered before, and with
// Retain its grants. A change within the policy's threshold is not published. While a policy is paused, what
// it offered to a consumer before stays as it is; a consumer that it had offered nothing keeps what its pods
// use and its slices were granted (Step.pause). A policy that is stopped has a ceiling of 0 for everything.
//
// In code, in the order of the computation: input.go has what an evaluation depends on, and what is kept from
// one evaluation for the next; match.go finds the policy that decides; pool.go computes the pool (newPool) and
// what remains (pool.commit), at the level that Stabilizer keeps; step.go has the arithmetic of one amount: the
// offer (Step.work) and what reclaim keeps (Step.hold); plan.go has what a policy offers before each consumer's
// own part; decide.go decides what is published to one consumer (policyPlan.publish); evaluate.go does this for
// all consumers. report.go and explain.go describe the result, and allocation_input.go has the same pools and
// offers for slices, before grants.
//
// # An example
//
// Two nodes of 8 cpu run one local pod of 2 cpu; a policy offers 50 percent. Counted is 14, the pool
// 7. Rome's pods use 3 cpu and Oslo's use 1, so 4 are committed and 3 remain. Rome is offered
// 3 + 3 = 6, Oslo 1 + 3 = 4, any other consumer 3 (TestTheWorkedExample).
//
// # What always holds
//
// TestWhatIsAlwaysTrueOfOffers draws policies, nodes, pods, grants and changes of all of them, and
// checks after each evaluation:
//
//   - Neither a pool nor what is committed or remains of it is negative, and what remains is the pool
//     less what is committed (checkPools).
//   - No offer is negative (checkEntry), and none exceeds its ceiling, or what others give, unless reclaim
//     holds it there (checkExplained).
//   - Each amount is explained by the latest evaluation, and differs from it by no more than the
//     threshold (checkExplained).
//   - What was offered once is never dropped without an explicit 0, and never taken from under pods
//     except by Evict (checkChanges, checkDefault), also across a restart with incomplete records
//     (checkSilence).
//   - What a consumer has of a policy that is paused neither rises nor falls, also across a restart
//     (checkPaused).
//   - The order of the input does not matter (checkOrder), and consumers that hold nothing do not
//     affect the offers of others (checkAlone).
//
// TestAnEntryThatDidNotChangeKeepsItsIdentity holds what a cheap comparison of two results relies on.
package offer
