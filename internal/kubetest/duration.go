package kubetest

import "time"

// Slower returns the limit of a duration: d, or this many times as much with the race detector.
func Slower(d time.Duration, times int) time.Duration {
	if raceDetector {
		return d * time.Duration(times)
	}
	return d
}
