// Package protocol keeps what ResourceSlices have accepted within what is on record, whatever fails. For one slice it decides the next write,
// and what counts as granted meanwhile. It is pure: it knows no client, clock or log; whoever runs it performs the writes and reports what
// came of them.
//
// Two objects are written: the record (a Grant, which only the operator can write) and the answer (the status of the slice). The rules:
//
//  1. Record before answer: an answer is written only when a record that covers it was confirmed in this leader's term.
//  2. Answer before release: a record is lowered only when an answer that is no larger was confirmed in this term, after every larger one was
//     sent. A confirmed write gives the slice a new version, so a larger answer that is still queued somewhere is a conflict when it lands.
//  3. Every write names the version that it replaces, and has something of its own (Term), so that no two writes of a record are the same.
//  4. A write of unknown outcome counts as made until a newer version is known, or the same write was confirmed.
//  5. What is decided counts from the moment it is decided (Plan), so that the next decision knows of it.
//
// What counts as granted to a slice is the largest of its record, of the writes of the record under way, and of what is planned. Since an
// answer never exceeds a confirmed record, a leader that starts with a consistent list of the records knows all that any leader before it may
// have granted: also by an answer that is still on its way.
//
// A slice that moves to another class holds its earlier share until an answer in the new class is confirmed. After that the earlier share
// counts as far as pods use it, which is for the caller to say (Want.Earlier).
package protocol
