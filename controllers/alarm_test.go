package controllers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnAlarmRingsAtTheEarliestTimeAndCanBeSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, rings := time.Now(), make(chan time.Duration, 10)
		a := newAlarm(func() { rings <- time.Since(start) })
		for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			a.in(d)
		}
		time.Sleep(5 * time.Second)
		a.in(time.Second)
		a.in(time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		close(rings)
		var rung []time.Duration
		for at := range rings {
			rung = append(rung, at)
		}
		if diff := cmp.Diff([]time.Duration{time.Second, 6 * time.Second}, rung); diff != "" {
			t.Error(diff)
		}
	})
}
