package resourcereader

import (
	"context"

	"google.golang.org/grpc"
)

// The service of the flat form has a protobuf package, because a Go program can hold only one
// service called resource_reader. Liqo calls it without the package, which is removed where the service
// is registered (countingServer) and where its calls are counted.

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
