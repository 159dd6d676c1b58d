package resourcereader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// workers are goroutines that are kept for calls. A new one has to let its stack grow twice before it has read a request, which is a fifth
// of what a read costs. A stream keeps a worker for itself, and Liqo opens one; a call that finds no worker free gets a new goroutine.
const workers = 16

// Server serves the offers of a table. Make one with New, then call Listen, then Start.
type Server struct {
	options   Options
	metrics   *metrics
	health    *health.Server
	listening []*listener
	// connections are those of all listeners, others the places for streams of other services than ours.
	connections *connections
	others      chan struct{}

	// life ends, by end, when streams must.
	life context.Context
	end  context.CancelCauseFunc
}

type listener struct {
	net.Listener
	form Form
}

// New returns a server that listens nowhere yet. Its error is one line that says what to change.
func New(options Options) (*Server, error) {
	options = options.withDefaults()
	switch {
	case options.Table == nil:
		return nil, errors.New("a gRPC server needs a table to serve")
	case len(options.Endpoints) == 0:
		return nil, errors.New("a gRPC server needs an address to listen at")
	}
	if err := options.TLS.check(); err != nil {
		return nil, err
	}
	m, err := newMetrics(options.Registerer, options.Table)
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: options, metrics: m, health: health.NewServer(),
		connections: newConnections(options.Table, m), others: make(chan struct{}, maxOtherStreams),
	}
	if err := m.observe(options.Registerer, s.connections); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.setHealth(healthv1.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

// Listen takes the addresses. From then on clients can connect, though nobody is answered before Start. On an error none is taken.
func (s *Server) Listen(ctx context.Context) error {
	for _, e := range s.options.Endpoints {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Address)
		if err != nil {
			s.close()
			return fmt.Errorf("listening for gRPC in the form %s: %w", e.Form, err)
		}
		s.listening = append(s.listening, &listener{Listener: l, form: e.Form})
	}
	return nil
}

func (s *Server) close() {
	for _, l := range s.listening {
		_ = l.Close()
	}
	s.listening = nil
}

// Addresses returns where the server listens, in the order of Options.Endpoints; none before Listen.
func (s *Server) Addresses() []net.Addr {
	var all []net.Addr
	for _, l := range s.listening {
		all = append(all, l.Addr())
	}
	return all
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start listens, unless Listen was called, and serves until ctx ends or a listener breaks. It returns when all calls have ended and
// every goroutine of the server with them. It must be called once.
//
// It implements manager.Runnable, but a manager starts what it holds once its caches are synced, and Liqo gives up after 3 s without
// an answer to its connection: so better start it before the manager.
//
// On shutdown, in this order: health says NOT_SERVING; the listeners close, and clients are told to go elsewhere; streams end
// with Unavailable; calls under way may finish until Options.ShutdownTimeout; then connections are cut.
func (s *Server) Start(ctx context.Context) error {
	defer s.end(errShutdown)
	if s.listening == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	security, err := s.security(ctx, group)
	if err != nil {
		s.close()
		return err
	}
	var servers []*grpc.Server
	for _, l := range s.listening {
		server := s.newServer(l.form, security)
		servers = append(servers, server)
		s.options.Logger.Info("serving gRPC", "address", l.Addr().String(), "form", l.form.String(), "tls", s.options.TLS != TLS{})
		group.Go(func() error {
			// A server that is told to stop before it began is no failure.
			if err := server.Serve(limited{l.Listener, s.connections}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
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

// security returns the credentials of the server, and keeps the certificate up to date in the group.
func (s *Server) security(ctx context.Context, group *errgroup.Group) (credentials.TransportCredentials, error) {
	files := s.options.TLS
	if files == (TLS{}) {
		return insecure.NewCredentials(), nil
	}
	config, err := files.config(s.options.Logger)
	if err != nil {
		return nil, err
	}
	watcher, err := certwatcher.New(files.CertFile, files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS certificate %s and its key %s: %w", files.CertFile, files.KeyFile, err)
	}
	config.GetCertificate = watcher.GetCertificate
	group.Go(func() error { return watcher.Start(ctx) })
	return credentials.NewTLS(config), nil
}

func (s *Server) newServer(form Form, security credentials.TransportCredentials) *grpc.Server {
	around := &interceptor{
		panics: s.metrics.panics, log: s.options.Logger, life: s.life, others: s.others, refused: s.metrics.refused,
	}
	server := grpc.NewServer(
		grpc.Creds(handshaker{security}),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnaryInterceptor(around.unary),
		grpc.StreamInterceptor(around.stream),
		grpc.NumStreamWorkers(workers),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxCallsPerConnection),
		grpc.ConnectionTimeout(min(handshakeTimeout, s.options.ShutdownTimeout/2)),
		grpc.WaitForHandlers(true),
		// A peer that is gone without a word is noticed, and its stream freed, within 40 s; a connection without any call is
		// closed after a quarter of an hour. There is no maximum age: it would end streams.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: 15 * time.Minute}),
		// gRPC clients never ping more often than every 10 s; half of that tells them from a flood.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	services := registrar{server}
	services.RegisterService(&serviceDesc, &service{table: s.options.Table, form: form, maxWait: s.options.MaxWait, life: s.life})
	healthv1.RegisterHealthServer(services, s.health)
	registerReflection(services, form)
	around.methods = s.metrics.of(server)
	return server
}

func (s *Server) setHealth(to healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", to)
	s.health.SetServingStatus(serviceName, to)
}
