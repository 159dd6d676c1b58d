package corewatch

import (
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// awaited is how long the reading of an event takes at least if it had to be waited for. One that has arrived takes some microseconds.
const awaited = 200 * time.Microsecond

// gathering frames the events of a watch so that one which had to be waited for is followed by a pause. Where events come all the time, one by one,
// most of what each costs is to be woken for it; those of a pause are read together. Nothing waits that comes after a quiet time.
type gathering struct {
	runtime.Framer
	pause time.Duration
}

// NewFrameReader implements runtime.Framer.
func (g gathering) NewFrameReader(from io.ReadCloser) io.ReadCloser {
	if g.pause <= 0 {
		return g.Framer.NewFrameReader(from)
	}
	return &gatheringReader{ReadCloser: g.Framer.NewFrameReader(from), pause: g.pause, closed: make(chan struct{})}
}

// gatheringReader is used by one goroutine, but for Close.
type gatheringReader struct {
	io.ReadCloser
	pause time.Duration
	// until is when the present pause ends.
	until  time.Time
	once   sync.Once
	closed chan struct{}
}

// Read implements io.Reader.
func (r *gatheringReader) Read(data []byte) (int, error) {
	start := time.Now()
	if left := r.until.Sub(start); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.closed:
		}
		start = time.Now()
	}
	n, err := r.ReadCloser.Read(data)
	if now := time.Now(); now.Sub(start) >= awaited {
		r.until = now.Add(r.pause)
	}
	return n, err
}

// Close implements io.Closer.
func (r *gatheringReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return r.ReadCloser.Close()
}
