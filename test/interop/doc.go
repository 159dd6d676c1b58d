// Package interop proves that the operator does its job for Liqo's own code: the client of Liqo v0.9.4, and the controller
// of Liqo v0.9.4 that turns what this client reads into ResourceOffers.
//
// It is a module of its own since that code needs Kubernetes libraries of its own time: with those of the operator it
// panics when it is loaded. So the operator and the control plane are programs that the tests start, and the tests see of
// them what a cluster would see: the API and the wire.
//
// PROFFER_BIN names the operator to test. Without it the tests build one, with the race detector, and fail when it speaks up.
package interop
