// Package grant decides what each ResourceSlice is given. It is pure: the same slices under the same terms are given the same, in
// whatever order they come.
//
// First what is granted is kept, oldest slice first, and lowered only as the policy's reclaim says. Then requests are raised, oldest first,
// each within what the policy gives its consumer and what remains of the pool. The answers of one allocation can be written in any order,
// and any part of them can fail or be lost in a crash: what one slice gives up is given to another only by a later allocation, which has
// been told that the first was written. Until then the other has what is free, and its answer says what it waits for. A slice that cannot be
// written, or that is gone and whose pods still run, is pinned: what it has counts, and nobody waits for it. What the pods of a slice use counts too
// where it is left less: they run on.
package grant
