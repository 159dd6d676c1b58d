// Package metasync keeps the books: it records in a relational database what consumers were offered,
// granted and used, of which pools and under which policies, and since when. It is a controller of
// controller-runtime with one request: each call of Reconcile makes a pass.
//
// # What is written
//
// Each table holds intervals: a row is a value at a key from valid_from to valid_to, and the row of a
// value that still holds has no valid_to. A unique index admits one such row for each key. Each pass
// compares the latest snapshot with the open rows, and in one transaction closes the rows that differ
// and opens the new ones. Nothing is queued and nothing is replayed, so a pass that failed, or of
// which nobody knows whether it was committed, is repaired by the next: it reads the open rows again.
//
// # What always holds
//
//   - After a pass, the open rows equal the snapshot, except for the changes that are held back (below).
//   - Rows of one key never overlap. Times come from the database server, and never go back: a
//     transaction is dated no earlier than the one before.
//   - Only the latest leader writes. Each Start raises the epoch of the cluster, and each transaction
//     locks the cluster's row and compares the epoch first.
//   - A time that was not recorded is a row of the table of gaps: since the last complete pass before
//     a start, or before the database was out of reach, until the next one. A value that is the same
//     on both sides of a gap keeps its row. One that differs ends where the gap begins, and the new
//     one begins where it ends.
//   - Outside of gaps, a change is dated at most two seconds after its publication.
//
// # What bounds it
//
// A row stays for Options.Sample at the least, also when its key is gone; until then a change is held
// back. Offers, pools and use change with every pod. Grants are written at once, and before everything
// else, up to maxGrantRows rows a minute for each consumer. A transaction writes at most maxBatch rows.
// Rows with texts that the columns do not take are left out. All of it is counted in metrics. An answer
// of the database has at most maxAnswer bytes.
//
// Nothing waits for the books: Wake enqueues the request, and a worker of the leader makes the pass.
package metasync
