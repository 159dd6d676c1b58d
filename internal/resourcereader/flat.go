package resourcereader

import (
	"context"

	"google.golang.org/grpc"
)

// The service of the flat form has a protobuf package, because a Go program can hold only one
// service called resource_reader. Liqo calls it without the package. This file removes the package
// where the service is registered and where its calls are counted.

// unpackaged registers a service under the name that Liqo calls.
type unpackaged struct{ grpc.ServiceRegistrar }

// RegisterService implements grpc.ServiceRegistrar.
func (u unpackaged) RegisterService(desc *grpc.ServiceDesc, impl any) {
	renamed := *desc
	renamed.ServiceName = serviceName
	u.ServiceRegistrar.RegisterService(&renamed, impl)
}

// underCalledName passes the method that the client called to an interceptor. Generated code passes
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
