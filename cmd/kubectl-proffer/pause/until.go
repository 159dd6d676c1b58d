package pause

import (
	"fmt"
	"time"
)

// parseUntil reads the end of a pause: the next time of day in the local time zone, a duration from now on,
// or a time.
func parseUntil(text string, now time.Time) (time.Time, error) {
	var end time.Time
	if clock, err := time.Parse("15:04", text); err == nil {
		end = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if !end.After(now) {
			end = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
	} else if duration, err := time.ParseDuration(text); err == nil {
		end = now.Add(duration).Truncate(time.Second)
	} else if end, err = time.Parse(time.RFC3339, text); err != nil {
		return end, fmt.Errorf("--until=%s: "+
			"write a time of day such as 06:00, a duration such as 2h, or 2026-12-01T06:00:00Z", text)
	}
	if !end.After(now) {
		return end, fmt.Errorf("--until=%s: that is over: write a time to come", text)
	}
	return end, nil
}
