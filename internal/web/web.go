// Package web serves over HTTP the offers of each consumer and their explanations, the catalog, the
// clusters that this one is peered with, everything that was evaluated, and what a change would do. It
// reads the table that gRPC is served from. Package rest has the paths and the JSON. A request is not a
// read in Liqo's sense: it does not affect notifications. Nothing here writes to the table, and only
// rest.TogglePath writes to the API server.
//
// Every caller has been authenticated and authorized before, except callers of Public, which shows what
// is meant for strangers. Still, a process makes one snapshot or simulation at a time, each within a
// time, and bodies and answers are bounded.
//
// One path is not about the table: rest.TogglePath disables and enables providers of a broker, in the
// Orchestrations (package toggle). It is served only where the operator puts them into force.
//
// Offers of different classes may overlap: only grants exclude each other. A consumer that uses what
// one class offers may find less in another class.
package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/plugins/filters"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/internal/web/page"
)

const (
	// writeTimeout bounds the writing of an answer to a slow reader.
	writeTimeout = time.Minute
	// maxReaders bounds the answers to GET /offers, GET /offers/{clusterID} and GET /overview that are made or being
	// read at a time: each may take some megabytes.
	maxReaders = 8
	// oneAtATime is why a request for a snapshot or a simulation is refused.
	oneAtATime = "one snapshot or simulation is made at a time"
	// tryAgain ends errors that pass.
	tryAgain = ": try again in a moment"
	// retryAfterSeconds is the Retry-After of an error that passes: too many requests, no evaluation yet.
	retryAfterSeconds = 1
)

// Server answers requests. The exported fields must be set before it answers.
type Server struct {
	// Collector has the durations of requests.
	prometheus.Collector
	// Process returns the state of this process. By default, the overview is of the evaluation only.
	Process func() overview.Process
	// Trends has the lines of the last day, and Month returns what the accounting database has of the last month, nil
	// while that is not known. The pages show both.
	Trends *trends.Ring
	Month  func() *trends.Month
	// Toggling is nil if no Orchestrations are put into force: rest.TogglePath answers 404.
	Toggling *Toggling
	// Federation returns what the providers of this cluster publish to it, with what has expired at a time. It is nil if
	// they are not read: the scope federation of rest.CatalogPath answers 404.
	Federation func(now time.Time) rest.Federation

	table   *table.Table
	ledger  *capacity.Ledger
	version string
	// filters holds the filters in Go, nil for none.
	filters *filters.Chain
	// simulateTimeout is rest.SimulateTimeout, except in tests.
	simulateTimeout time.Duration
	// arriving are the bodies that are being read.
	arriving arrivals
	// busy is held by the one request that rehearses or copies the ledger.
	busy chan struct{}
	// reading is held by requests that read offers.
	reading chan struct{}
	// looking is held by the one request that looks for a consumer's pods.
	looking sync.Mutex
	// listed are the policies of a revision, and shown what it has that needs somebody: see policiesOf and overviewOf.
	listed latest[uint64, []rest.Policy]
	shown  latest[uint64, *overview.Evaluation]
	// clusters reads the clusters, and the forms have the answers that were made of the latest list.
	clusters              Clusters
	early, native, public clusterForm
	// catalogs holds the catalogs of some revisions. Requests that read them hold readingCatalog.
	catalogs       *catalogs
	readingCatalog chan struct{}
	// showingFederation is held by requests without credentials for the federation. They keep out only each other.
	showingFederation chan struct{}
	// readingProviders is held by requests that read providers, and origins refuses changes that another site
	// sends.
	readingProviders chan struct{}
	origins          *http.CrossOriginProtection
	// description is the OpenAPI document.
	description *representation
	requests    *prometheus.HistogramVec
}

