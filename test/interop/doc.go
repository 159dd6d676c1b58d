// Package interop tests the operator with code of Liqo v0.9.4: its client, and its controller that
// turns what the client reads into ResourceOffers.
//
// Interop is a separate module, because Liqo's code needs older Kubernetes libraries: with those of
// the operator it panics at start-up. The tests start the operator and the control plane as
// programs, and use only what a cluster has: the API and the wire.
//
// PROFFER_RACE_BIN names the operator to test. Without it the tests build one with the race detector,
// and fail if the detector reports a race.
package interop
