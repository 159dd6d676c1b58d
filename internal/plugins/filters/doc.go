// Package filters asks filters that are written in Go, on behalf of policies. They stand in a chain
// with the operator's own checks, see Chain.
//
// A filter is code of others. Each call runs in a goroutine of its own, and its panic is recovered: the object
// of the call is left out. Evaluations make one call of a filter at a time, and so do rehearsals, for which no
// evaluation waits. An evaluation waits for one call at most callBound, and for all calls of all filters as
// long as their budget lasts, less than a second. A call that hangs cannot be ended. While a call of an
// evaluation hangs, the filter is asked nothing; while one of a rehearsal hangs, only rehearsals do not ask it.
//
// An object without an answer is left out, or keeps the answer about its earlier state, and is asked about
// again a second later. A filter has to be pure: its answer about a state of an object is remembered.
package filters
