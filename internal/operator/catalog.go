package operator

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/internal/web/outside"
)

// Catalog configures the listener for callers from outside of the cluster.
type Catalog struct {
	// Address is the listen address. Empty disables the listener.
	Address string
	// CertFile and KeyFile name the files of the TLS certificate and its key. Without them, the address
	// has to be a loopback address.
	CertFile, KeyFile string
	// Anonymous shows callers without credentials the clusters, and the classes without amounts.
	Anonymous bool
}

// listen returns a server that listens, or nil without an address.
func (c *Catalog) listen(ctx context.Context) (*outside.Server, error) {
	if c.Address == "" {
		return nil, nil
	}
	server, err := outside.New(outside.Options{
		Address: c.Address, CertFile: c.CertFile, KeyFile: c.KeyFile, Problem: web.Problem, Log: ctrl.Log.WithName("catalog"),
	})
	if err != nil {
		return nil, err
	}
	return server, server.Listen(ctx)
}

// serve adds the server to the manager.
func (c *Catalog) serve(mgr ctrl.Manager, server *outside.Server, pages *web.Server) error {
	if server == nil {
		return nil
	}
	filter, err := authorize(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	// The filter logs each wrong token. Strangers may send any number of them.
	handler, err := filter(logr.Discard(), pages.API())
	if err != nil {
		return err
	}
	if c.Anonymous {
		handler = outside.Anonymous(handler, pages.Public())
	}
	server.Serve(web.Problems(onlyAPI(handler)))
	if err := metrics.Registry.Register(server); err != nil {
		return err
	}
	return mgr.Add(server)
}

// onlyAPI answers only requests for paths below /api.
func onlyAPI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, api.APIPath) {
			web.Problem(w, http.StatusNotFound, "there is nothing at this path: see "+api.OpenAPIPath)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// rightOf returns the nonResourceURL whose right a request for this path needs. Kubernetes lets every
// authenticated account get all paths below /api (ClusterRole system:discovery), so
// /api/catalog needs the right to /catalog. The description of the API has no secrets. Whoever may read
// the offers may read the overview.
func rightOf(path string) string {
	if path == api.OverviewPath {
		return api.OffersPath
	}
	if path == api.OpenAPIPath || !strings.HasPrefix(path, api.APIPath) {
		return path
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(api.APIPath, "/"))
}
