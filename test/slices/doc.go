// Package slices shows, with the real Liqo v1.2.0 on both sides, what a consumer gets from a provider that runs the operator.
// See the package lab for what that takes.
//
// PROFFER_BIN names the operator to test; without it the tests build one, with the race detector, and fail when it speaks up.
// With PROFFER_LAB_KEEP set to anything, logs and kubeconfigs stay after the tests, and the directory is printed.
// PROFFER_TIMES is for the benchmark of test/bench, which names a file in it.
package slices
