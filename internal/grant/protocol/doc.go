// Package protocol keeps what ResourceSlices have accepted within what is on record, whatever
// fails. For one slice it decides the next write, and what counts as granted meanwhile. It is pure:
// it knows no API client, clock or log. Of Kubernetes it uses one function, which compares resource
// versions. The caller performs the writes and reports their outcome.
//
// # The rules
//
// Two objects are written: the record (a Grant, which only the operator can write) and the answer
// (the status of the slice).
//
//  1. Record before answer: an answer is written only after a write of this leader's term has
//     confirmed a record that covers it, and names its granter (the policy with the nodes that it
//     selects) beside those that may still be answered.
//  2. Answer before release: a record is lowered, or names a granter no longer, only after an answer
//     that is no larger was confirmed in this term, sent after every other one. A confirmed write
//     gives the slice a new version, so a larger answer that is still queued somewhere fails with a
//     conflict.
//  3. Every write names the version that it replaces, and has a unique Term, so that no two writes
//     of a record are the same.
//  4. A write of unknown outcome counts as made until a newer version is known, or the same write
//     is confirmed.
//  5. A decision counts from the moment it is made (Plan), so that the next decision includes it.
//
// What counts as granted to a slice is the largest of its record, of the writes of the record under
// way, and of what is planned. No answer ever exceeds a confirmed record. So a leader that begins
// with a consistent list of the records knows everything that any leader before it may have
// granted, even by an answer that is still under way.
//
// A slice that moves to another class holds its earlier share until an answer in the new class is
// confirmed. Then its record is lowered to the part that pods use, which the caller determines
// (Want.Earlier), and only that counts. It does not rise again: if the slice returns to the class,
// the record has no more than counted all the time.
//
// # The states of an entry
//
//	unknown
//	   |  Begin, with what a consistent list has
//	   v             Plan
//	recorded ------------------> assumed
//	   ^  ^                         |  Next: WriteRecord
//	   |  |                         v
//	   |  |  RecordRefused,         |
//	   |  +------------------- in flight <------------------+
//	   |     RecordSeen:        |      |                    |
//	   |     another's write    |      |  no outcome        |  Next: WriteRecord,
//	   |                        |      v                    |  at the same version
//	   |          RecordWritten |   uncertain --------------+
//	   |                        |      |
//	   |                        v      v  RecordSeen: a write of this entry
//	   |                       confirmed
//	   |                            |  Next: WriteAnswer, then AnswerWritten
//	   |                            v
//	   +----------------------- answered
//	     the record is lowered or deleted, or the next decision is assumed
//
// End ends the term: what was known of the record remains, and Begin replaces it in the next term.
// A record that another client deletes makes the entry uncertain: it counts until it is written
// again.
//
// # An example
//
// A record has 4, the slice is to have 1, and its pods use 3. Next writes the record of 4 again,
// which confirms it in this term; then the answer of 1; then the record of 3. When the pods have
// ended, it writes the record of 1 (TestARecordIsNotLoweredBelowWhatPodsUse).
//
// # What always holds
//
//   - No order of events leads to more accepted than there is: with two or three leaders, moves
//     between classes, and writes that are late, lost, or made without a reported outcome
//     (TestNoOrderOfEventsHasMoreAcceptedThanThereIs).
//   - Each rule is needed for that (TestEachRuleIsNeeded).
package protocol
