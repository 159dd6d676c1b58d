package resourcereader

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"proffer.dev/proffer/proto/resourcereader/flat"
)

// countingServer registers services. It counts each call on its connection from the moment the
// headers of the call arrive. The interceptors of a unary call run only after its request arrived.
type countingServer struct{ *grpc.Server }

// RegisterService implements grpc.ServiceRegistrar.
func (s countingServer) RegisterService(desc *grpc.ServiceDesc, impl any) {
	counting := *desc
	if desc == &flat.ResourceReader_ServiceDesc {
		counting.ServiceName = serviceName // See flat.go.
	}
	counting.Methods = slices.Clone(desc.Methods)
	for i, method := range desc.Methods {
		counting.Methods[i].Handler = func(
			srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor,
		) (any, error) {
			c := connectionOf(ctx)
			c.beginCall()
			defer c.endCall()
			return method.Handler(srv, ctx, decode, intercept)
		}
	}
	counting.Streams = slices.Clone(desc.Streams)
	for i, method := range desc.Streams {
		counting.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			c := connectionOf(stream.Context())
			c.beginCall()
			defer c.endCall()
			return method.Handler(srv, stream)
		}
	}
	s.Server.RegisterService(&counting, impl)
}
