// Package reconcilers runs the reconcilers of plugins. A Runner feeds one plugin.Reconciler with the
// differences between published snapshots. The calls are made by a controller of controller-runtime, with
// its queue, its rate limits and its metrics: the namespace of a request is the kind of an object, and the
// name is its key.
//
// # What a reconciler can rely on
//
//   - The last state of every object is handed over in the end, however often calls fail. States in
//     between may be skipped. A deletion is retried until it succeeds.
//   - Each Start hands over every object again: another process may have led in between. After
//     that, a state equal to the last one handed over is not handed over again, unless the reconciler
//     asked for it, or a call since has failed.
//   - The deletion of an object is handed over if Reconcile was ever called for it by this process,
//     with or without success, or if Kept named it. An object that came and went without a call
//     needs none.
//   - Calls never overlap, those of Kept included, not even across a lost and regained Lease: a call
//     that ignores its context delays the next Start.
//   - A call fails after a minute, and when this process stops leading. A failed call of an object
//     is retried after 100 ms, and then after twice the time each, up to a minute. A new state of the
//     object does not wait for that.
//   - Kept is the first call of a Start. It needs a snapshot to compare with, so it waits for the
//     first one: until then everything would look deleted. While Kept fails, it is retried like any
//     other call, and the calls for objects go on in between.
//
// # What a reconciler cannot do
//
// A reconciler that blocks, panics or fails delays only its own calls. Publishing never waits for
// it: Wake leaves a mark, and the goroutine of the Runner compares the objects with the snapshot, once
// when it starts and then at most four times a second. Start returns within five seconds of the end of
// its context, even during a call that never returns.
//
// # Bounds
//
// The memory of a Runner grows with the objects in the snapshot, the deletions that the reconciler
// has not accepted yet, and the references that Kept returned, of which there can be MaxKept.
package reconcilers
