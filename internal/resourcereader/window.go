package resourcereader

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// sendWindow has an element for each notification of a stream that gRPC has accepted and not yet
// written to the connection. It holds at most maxUnwritten; further changes wait in the
// subscription, which is small and merges them.
//
// gRPC's own bound counts bytes: it accepts 64 KiB for a stream whose client does not read. That is
// 1,500 notifications, which take ten times as much memory as they have bytes.
//
// A sendWindow is the buffer pool of the empty buffer that codec appends to each notification: gRPC
// returns the buffer once it has written the notification, or once the stream has ended.
type sendWindow chan struct{}

// Get implements mem.BufferPool. gRPC does not call it.
func (w sendWindow) Get(length int) *[]byte { return new(make([]byte, length)) }

// Put implements mem.BufferPool.
func (w sendWindow) Put(*[]byte) { <-w }

// notification is a message of a stream, and the window that it occupies a place in.
type notification struct {
	*wire.ClusterIdentity
	window sendWindow
}

// codec is gRPC's codec for protobuf. It also frees the place of a notification in its window once
// gRPC has written the notification.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	n, ok := v.(*notification)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	message, err := c.CodecV2.Marshal(n.ClusterIdentity)
	if err != nil {
		return nil, err
	}
	return append(message, mem.NewBuffer(receipt, n.window)), nil
}

// receipt is the content of the empty buffers. It has a capacity because gRPC returns only large
// buffers to their pool.
var receipt = func() *[]byte {
	size := 1
	for mem.IsBelowBufferPoolingThreshold(size) {
		size *= 2
	}
	return new(make([]byte, 0, size))
}()
