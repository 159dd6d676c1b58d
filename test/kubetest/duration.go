package kubetest

import "time"

// Slower returns the limit of a duration: d, or this many times as much with the race detector.
func Slower(d time.Duration, times int) time.Duration {
	if raceDetector {
		return d * time.Duration(times)
	}
	return d
}

// Fewer returns the size of a test: n, or one part in this many with the race detector.
func Fewer(n, parts int) int {
	if raceDetector {
		return n / parts
	}
	return n
}
