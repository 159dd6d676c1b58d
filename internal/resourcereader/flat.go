package resourcereader

import (
	"context"

	"google.golang.org/grpc"
)

// The generated code of the flat form is in a protobuf package, because a Go program can hold only
// one service called resource_reader. Liqo calls it without the package. This file makes up for the
// difference.

// unpackaged registers a service under the name that Liqo calls.
type unpackaged struct{ grpc.ServiceRegistrar }

// RegisterService implements grpc.ServiceRegistrar.
func (u unpackaged) RegisterService(desc *grpc.ServiceDesc, impl any) {
	renamed := *desc
	renamed.ServiceName = serviceName
	u.ServiceRegistrar.RegisterService(&renamed, impl)
}

// underCalledName lets an interceptor see the method that the client called. Generated code reports
// the method's name with the package.
func underCalledName(intercept grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		called := *info
		if method, ok := grpc.Method(ctx); ok {
			called.FullMethod = method
		}
		return intercept(ctx, request, &called, handler)
	}
}
