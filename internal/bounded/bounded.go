// Package bounded serves HTTP to callers of whom nothing is known: any pod of the cluster, or callers from
// outside of it. It bounds how many connections are open, how long each takes for a request, and how large
// a header is. So what all callers together take is bounded too. It speaks HTTP/1.1 only: a connection has
// one request at a time.
package bounded

import (
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// Bounds holds the bounds of one address.
type Bounds struct {
	// Connections bounds the open connections, PerClient the connections of one client, 0 for no bound
	// of its own.
	Connections, PerClient int
	// Header bounds the header of a request in bytes, to which net/http adds 4 KiB.
	Header int
	// HeaderTimeout bounds the TLS handshake and the header of a request, ReadTimeout a whole request,
	// WriteTimeout its answer from the end of the header, and IdleTimeout the time between two requests.
	HeaderTimeout, ReadTimeout, WriteTimeout, IdleTimeout time.Duration
}

// Server returns a server with the bounds. Its listener is to be one of Listener. What it reports is logged
// at a bounded rate.
func (b *Bounds) Server(handler http.Handler, log logr.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: withoutBody(handler), Protocols: protocols, MaxHeaderBytes: b.Header, ReadHeaderTimeout: b.HeaderTimeout,
		ReadTimeout: b.ReadTimeout, WriteTimeout: b.WriteTimeout, IdleTimeout: b.IdleTimeout,
		ErrorLog: errorLog(log),
	}
}

// withoutBody closes the connection of a GET or HEAD that has a body after its answer. Otherwise net/http
// would wait for the body in the handler, whatever places that holds, before it sends anything.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Listener bounds the connections of a listener. It counts those that it closes, unless closed is nil.
func (b *Bounds) Listener(l net.Listener, closed prometheus.Counter) net.Listener {
	return &listener{Listener: l, bounds: *b, closed: closed, open: map[client][]*clientConnection{}}
}
