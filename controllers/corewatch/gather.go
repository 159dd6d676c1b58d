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
	pauses *pauses
}

// pauses say how long events are gathered. Whoever is about to judge by what they say ends the present ones.
type pauses struct {
	length time.Duration
	mu     sync.Mutex
	ended  chan struct{}
}

func newPauses(length time.Duration) *pauses {
	return &pauses{length: length, ended: make(chan struct{})}
}

// end ends the pauses that there are.
func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = make(chan struct{})
}

// begun returns what is closed when a pause that begins now is ended.
func (p *pauses) begun() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// NewFrameReader implements runtime.Framer.
func (g gathering) NewFrameReader(from io.ReadCloser) io.ReadCloser {
	if g.pauses.length <= 0 {
		return g.Framer.NewFrameReader(from)
	}
	return &gatheringReader{ReadCloser: g.Framer.NewFrameReader(from), pauses: g.pauses, closed: make(chan struct{})}
}

// gatheringReader is used by one goroutine, but for Close.
type gatheringReader struct {
	io.ReadCloser
	pauses *pauses
	// until is when the present pause ends, unless ended is closed before.
	until  time.Time
	ended  <-chan struct{}
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
		case <-r.ended:
		case <-r.closed:
		}
		start = time.Now()
	}
	n, err := r.ReadCloser.Read(data)
	if now := time.Now(); now.Sub(start) >= awaited {
		r.until, r.ended = now.Add(r.pauses.length), r.pauses.begun()
	}
	return n, err
}

// Close implements io.Closer.
func (r *gatheringReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return r.ReadCloser.Close()
}
