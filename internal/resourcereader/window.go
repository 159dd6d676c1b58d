package resourcereader

import (
	"google.golang.org/grpc/mem"
)

// inFlight are the notifications of a stream that gRPC has not handed to the connection yet. What is to be told beyond them
// waits in the subscription, where it takes little and is merged.
type inFlight chan struct{}

func newInFlight() inFlight { return make(inFlight, maxInFlight) }

// Get implements mem.BufferPool. Nobody asks it for a buffer.
func (f inFlight) Get(length int) *[]byte { return new(make([]byte, length)) }

// Put implements mem.BufferPool. gRPC gives back a buffer once it has written it, or the stream is over.
func (f inFlight) Put(*[]byte) { <-f }

// receipt is the content of all receipts: nothing, but with room for so much that gRPC gives it back. It leaves smaller ones to
// the garbage collector.
var receipt = func() *[]byte {
	size := 1
	for mem.IsBelowBufferPoolingThreshold(size) {
		size *= 2
	}
	return new(make([]byte, 0, size))
}()

// sent returns a notification that gives back its place once it is written. A place must have been taken.
func (f inFlight) sent(message []byte) *receipted {
	e := &receipted{message: message}
	// An empty buffer behind the message, since those of the message are shared by all streams.
	e.buffers[1] = mem.NewBuffer(receipt, f)
	return e
}
