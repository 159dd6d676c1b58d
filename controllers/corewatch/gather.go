package corewatch

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// gathered is how many bytes may arrive in a pause before it ends by itself: many events, and far less than an API server keeps for a watch
// that is slow.
const gathered = 1 << 20

// gathering has the events of a watch that is busy arrive together. Where they come all the time, one by one, most of what each costs is to be
// woken for it. So the event that somebody was woken for is followed by a pause, in which the kernel keeps what comes: the connection counts as
// one with nothing to read. Nothing waits that comes after a quiet time.
type gathering struct {
	// pause is how long it takes, at most longest, 0 for none. While events come all the time and none matters, each takes twice as long as the one
	// before, up to longest.
	pause time.Duration

	mu sync.Mutex
	// wakeAt tells the connection of the watch how many bytes have to be there for its reader to be woken. It is nil before there is one.
	wakeAt  func(bytes int)
	pausing bool
	// length is that of the last pause, ended when it was over, and mattered whether an event has mattered since it began.
	length   time.Duration
	ended    time.Time
	mattered bool
	timer    *time.Timer
}

// longest is the longest pause there is: what a longer one would save is next to nothing.
const longest = 500 * time.Millisecond

// over returns the context for a request whose answer is a watch; its connection is the one that pauses from then on.
func (g *gathering) over(ctx context.Context) context.Context {
	if g.pause <= 0 {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		g.follow(func(bytes int) { wakeAt(got.Conn, bytes) })
	}})
}

func (g *gathering) follow(wakeAt func(bytes int)) {
	g.end()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wakeAt = wakeAt
}

// event begins a pause, unless there is one. What has arrived before can be read all the same.
func (g *gathering) event(matters bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mattered = g.mattered || matters
	if g.pausing || g.wakeAt == nil {
		return
	}
	if g.mattered || time.Since(g.ended) > g.pause {
		g.length = g.pause
	} else {
		g.length = min(2*g.length, longest)
	}
	g.pausing, g.mattered = true, false
	g.wakeAt(gathered)
	if g.timer == nil {
		g.timer = time.AfterFunc(g.length, func() { g.end() })
	} else {
		g.timer.Reset(g.length)
	}
}

// end ends the pause, if there is one, and reports whether what came in one may not have been read yet. A timer that was late may end the next one,
// which is then shorter.
func (g *gathering) end() (unread bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.pausing {
		return time.Since(g.ended) < g.pause
	}
	g.pausing, g.ended = false, time.Now()
	g.timer.Stop()
	g.wakeAt(1)
	return true
}
