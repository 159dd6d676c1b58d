// Package table connects the evaluation and its readers. It holds one published snapshot, and notifies
// subscriptions of the consumers whose offers changed.
//
// # What a reader can rely on
//
// A reader that looks a consumer up is notified, by the subscriptions named below, when its offer
// changes in a later snapshot. A lookup after the notification returns that change or a newer one.
// This holds without a lock between readers and the publisher. A reader first sets its mark and
// then loads the snapshot; the publisher first stores the snapshot and then reads the marks.
// However the two interleave, either the publisher sees the mark, or the reader sees the new
// snapshot.
//
// # Known and unknown consumers
//
// A consumer with an entry in the snapshot is known to the table: an object describes it, a policy
// names it, it has pods or grants, or it had any of these and is still owed an explicit 0
// (offer.Departed). Callers cannot make a consumer known. Every other ID is unknown: it reads the
// default offer (offer.Offers.Default), and only the connection that read it remembers it. So what a
// caller writes into a request is neither listed nor reported to other callers, and leaves the process
// only as a count.
//
//   - A known consumer that was read through any connection is named to every subscription. The name
//     is no secret of the caller that read it, and behind a proxy the reads of one client may arrive
//     on another connection than its stream.
//   - An unknown ID is named when the default offer changes, to the subscriptions of the connection
//     that read it. Beyond MaxUnknown of them the connection receives "" (all consumers) instead, and
//     is notified again only after it reads again. No other connection is notified: it would learn an
//     ID that may be invented, or a stranger could make it read everything again at any time.
//   - An ID that becomes known is named to every subscription if any caller has read any unknown ID
//     before, because it may have been this one. Liqo answers an unknown name with a harmless
//     RemoveCluster.
//   - A consumer that was read and ceases to be known is named to every subscription once more, even
//     if it reads the same as before. A caller that goes on reading it then reads an unknown ID, on a
//     connection of its own, and is notified of that from then on.
//
// Forgetting affects the subscriptions of the caller that forgets, and lasts until any caller reads
// the consumer again.
//
// # Bounds
//
// A mark lives as long as its consumer is in the snapshot. A subscription holds at most MaxWaiting
// names, and "" in their place when there are more. A Caller holds at most MaxUnknown IDs, and
// MaxForgotten consumers that it asked to forget.
package table
