// Package table is where the evaluation and its readers meet. It holds one published snapshot, and tells subscriptions which
// consumers' offers changed.
//
// # What a reader can rely on
//
// Whoever looks a consumer up and then sees its offer change in a later snapshot is told of the change by the subscriptions
// named below, and whoever looks up after having been told gets that change or a newer one. This holds without a lock between
// readers and the publisher. A reader first sets its mark and then loads the snapshot; the publisher first stores the
// snapshot and then asks for the marks. Whichever way the two interleave, either the publisher sees the mark, or the reader
// sees the new snapshot.
//
// # Known and unknown consumers
//
// A consumer in the snapshot is known: an object describes it, a policy names it, it has pods or grants, or it had any of
// these and is still owed an explicit zero. Callers cannot make a consumer known. Every other ID is unknown: it reads the
// default offer (offer.Result.Anyone), and nothing but the connection that read it keeps it. So what a caller writes into a
// request is listed nowhere and told to nobody else, and leaves the process only as a count.
//
//   - A known consumer that was read through any connection is told of by its name, to every subscription. The name is no
//     secret of the caller that read it, and behind a proxy the reads of one client may arrive on another connection than its
//     stream.
//   - An unknown ID is told of when the default offer changes, by the subscriptions of the connection that read it. Beyond
//     MaxUnknown of them the connection is told "" (all consumers) instead, and has to read again to be told again. No other
//     connection hears of it. It would have to be told the ID, which may be made up, or be made to read everything again as
//     often as a stranger likes.
//   - An ID that becomes known is told of by its name to every subscription, if any caller has read any unknown ID before, for
//     it may have been this one. Liqo answers a name that it does not know with a harmless RemoveCluster.
//   - A consumer that was read and ceases to be known is told of by its name once more, even where it reads the same as
//     before. Whoever still reads it then reads an unknown ID, on a connection of its own, and is told of that from then on.
//
// Forgetting concerns the subscriptions of the caller that forgets, and lasts until anybody reads the consumer again.
//
// # Bounds
//
// A mark lives as long as its consumer is in the snapshot. A subscription holds at most MaxWaiting names, and "" in their
// place when there are more. A Caller holds at most MaxUnknown IDs, and MaxForgotten consumers that it asked to forget.
package table
