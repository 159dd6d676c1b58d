package resourcereader

import (
	"context"
	"errors"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// serviceName is the name under which both forms are served.
var serviceName = wire.ResourceReader_ServiceDesc.ServiceName

// service implements what both forms have in common. Its Subscribe is in stream.go.
type service struct {
	table   *table.Table
	maxWait time.Duration
	// life ends when the server shuts down.
	life context.Context
}

// poolsService implements the form of Liqo v0.9 and v0.10.
type poolsService struct {
	*service
	answers *answers[*wire.PoolResourceList]
}

// ReadResources implements wire.ResourceReaderServer.
func (s *poolsService) ReadResources(
	ctx context.Context, consumer *wire.ClusterIdentity,
) (*wire.PoolResourceList, error) {
	entry, err := s.read(ctx, consumer.GetClusterID())
	if err != nil {
		return nil, err
	}
	return s.answers.answerFor(entry)
}

// flatService implements the form of Liqo v0.6 to v0.8.
type flatService struct {
	*service
	answers *answers[*flat.ResourceList]
}

// ReadResources implements flat.ResourceReaderServer.
func (s *flatService) ReadResources(ctx context.Context, consumer *wire.ClusterIdentity) (*flat.ResourceList, error) {
	id := consumer.GetClusterID()
	entry, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, ok := flatOffer(entry.Offers); !ok {
		return nil, status.Errorf(codes.FailedPrecondition,
			"consumer %s is offered several classes and none of them is unnamed, but the flat form has room for one: "+
				"leave the class out of one policy, or serve the form pools", id)
	}
	return s.answers.answerFor(entry)
}

// read returns the entry of the consumer. Before the first offers are published, it waits for them.
func (s *service) read(ctx context.Context, id string) (*offer.Entry, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	select {
	case <-s.table.Ready():
	default:
		var cancel context.CancelFunc
		ctx, cancel = s.boundWait(ctx)
		defer cancel()
	}
	entry, err := s.caller(ctx).Lookup(ctx, id)
	if err != nil {
		return nil, statusError(err)
	}
	return entry, nil
}

// boundWait returns a context that bounds how long a read waits for the first offers. It ends
// shortly before the caller's deadline, so that the caller receives the reason instead of
// DeadlineExceeded.
func (s *service) boundWait(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := s.maxWait
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(left/10, 100*time.Millisecond))
	}
	ctx, cancelTimeout := context.WithTimeout(ctx, wait)
	ctx, cancel := untilShutdown(ctx, s.life)
	return ctx, func() { cancel(); cancelTimeout() }
}

// caller returns the table's record of the connection that the call came over. A call that did not
// come over gRPC belongs to the table's own caller.
func (s *service) caller(ctx context.Context) *table.Caller {
	if c := connectionOf(ctx); c != nil {
		return c.caller
	}
	return s.table.Own()
}

// RemoveCluster takes the hint that the consumer is gone: the streams of the same connection are
// not notified of it until it is read again.
func (s *service) RemoveCluster(ctx context.Context, consumer *wire.ClusterIdentity) (*wire.Empty, error) {
	s.caller(ctx).Forget(consumer.GetClusterID())
	return &wire.Empty{}, nil
}

// checkID refuses a text that cannot be a cluster ID, which is a UUID up to Liqo v0.10 and a
// DNS-1123 label from v1.0 on. It is no stricter than necessary: a consumer whose ID is refused has
// no offer.
func checkID(id string) error {
	switch {
	case id == "":
		return status.Error(codes.InvalidArgument, "clusterID is empty: name the consumer whose resources to read")
	case len(id) > maxIDLength:
		return status.Errorf(codes.InvalidArgument,
			"clusterID is %d bytes long: a cluster ID has at most %d", len(id), maxIDLength)
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return status.Errorf(codes.InvalidArgument,
				"clusterID contains the control character %U, which no cluster ID does", r)
		}
	}
	return nil
}

// statusError returns the status of a call that ended without an answer because of err.
func statusError(err error) error {
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
