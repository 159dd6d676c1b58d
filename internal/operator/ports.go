package operator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/bounded"
	"proffer.dev/proffer/internal/web"
)

// The ports of the metrics and of the probes are open to every pod of the cluster. controller-runtime's
// own servers bound neither connections nor the time of a body, and a header at 1 MiB.
var (
	metricsBounds = bounded.Bounds{
		Connections: 256, Header: 32 << 10, HeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		// A snapshot of 50,000 pods has 17 MB, and its reader may be far away.
		WriteTimeout: 5 * time.Minute, IdleTimeout: 90 * time.Second,
	}
	// The kubelet makes a connection for each probe.
	probeBounds = bounded.Bounds{
		Connections: 64, Header: 4 << 10, HeaderTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second,
		WriteTimeout: 5 * time.Second, IdleTimeout: 2 * time.Second,
	}
)

// portShutdown bounds how long the requests under way may take when the process shuts down.
const portShutdown = 10 * time.Second

// disabled reports whether a listen address is none.
func disabled(address string) bool { return address == "" || address == "0" }

// servePorts adds the servers of the probes and of the metrics to the manager. The metrics and the handlers,
// by path, are behind the filter.
func servePorts(
	ctx context.Context, mgr ctrl.Manager, o *Options, probes map[string]healthz.Checker,
	handlers map[string]http.Handler,
) error {
	add := func(name, address string, bounds *bounded.Bounds, handler http.Handler, config *tls.Config) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		server := bounds.Server(handler, mgr.GetLogger().WithName(name))
		server.SetKeepAlivesEnabled(config != nil)
		if listener = bounds.Listener(listener, nil); config != nil {
			listener = tls.NewListener(listener, config)
		}
		return mgr.Add(&manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: new(portShutdown)})
	}
	if !disabled(o.ProbeAddress) {
		if err := add("probes", o.ProbeAddress, &probeBounds, probeHandler(probes), nil); err != nil {
			return err
		}
	}
	if disabled(o.MetricsAddress) {
		return nil
	}
	handler, err := metricsHandler(mgr, handlers)
	if err != nil {
		return err
	}
	config, err := selfSigned()
	if err != nil {
		return err
	}
	return add("metrics", o.MetricsAddress, &metricsBounds, handler, config)
}

// probeHandler answers the probes: /healthz whether the process lives, /readyz whether it is ready.
func probeHandler(ready map[string]healthz.Checker) http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{
		"/healthz": {"ping": healthz.Ping}, "/readyz": ready,
	} {
		all := allChecks(checks)
		mux.Handle(path, all)
		mux.Handle(path+"/{$}", all)
		for name, check := range checks {
			mux.Handle(path+"/"+name, healthz.CheckHandler{Checker: check})
		}
	}
	return mux
}

// allChecks answers like healthz.Handler, which logs each request that finds a check to fail. Strangers may
// send any number of them.
func allChecks(checks map[string]healthz.Checker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, verdict := "", "passed"
		for _, name := range slices.Sorted(maps.Keys(checks)) {
			if err := checks[name](r); err != nil {
				text, verdict = text+"[-]"+name+" failed: reason withheld\n", "failed"
				continue
			}
			text += "[+]" + name + " ok\n"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case verdict == "failed":
			w.WriteHeader(http.StatusInternalServerError)
		case !r.URL.Query().Has("verbose"):
			_, _ = io.WriteString(w, "ok")
			return
		}
		_, _ = io.WriteString(w, text+"healthz check "+verdict+"\n")
	})
}

// metricsHandler serves the metrics and the handlers to callers that have the right.
func metricsHandler(mgr ctrl.Manager, handlers map[string]http.Handler) (http.Handler, error) {
	filter, err := authorize(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	all := maps.Clone(handlers)
	all["/metrics"] = promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	return protected(all, filter)
}

// protected serves the handlers, by path, behind the filter. Below /api, what it refuses is a problem too.
func protected(handlers map[string]http.Handler, filter metricsserver.Filter) (http.Handler, error) {
	mux := http.NewServeMux()
	for path, handler := range handlers {
		// The filter logs each wrong token, with a stack trace. Strangers may send any number of them.
		filtered, err := filter(logr.Discard(), handler)
		if err != nil {
			return nil, err
		}
		if path == api.APIPath {
			filtered = web.Problems(filtered)
		}
		mux.Handle(path, filtered)
	}
	return mux, nil
}

// selfSigned returns a certificate that nobody can verify. Clients come with a token for this port alone,
// or through the API server. Its key is made in no time, unlike one of RSA.
func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the metrics: %w", err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "localhost"}, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the metrics: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}},
	}, nil
}
