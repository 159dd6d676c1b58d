package resourcereader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// workers is the number of goroutines that are kept for calls. A new goroutine has to grow its
// stack twice before it has read a request, which is a fifth of the cost of a read. A stream keeps
// its worker; a call that finds no free worker gets a new goroutine.
const workers = 16

// Server serves the offers of a table. Create it with New, then call Listen, then Start.
type Server struct {
	options Options
	metrics *metrics
	health  *health.Server
	// listeners are in the order of Options.Endpoints. They share connections and otherStreams.
	listeners    []*listener
	connections  *connections
	otherStreams *otherStreams

	// life ends at the point of the shutdown where streams must end; end ends it.
	life context.Context
	end  context.CancelCauseFunc
}

type listener struct {
	net.Listener
	form Form
}

// New returns a server that does not listen yet. Its error is one line that says what to change.
func New(options Options) (*Server, error) {
	options.MaxWait = cmp.Or(options.MaxWait, 30*time.Second)
	options.ShutdownTimeout = cmp.Or(options.ShutdownTimeout, 10*time.Second)
	switch {
	case options.Table == nil:
		return nil, errors.New("a gRPC server needs a table to serve")
	case len(options.Endpoints) == 0:
		return nil, errors.New("a gRPC server needs a listen address")
	}
	if err := options.TLS.check(); err != nil {
		return nil, err
	}
	m := newMetrics()
	s := &Server{
		options: options, metrics: m, health: health.NewServer(),
		connections: newConnections(options.Table, m.closed),
	}
	if options.Registerer != nil {
		if err := m.register(options.Registerer, options.Table, s.connections); err != nil {
			return nil, err
		}
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.otherStreams = &otherStreams{open: make(chan struct{}, maxOtherStreams), refused: m.refused, life: s.life}
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

// Listen opens the listeners. From then on clients can connect; calls are answered from Start on.
// On an error no listener stays open.
func (s *Server) Listen(ctx context.Context) error {
	for _, e := range s.options.Endpoints {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Address)
		if err != nil {
			s.close()
			return fmt.Errorf("listening for gRPC in the form %s: %w", e.Form, err)
		}
		s.listeners = append(s.listeners, &listener{Listener: l, form: e.Form})
	}
	return nil
}

func (s *Server) close() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
	s.listeners = nil
}

// Addresses returns the addresses of the listeners, in the order of Options.Endpoints. Before
// Listen there are none.
func (s *Server) Addresses() []net.Addr {
	var all []net.Addr
	for _, l := range s.listeners {
		all = append(all, l.Addr())
	}
	return all
}

// Start serves until ctx ends or a listener fails. It calls Listen unless that was called before.
// It returns when all calls and all goroutines of the server have ended. Call it once.
//
// Call it before the manager's Start, which waits for its caches: Liqo gives up on a connection after
// 3 s.
func (s *Server) Start(ctx context.Context) error {
	defer s.end(errShutdown)
	if s.listeners == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	security, err := s.options.TLS.credentials(ctx, group, s.options.Logger)
	if err != nil {
		s.close()
		return err
	}
	var servers []*grpc.Server
	for _, l := range s.listeners {
		server := s.newServer(l.form, security)
		servers = append(servers, server)
		s.options.Logger.Info("Serving gRPC",
			"address", l.Addr().String(), "form", l.form.String(), "tls", s.options.TLS != TLS{})
		group.Go(func() error {
			err := server.Serve(boundedListener{l.Listener, s.connections})
			if err != nil && !errors.Is(err, grpc.ErrServerStopped) { // It may be stopped before it began.
				return fmt.Errorf("serving gRPC at %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		select {
		case <-s.options.Table.Ready():
			s.setHealth(healthv1.HealthCheckResponse_SERVING)
		case <-ctx.Done():
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		s.shutdown(servers)
		return nil
	})
	return group.Wait()
}

func (s *Server) newServer(form Form, security credentials.TransportCredentials) *grpc.Server {
	count := s.metrics.calls.UnaryServerInterceptor()
	if form == Flat {
		count = underCalledName(count)
	}
	recovered := recoverPanics(s.metrics.panics, s.options.Logger)
	server := grpc.NewServer(
		grpc.Creds(peerCredentials{security}),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ChainUnaryInterceptor(count, recovery.UnaryServerInterceptor(recovered)),
		grpc.ChainStreamInterceptor(
			s.metrics.calls.StreamServerInterceptor(), recovery.StreamServerInterceptor(recovered),
			holdDuringShutdown(s.life), s.otherStreams.intercept,
		),
		grpc.NumStreamWorkers(workers),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxCallsPerConnection),
		grpc.ConnectionTimeout(min(handshakeTimeout, s.options.ShutdownTimeout/2)),
		grpc.WaitForHandlers(true),
		// There is no maximum age of a connection: it would end streams.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: maxIdle}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
	)
	services := countingServer{server}
	common := &service{table: s.options.Table, maxWait: s.options.MaxWait, life: s.life}
	switch form {
	case Pools:
		wire.RegisterResourceReaderServer(services, &poolsService{common, newAnswers(common.table, poolsAnswer)})
	case Flat:
		flat.RegisterResourceReaderServer(services, &flatService{common, newAnswers(common.table, flatAnswer)})
	}
	healthv1.RegisterHealthServer(services, s.health)
	registerReflection(services, form)
	s.metrics.calls.InitializeMetrics(server)
	return server
}

func (s *Server) setHealth(to healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", to)
	s.health.SetServingStatus(serviceName, to)
}
