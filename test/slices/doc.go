// Package slices tests, with the real Liqo v1.2.0 on both sides, what a consumer gets from a
// provider that runs the operator. The package lab runs the clusters, and
// the package broker has the tests over two hops, with pods.
//
// PROFFER_RACE_BIN, or else PROFFER_BIN, names the operator to test. Without them the tests build one
// with the race detector, and fail if the detector reports a race. If PROFFER_LAB_KEEP is set, the
// tests keep logs and kubeconfigs and print their directory.
package slices
