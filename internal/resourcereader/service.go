package resourcereader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
)

var serviceName = wire.ResourceReader_ServiceDesc.ServiceName

// service answers the calls of one form.
type service struct {
	table   *table.Table
	form    Form
	maxWait time.Duration
	// life ends when the server shuts down.
	life context.Context
	// notice is the notification that was sent last: when an offer changes, all streams send the same one.
	notice atomic.Pointer[notice]
}

// serviceDesc is made by hand, since the generated ones insist on messages: here an answer is sent as the bytes it was encoded to
// when it was first asked for.
var serviceDesc = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("ReadResources", (*service).readResources),
		unary("RemoveCluster", (*service).removeCluster),
	},
	Streams: []grpc.StreamDesc{{
		StreamName:    "Subscribe",
		ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			r := &request{message: new(wire.Empty)}
			if err := stream.RecvMsg(r); err != nil {
				return err
			}
			if err := r.check(); err != nil {
				return err
			}
			return srv.(*service).subscribe(stream)
		},
	}},
	Metadata: wire.ResourceReader_ServiceDesc.Metadata,
}

// call is one unary call, from the request to the answer: one object, whatever the call holds.
type call struct {
	request
	identity wire.ClusterIdentity
	answer   encoded
	info     grpc.UnaryServerInfo
}

func unary(name string, handle func(*service, context.Context, *call) (any, error)) grpc.MethodDesc {
	path := "/" + serviceName + "/" + name
	answer := func(ctx context.Context, in any) (any, error) {
		c := in.(*call)
		if err := c.check(); err != nil {
			return nil, err
		}
		return handle(c.info.Server.(*service), ctx, c)
	}
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			c := &call{info: grpc.UnaryServerInfo{Server: srv, FullMethod: path}}
			c.message = &c.identity
			if err := decode(&c.request); err != nil {
				return nil, err
			}
			if intercept == nil {
				return answer(ctx, c)
			}
			return intercept(ctx, c, &c.info, answer)
		},
	}
}

// readResources returns what the consumer is offered.
func (s *service) readResources(ctx context.Context, c *call) (any, error) {
	id := c.identity.GetClusterID()
	if err := checkID(id); err != nil {
		return nil, err
	}
	select {
	case <-s.table.Ready():
	default:
		var cancel context.CancelFunc
		ctx, cancel = s.patience(ctx)
		defer cancel()
	}
	entry, err := s.callerOf(ctx).Lookup(ctx, id)
	if err != nil {
		return nil, ended(err)
	}
	if s.form == Pools {
		c.answer.message = entry.Encoded(int(Pools), encodePools)
		return &c.answer, nil
	}
	if _, fit := pickFlat(entry.Offers); !fit {
		return nil, status.Errorf(codes.FailedPrecondition,
			"consumer %s is offered several classes and none of them is unnamed, and the flat form can say only one: leave the class out of one policy, or serve the form pools",
			id)
	}
	c.answer.message = entry.Encoded(int(Flat), encodeFlat)
	return &c.answer, nil
}

// patience bounds how long a read waits for the first offers. It ends a little before the caller's deadline, so that the caller is told what
// is wrong instead of finding that time has passed.
func (s *service) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := s.maxWait
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(left/10, 100*time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	ctx, done := mortal(ctx, s.life)
	return ctx, func() { done(); cancel() }
}

// callerOf returns the caller that a call comes from. One without a connection does not come over gRPC.
func (s *service) callerOf(ctx context.Context) *table.Caller {
	if c := connectionOf(ctx); c != nil {
		return c.caller
	}
	return s.table.Own()
}

// removeCluster takes the hint that the consumer is gone, for the streams of the same connection.
func (s *service) removeCluster(ctx context.Context, c *call) (any, error) {
	s.callerOf(ctx).Forget(c.identity.GetClusterID())
	return &wire.Empty{}, nil
}

// checkID refuses what cannot be the ID of a cluster: a UUID up to Liqo v0.10, a DNS-1123 label from v1.0. It is no stricter than it has to be,
// since what is refused here leaves a consumer without an offer.
func checkID(id string) error {
	switch {
	case id == "":
		return status.Error(codes.InvalidArgument, "clusterID is empty: name the consumer whose resources to read")
	case len(id) > maxIDLength:
		return status.Errorf(codes.InvalidArgument, "clusterID is %d bytes long: at most %d can be the ID of a cluster", len(id), maxIDLength)
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return status.Errorf(codes.InvalidArgument, "clusterID holds the control character %U, which no ID of a cluster does", r)
		}
	}
	return nil
}

// ended is the status of a call that ended without an answer because of err.
func ended(err error) error {
	switch {
	case errors.Is(err, errShutdown), errors.Is(err, table.ErrClosed):
		return status.Error(codes.Unavailable, errShutdown.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, table.ErrNotReady):
		return status.Error(codes.Unavailable, err.Error())
	}
	return status.FromContextError(err).Err()
}
