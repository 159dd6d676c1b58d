// Package outside serves the catalog to callers from outside of the cluster, at an address of its own.
//
// Each of them is a stranger. The server bounds the connections, the requests, the headers and the
// times, and knows nothing of what it serves.
package outside

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/bounded"
)

var bounds = bounded.Bounds{
	Connections: 128, PerClient: 16, Header: 16 << 10,
	HeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
	IdleTimeout: 30 * time.Second,
}

// shutdownTimeout bounds the end of the requests under way when the process shuts down.
const shutdownTimeout = 5 * time.Second

// Options configure a Server.
type Options struct {
	// Address is the address to listen at.
	Address string
	// CertFile and KeyFile name the files of the certificate and its key. They are reloaded when they
	// change. Without them, the address has to be a loopback address.
	CertFile, KeyFile string
	// Problem writes an error: a code and what to do.
	Problem func(w http.ResponseWriter, code int, detail string)
	Log     logr.Logger
}

// Check returns an error, of one line that says what to write, if callers could not trust the address.
func (o *Options) Check() error {
	switch cert, key := o.CertFile != "", o.KeyFile != ""; {
	case cert && !key:
		return errors.New("the certificate of the catalog has no key: set both")
	case key && !cert:
		return errors.New("the key of the catalog has no certificate: set both")
	case !cert && !Loopback(o.Address):
		return fmt.Errorf("the catalog at %s needs TLS: set a certificate and its key, or a loopback address", o.Address)
	}
	return nil
}

// Loopback reports whether only programs of this host can connect to the address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && net.ParseIP(host).IsLoopback() // What is no IP is no loopback either.
}

// Server serves the catalog. Listen comes first, then Start.
type Server struct {
	// Collector counts what is refused.
	prometheus.Collector
	options  Options
	handler  http.Handler
	requests *requestLimits
	refused  *prometheus.CounterVec
	listener net.Listener
	watcher  *certwatcher.CertWatcher
}

// New returns a server with these options.
func New(o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_catalog_refused_total",
		Help: "Number of connections and requests to --catalog-bind-address that were refused because of a limit, " +
			"by limit: connections or requests.",
	}, []string{"limit"})
	for _, limit := range []string{"connections", "requests"} {
		refused.WithLabelValues(limit)
	}
	return &Server{Collector: refused, options: o, requests: limitRequests(), refused: refused}, nil
}

// Serve sets the handler. It must be called before Start.
func (s *Server) Serve(handler http.Handler) { s.handler = handler }

// Listen reads the certificate and listens at the address.
func (s *Server) Listen(ctx context.Context) (err error) {
	o := &s.options
	if o.CertFile != "" {
		if s.watcher, err = certwatcher.New(o.CertFile, o.KeyFile); err != nil {
			return fmt.Errorf("reading the certificate of the catalog %s and its key %s: %w", o.CertFile, o.KeyFile, err)
		}
	}
	var config net.ListenConfig
	s.listener, err = config.Listen(ctx, "tcp", o.Address)
	return err
}

// Address returns where the server listens.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	server := bounds.Server(http.HandlerFunc(s.serve), s.options.Log)
	server.BaseContext = func(net.Listener) context.Context { return running }
	listener := bounds.Listener(s.listener, s.refused.WithLabelValues("connections"))
	if s.watcher != nil {
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.watcher.GetCertificate,
		})
		group.Go(func() error { return s.watcher.Start(running) })
	}
	s.options.Log.Info("Serving the catalog", "address", s.Address().String(), "tls", s.watcher != nil)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-running.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}

// serve serves a request, unless it is one too many.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if wait := s.requests.wait(r, time.Now()); wait > 0 {
		s.refused.WithLabelValues("requests").Inc()
		seconds := int(math.Ceil(wait.Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		s.options.Problem(w, http.StatusTooManyRequests, fmt.Sprintf("too many requests: try again in %d s", seconds))
		return
	}
	s.handler.ServeHTTP(w, r)
}

// hasCredentials reports whether a request has a token, or anything in the place of one. Kubernetes'
// authentication also takes the token of a WebSocket.
func hasCredentials(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Authorization", rest.TokenHeader, "Sec-WebSocket-Protocol"},
		func(name string) bool { return len(r.Header.Values(name)) > 0 })
}

// Anonymous returns a handler that has requests without credentials answered by public. It passes all
// others to authorized, and also those that public has nothing for.
func Anonymous(authorized http.Handler, public *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hasCredentials(r) {
			if handler, pattern := public.Handler(r); pattern != "" {
				handler.ServeHTTP(w, r)
				return
			}
		}
		authorized.ServeHTTP(w, r)
	})
}
