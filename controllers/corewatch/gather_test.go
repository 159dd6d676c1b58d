package corewatch

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// frames are events that come one by one. It is its own framer.
type frames struct {
	runtime.Framer
	events chan byte
	closed chan struct{}
}

var errClosed = errors.New("closed")

func (f frames) NewFrameReader(io.ReadCloser) io.ReadCloser { return f }

func (f frames) Read(data []byte) (int, error) {
	select {
	case data[0] = <-f.events:
		return 1, nil
	case <-f.closed:
		return 0, errClosed
	}
}

func (f frames) Close() error {
	close(f.closed)
	return nil
}

func TestEventsThatComeAllTheTimeAreReadTogether(t *testing.T) {
	const pause = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		f := frames{events: make(chan byte, 100), closed: make(chan struct{})}
		pauses := newPauses(pause)
		events := gathering{f, pauses}.NewFrameReader(nil)
		start := time.Now()
		read := func(want byte, after time.Duration) {
			t.Helper()
			var data [1]byte
			if _, err := events.Read(data[:]); err != nil || data[0] != want {
				t.Fatalf("read %d, %v, want %d", data[0], err, want)
			}
			if got := time.Since(start); got != after {
				t.Errorf("event %d is read after %v, want %v", want, got, after)
			}
		}
		send := func(event byte, after time.Duration) {
			time.AfterFunc(after, func() { f.events <- event })
		}
		for _, event := range []byte{1, 2, 3} {
			f.events <- event
		}
		// What is there already is read without a pause.
		read(1, 0)
		read(2, 0)
		read(3, 0)
		// The first that comes is read at once, those after it a pause later.
		send(4, 10*time.Millisecond)
		send(5, 15*time.Millisecond)
		send(6, 40*time.Millisecond)
		send(7, 75*time.Millisecond)
		read(4, 10*time.Millisecond)
		read(5, 60*time.Millisecond)
		read(6, 60*time.Millisecond)
		read(7, 75*time.Millisecond)
		// Whoever is in a hurry ends the pause.
		send(8, 10*time.Millisecond)
		time.AfterFunc(20*time.Millisecond, pauses.end)
		read(8, 95*time.Millisecond)
		// After a quiet time nothing waits.
		send(9, time.Minute)
		read(9, time.Minute+95*time.Millisecond)
		// To close it ends a pause.
		time.AfterFunc(time.Millisecond, func() { _ = events.Close() })
		if _, err := events.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
			t.Errorf("read after it was closed: %v", err)
		}
		if got := time.Since(start); got != time.Minute+96*time.Millisecond {
			t.Errorf("the pause ended after %v", got)
		}
	})
}

func TestWithoutAPauseEventsAreReadAsTheyCome(t *testing.T) {
	f := frames{}
	if _, gathers := (gathering{f, newPauses(0)}).NewFrameReader(nil).(*gatheringReader); gathers {
		t.Error("events are gathered for no time")
	}
}
