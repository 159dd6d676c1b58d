//go:build race

package kubetest

// raceDetector reports whether the tests were built with the race detector.
const raceDetector = true
