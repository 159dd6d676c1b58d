package corewatch

import (
	"context"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEventsThatComeAllTheTimeArriveTogether(t *testing.T) {
	const pause = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []int
		wants := func(when string, want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				t.Errorf("%s: a reader is woken for %v bytes, want %v", when, told, want)
			}
			told = nil
		}
		over := func(length time.Duration) {
			t.Helper()
			wants("an event, and what arrived with it", gathered)
			<-time.After(length - time.Nanosecond)
			wants("until the pause ends")
			<-time.After(time.Nanosecond)
			wants("at its end", 1)
		}
		g := &gathering{pause: pause}
		g.event(true)
		g.end()
		wants("without a connection")
		g.follow(func(bytes int) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, bytes)
		})
		wants("before the first event")
		if g.end() {
			t.Error("something is unread before there was a pause")
		}

		g.event(true)
		g.event(true)
		over(pause)
		if !g.end() {
			t.Error("nothing is unread, just after the pause")
		}
		// Those that do not matter take longer and longer, until one does.
		for i, length := range []time.Duration{pause, 2 * pause, 4 * pause, longest, longest} {
			g.event(i == 0)
			g.event(false)
			over(length)
		}
		g.event(false)
		g.event(true)
		over(longest)
		g.event(false)
		over(pause)
		// After a quiet time nothing is known of how busy it is.
		g.event(false)
		over(2 * pause)
		<-time.After(pause + time.Nanosecond)
		wants("in a quiet time")
		if g.end() {
			t.Error("something is unread after a quiet time")
		}
		g.event(false)
		over(pause)

		<-time.After(time.Minute)
		g.event(true)
		<-time.After(pause / 2)
		for range 2 {
			if !g.end() {
				t.Error("nothing is unread, in a pause or after it")
			}
		}
		wants("somebody in a hurry", gathered, 1)
		<-time.After(pause / 4)
		g.event(true)
		over(pause)

		g.event(true)
		g.follow(func(int) {})
		wants("another connection frees the one before", gathered, 1)
		g.event(true)
		<-time.After(pause)
		wants("and is the one that pauses from then on")
	})
}

func TestWithoutAPauseNoConnectionIsTouched(t *testing.T) {
	if httptrace.ContextClientTrace((&gathering{}).over(context.Background())) != nil {
		t.Error("the connection is asked for")
	}
}
