// Package broker chooses, for a consumer, the providers that its pods are sent on to. It is pure:
// measurements, the wish of the consumer, the previous choice and the time go in, a choice comes out.
//
// # Which providers qualify
//
// Three layers are asked about each provider that the Orchestration selects, in this order. The first that
// rejects it is named in the result, with its reason; a later one can only narrow what is left.
//
//  1. An admin: it is disabled, for the consumer or for everybody. With DisabledByDefault, it is so until
//     it is enabled.
//  2. The Orchestration: it is the consumer itself; it has no usable virtual node; it does not fulfil a
//     requirement. What is not measured is not good. Remaining is required only of a provider that is not
//     chosen yet: what runs there leaves less of it.
//  3. The consumer, with ConsumersChoose: it is not among the providers of its wish; it does not fulfil a
//     requirement of the wish.
//
// The consumer's preferences replace the Orchestration's, and the smaller of both counts holds.
//
// # The score
//
// Each preference compares a provider with the best of those that qualify:
//
//	part  = 1000 x value / best     Uptime, Remaining, MeasuredHigher: more is better, best is the largest
//	part  = 1000 x best / value     Latency, Price, MeasuredLower:     less is better, best is the smallest
//	score = sum(weight x part) / sum(weight)
//
// All divisions round down. A value that is not measured has the part 0, and so has every other value
// if the best is 0 where less is better; a value that is the best has the part 1000. Without preferences
// every score is 1000. Providers are ranked by score, then by ID.
//
// Parts are ratios and not positions between the best and the worst, so that a gain of 20 % has a
// meaning: 50 ms and 51 ms score 1000 and 980, however many others there are.
//
// # The choice
//
// At most Count providers are chosen, all that qualify if it is 0:
//
//  1. A provider of the previous choice that still qualifies keeps its place.
//  2. Free places go to the best of the others. One that lost its place within Stay.For waits, unless
//     nobody else is left to choose.
//  3. A provider that has had its place for Stay.For is replaced by a better one, if the score of
//     that one is larger by Stay.GainPercent.
//
// Example: prefer Price of cpu with weight 3 and Latency with weight 1. Milan costs 0.02 at 40 ms,
// Oslo 0.03 at 10 ms. Milan scores (3 x 1000 + 1 x 250) / 4 = 812, Oslo (3 x 666 + 1 x 1000) / 4 = 749.
// With Count 1, Milan is chosen. When Milan raises its price to 0.04, it scores (3 x 750 + 250) / 4 =
// 625 and Oslo 1000: 60 % more, so Oslo replaces Milan, as soon as Milan has been there for Stay.For.
//
// # Invariants
//
//   - A provider that does not qualify is never chosen; the consumer itself never.
//   - A wish makes no provider qualify that would not without it.
//   - Each provider is either chosen or rejected with one reason.
//   - Within Stay.For of its choice, a provider that qualifies is not replaced.
//   - A provider that lost its place returns within Stay.For only if otherwise none would be chosen.
//   - The order of the inputs does not matter.
//
// # Uptime
//
// History is the time for which a provider was observed, and in which it was Ready. The time between
// two observations counts if it is short: while no operator runs, nothing is observed. See Observe.
package broker
