package catalog

import "time"

// The times of an Offer. A changed Offer is written once per interval, and an unchanged one after
// renewAfter.
const (
	interval   = 10 * time.Second
	renewAfter = 6 * time.Minute
	// RenewInterval is the longest time between two writes of an Offer. It is longer than renewAfter,
	// because an Offer waits for its turn under the total rate.
	RenewInterval = 10 * time.Minute
)

const (
	// planPeriod is the minimum time between two comparisons of what exists with what should. One
	// comparison works the catalog out at most once. All of them take at most one part in planPause of
	// the time.
	planPeriod = time.Second
	planPause  = 5
	// samplePeriod is the time between two looks at the providers that Offers show.
	samplePeriod = time.Minute
	// retryAfter is the wait after a failed write, which doubles with each further failure up to
	// retryAtMost. readyRetry is the wait for a missing CRD.
	retryAfter  = time.Second
	retryAtMost = 5 * time.Minute
	readyRetry  = 5 * time.Second
	// clockSkew is the furthest that the time in an Offer may be in the future. Beyond it, the Offer
	// was changed.
	clockSkew = time.Minute
	// DefaultQPS and MaxQPS bound the writes of all objects together in a second.
	DefaultQPS = 20
	MaxQPS     = 10_000
	// A worker makes at least writesPerWorker writes in a second, of 50 ms each. There are as many as
	// the rate needs, at most maxWorkers.
	writesPerWorker = 20
	maxWorkers      = 64
)
