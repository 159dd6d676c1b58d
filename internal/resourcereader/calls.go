package resourcereader

import (
	"context"
	"slices"

	"google.golang.org/grpc"
)

// registrar is a server that counts the calls of all services under way, from before their request has come.
type registrar struct{ *grpc.Server }

// RegisterService implements grpc.ServiceRegistrar.
func (s registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	with := *desc
	with.Methods = slices.Clone(desc.Methods)
	for i := range with.Methods {
		handle := with.Methods[i].Handler
		with.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			c := connectionOf(ctx)
			c.begin()
			defer c.end()
			return handle(srv, ctx, decode, intercept)
		}
	}
	with.Streams = slices.Clone(desc.Streams)
	for i := range with.Streams {
		handle := with.Streams[i].Handler
		with.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			c := connectionOf(stream.Context())
			c.begin()
			defer c.end()
			return handle(srv, stream)
		}
	}
	s.Server.RegisterService(&with, impl)
}
