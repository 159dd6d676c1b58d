// Package table is where those who work out offers and those who read them meet. It holds one published snapshot, tells
// subscribers which consumers' offers changed, and remembers which consumers were read, since only these are worth a
// notification.
//
// What a reader can rely on: whoever looks a consumer up and then sees its offer change in a later snapshot is told of it by every
// subscription open at that time, and whoever looks up after having been told gets that change or a newer one. This holds
// without a lock between readers and the publisher. A reader first marks the consumer as read and then loads the snapshot; the
// publisher first stores the snapshot and then asks for the marks. Whichever way the two interleave, either the publisher
// sees the mark, or the reader sees the new snapshot.
//
// Nothing here grows without bound: marks live as long as their consumer is in the snapshot, consumers that are not in it are remembered
// up to Options.MaxStrangers, and a subscription holds each consumer at most once, however slow its reader is.
package table