// New returns a server of the snapshots in the table, and of the clusters. The ledger is the evaluated
// one, with the filters, nil for none. The version is the operator's.
func New(t *table.Table, l *capacity.Ledger, clusters Clusters, chain *filters.Chain, version string) *Server {
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "proffer_http_request_duration_seconds",
		Help: "How long requests for offers, catalogs, clusters, providers, snapshots and simulations took, " +
			"by path and status code.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8), // 1 ms to 16 s
	}, []string{"path", "code"})
	return &Server{
		table: t, ledger: l, clusters: clusters, filters: chain, version: version, simulateTimeout: rest.SimulateTimeout,
		Process: func() overview.Process { return overview.Process{Now: time.Now()} },
		Trends:  &trends.Ring{}, Month: func() *trends.Month { return nil },
		busy: make(chan struct{}, 1), reading: make(chan struct{}, maxReaders),
		catalogs: newCatalogs(l.Shapes), readingCatalog: make(chan struct{}, maxReaders),
		showingFederation: make(chan struct{}, maxReaders),
		readingProviders:  make(chan struct{}, maxReaders), origins: http.NewCrossOriginProtection(),
		description: compress(openAPI, openAPI),
		early:       clusterForm{of: (*consumers.ForeignClusters).Early},
		native:      clusterForm{of: (*consumers.ForeignClusters).Native},
		public:      clusterForm{of: (*consumers.ForeignClusters).Public},
		Collector:   requests, requests: requests,
	}
}

// Handlers returns the handlers by where to mount them.
func (s *Server) Handlers() map[string]http.Handler {
	consumer := rest.OffersPath + "/{clusterID}"
	mux := http.NewServeMux()
	s.handle(mux, http.MethodGet, rest.OffersPath, s.offers)
	s.handle(mux, http.MethodGet, consumer, s.consumer)
	s.handle(mux, http.MethodGet, rest.OverviewPath, s.overview)
	s.handle(mux, http.MethodGet, rest.SnapshotPath, s.snapshot)
	s.handle(mux, http.MethodPost, rest.SimulatePath, s.simulate)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "",
			"there is nothing at this path", 0, false))
	})
	return map[string]http.Handler{
		rest.OffersPath: mux, rest.OffersPath + "/": mux, rest.SnapshotPath: mux, rest.SimulatePath: mux,
		rest.OverviewPath: mux,
		rest.APIPath:      Problems(s.API()),
		page.Path:         s.pages(),
	}
}

// handle serves one method of a path. HEAD is answered like GET.
func (s *Server) handle(
	mux *http.ServeMux, method, path string, serve func(http.ResponseWriter, *http.Request, *table.Snapshot),
) {
	mux.HandleFunc(method+" "+path, s.counted(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(rest.VersionHeader, s.version)
		s.afterFirst(fail, serve)(w, r)
	}))
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", method)
		fail(w, apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "",
			"use "+method, 0, false))
	})
}

// afterFirst serves the current snapshot, once there is one.
func (s *Server) afterFirst(
	refuse func(http.ResponseWriter, *apierrors.StatusError),
	serve func(http.ResponseWriter, *http.Request, *table.Snapshot),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		snapshot := s.table.Current()
		if snapshot == nil {
			refuse(w, apierrors.NewServiceUnavailable(table.ErrNotReady.Error()+tryAgain))
			return
		}
		serve(w, r, snapshot)
	}
}

// counted serves requests for a path, and observes how long each took and its status code.
func (s *Server) counted(path string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start, counted := time.Now(), &codeWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			s.requests.WithLabelValues(path, strconv.Itoa(counted.code)).Observe(time.Since(start).Seconds())
		}()
		serve(counted, r)
	}
}

// codeWriter notes the status code of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// enter lets the caller run until it calls leave, if fewer than the capacity of the channel run, and refuses with
// the limit otherwise.
func enter(running chan struct{}, limit string) (leave func(), refused *apierrors.StatusError) {
	select {
	case running <- struct{}{}:
		return func() { <-running }, nil
	default:
		return nil, apierrors.NewTooManyRequests(limit, retryAfterSeconds)
	}
}

// manyReaders is why a request for these things is refused.
func manyReaders(of string) string {
	return fmt.Sprintf("%d requests for %s are answered at a time", maxReaders, of)
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// An error means that the client is gone.
	_ = json.NewEncoder(visible.Writer{To: w}).Encode(value)
}

// suggestDelay sets the time after which to try again, for an error that passes.
func suggestDelay(w http.ResponseWriter, err *apierrors.StatusError) {
	if code := err.ErrStatus.Code; code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
}

// fail answers with a Status.
func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	suggestDelay(w, err)
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.Code), status)
}

func evaluated(s *table.Snapshot) rest.Evaluated {
	return rest.Evaluated{Revision: s.Revision, Time: s.Time}
}
