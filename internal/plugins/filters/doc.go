// Package filters asks filters that are written in Go, on behalf of policies. They stand in a chain
// with the operator's own checks, see Chain.
//
// A filter is code of others. Whatever it does, an evaluation does not wait for it longer than
// patience for a call, and maxWait in each waitPeriod for all calls of a filter. What is not answered
// in time is left out, or stays as it was for an earlier state of the same object, until the answer
// arrives: then the object is evaluated again. A filter that panics leaves out what it was asked
// about.
//
// A filter has to be pure. Each question is asked twice: an object is left out if the answers differ.
// One question a second is asked again later: an answer that has changed is reported and replaces the
// old one.
package filters
