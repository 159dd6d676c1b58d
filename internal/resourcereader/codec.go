package resourcereader

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// encoded is a response that is encoded already. It is sent once; many may hold the same bytes at the same time.
type encoded struct {
	message mem.SliceBuffer
	// buffers is what gRPC wants, kept here so that it is no object of its own.
	buffers [1]mem.Buffer
}

// receipted is a response that is encoded already, with a buffer behind it that gRPC gives back once it is written.
type receipted struct {
	message mem.SliceBuffer
	buffers [2]mem.Buffer
}

// request is a message that a client sent, or the error of decoding it. Were the error returned to gRPC, it would end the call with
// Internal, as if it were the server's fault.
type request struct {
	message proto.Message
	err     error
}

// check returns the error of decoding as the caller's fault.
func (r *request) check() error {
	if r.err == nil {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "the request is not a %s message: %v", r.message.ProtoReflect().Descriptor().Name(), r.err)
}

// codec is gRPC's own for protobuf, which also lets through what is encoded already, and keeps the error of a request.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Marshal implements encoding.CodecV2. A SliceBuffer is not given back to any pool once it is sent.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch e := v.(type) {
	case *encoded:
		e.buffers[0] = &e.message
		return e.buffers[:], nil
	case *receipted:
		e.buffers[0] = &e.message
		return e.buffers[:], nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*request); ok {
		r.err = c.CodecV2.Unmarshal(data, r.message)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
