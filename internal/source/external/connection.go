package external

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/visible"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

const (
	// maxAnswer bounds an answer, maxNotification a notification, and maxHeaders the headers of a
	// response, in bytes.
	maxAnswer       = 64 << 10
	maxNotification = 1 << 10
	maxHeaders      = 8 << 10
	// readMethod and removeMethod are called in both forms.
	readMethod   = "/resource_reader/ReadResources"
	removeMethod = "/resource_reader/RemoveCluster"
)

// monitorConnection is a connection to a monitor.
type monitorConnection interface {
	// read returns the amounts that the monitor answers for a consumer. Its error is lost if the monitor
	// could not be read at all.
	read(ctx context.Context, id string) (capacity.Amounts, error)
	// subscribe calls notified for each notification until the stream ends.
	subscribe(ctx context.Context, notified func(id string)) error
	// remove reports to the monitor that a consumer is gone. Its error is lost like the error of read.
	remove(ctx context.Context, id string) error
	close()
}

// lost is the error of a reading that the monitor did not respond to.
type lost struct {
	error
	// silent is set if nothing came in time, and not if the connection failed.
	silent bool
	// began is the start of the reading.
	began time.Time
}

func (l lost) Unwrap() error { return l.error }

// grpcConnection is a connection of gRPC. It opens with the first call.
type grpcConnection struct {
	monitor capacity.Monitor
	conn    *grpc.ClientConn
}

// dial returns a connection to a monitor. It does not wait for it.
func dial(m capacity.Monitor) (monitorConnection, error) {
	transport := insecure.NewCredentials()
	if m.CABundle != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(m.CABundle)) {
			return nil, errors.New("spec.offer.external.tls.caBundle has no certificate")
		}
		name := m.ServerName
		if name == "" {
			name, _, _ = net.SplitHostPort(m.Address)
		}
		transport = credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})
	}
	// The address is dialled as it is: no resolver but net's, no proxy and no configuration from DNS. A
	// source never reuses a connection that has failed.
	conn, err := grpc.NewClient("passthrough:///"+m.Address,
		grpc.WithTransportCredentials(transport), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}),
		grpc.WithMaxHeaderListSize(maxHeaders), grpc.WithUserAgent("proffer"))
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &grpcConnection{m, conn}, nil
}

func (c *grpcConnection) close() { _ = c.conn.Close() }

func (c *grpcConnection) read(ctx context.Context, id string) (capacity.Amounts, error) {
	if c.monitor.Flat {
		answer := &flat.ResourceList{}
		if err := c.invoke(ctx, readMethod, id, answer); err != nil {
			return nil, c.problem(err)
		}
		return parse(answer.GetResources())
	}
	answer := &wire.PoolResourceList{}
	if err := c.invoke(ctx, readMethod, id, answer); err != nil {
		return nil, c.problem(err)
	}
	pool, err := choose(answer.GetResourceLists(), c.monitor.Class)
	if err != nil {
		return nil, err
	}
	return parse(pool.GetResources())
}

// remove takes a monitor without the method, and one that does not know the consumer, as told.
func (c *grpcConnection) remove(ctx context.Context, id string) error {
	err := c.invoke(ctx, removeMethod, id, &wire.Empty{})
	if code := status.Code(err); code == codes.Unimplemented || code == codes.NotFound {
		return nil
	}
	return c.problem(err)
}

// invoke calls a method about a consumer.
func (c *grpcConnection) invoke(ctx context.Context, method, id string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.monitor.Timeout)
	defer cancel()
	return c.conn.Invoke(ctx, method, &wire.ClusterIdentity{ClusterID: id}, answer, grpc.MaxCallRecvMsgSize(maxAnswer))
}

// problem describes the error of a call.
func (c *grpcConnection) problem(err error) error {
	s := status.Convert(err)
	message := fmt.Sprintf("%.*s", maxShownError, s.Message())
	switch s.Code() { //nolint:exhaustive // The others are errors of the monitor about this consumer.
	case codes.OK:
		return nil
	case codes.DeadlineExceeded:
		return lost{error: fmt.Errorf("no answer within %v", c.monitor.Timeout), silent: true}
	case codes.Unavailable, codes.Canceled:
		return lost{error: errors.New(printable(message))}
	case codes.ResourceExhausted:
		return fmt.Errorf("its answer cannot be read (at most %d bytes can): %s", maxAnswer, printable(message))
	}
	return fmt.Errorf("it fails with %v: %s", s.Code(), printable(message))
}

// maxShownError bounds the message of an error that a problem shows, in characters.
const maxShownError = 200

func (c *grpcConnection) subscribe(ctx context.Context, notified func(id string)) error {
	client := wire.NewResourceReaderClient(c.conn)
	stream, err := client.Subscribe(ctx, &wire.Empty{}, grpc.MaxCallRecvMsgSize(maxNotification))
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	for {
		identity, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("waiting for notifications: %w", err)
		}
		notified(identity.GetClusterID())
	}
}

// printable returns a text of a monitor without control characters.
func printable(text string) string { return visible.Blank(strings.ToValidUTF8(text, " ")) }
