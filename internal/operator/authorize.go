package operator

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/web"
	"proffer.dev/proffer/internal/web/page"
)

// maxToken bounds a token in TokenHeader, in bytes. Those of ServiceAccounts have about 1,000.
const maxToken = 16 << 10

// authorize has the API server authenticate and authorize each request, by the token in Authorization
// or, if there is no such header, in rest.TokenHeader. A request for a page needs the right of the JSON
// that the page shows, and one for a path below /api another right: see rightOf.
func authorize(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, err
	}
	return withRights(filter), nil
}

// withRights has the filter authorize each request for the right that it needs, and serves it itself. A change that
// is sent with GET needs the right to POST.
func withRights(filter metricsserver.Filter) metricsserver.Filter {
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		authorized, err := filter(log, http.HandlerFunc(allow))
		if err != nil {
			return nil, err
		}
		return takeToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, page.Path) {
				serveAllowed(w, r, authorized, handler)
				return
			}
			method := r.Method
			if web.Changes(r) {
				method = http.MethodPost
			}
			if v := ask(r, method, rightOf(r.URL.Path), authorized); !v.allowed {
				v.refuse(w)
				return
			}
			r.Header.Del("Authorization") // As the filter does.
			handler.ServeHTTP(w, r)
		})), nil
	}
}

// verdict is the answer to whether a request may be served, with the refusal that the filter writes.
type verdict struct {
	bytes.Buffer
	header  http.Header
	code    int
	allowed bool
}

// Header implements http.ResponseWriter.
func (v *verdict) Header() http.Header { return v.header }

// WriteHeader implements http.ResponseWriter.
func (v *verdict) WriteHeader(code int) { v.code = code }

// refuse answers with the refusal.
func (v *verdict) refuse(w http.ResponseWriter) {
	maps.Copy(w.Header(), v.header)
	w.WriteHeader(v.code)
	_, _ = v.WriteTo(w) // An error means that the client is gone.
}

// allow is called by the filter for a request that it allows.
func allow(w http.ResponseWriter, _ *http.Request) {
	if v, ok := w.(*verdict); ok {
		v.allowed = true
	}
}

// serveAllowed asks whether the caller has the right to the JSON that the page shows. If so, it serves
// the page, and otherwise the page of the refusal.
func serveAllowed(w http.ResponseWriter, r *http.Request, authorized, handler http.Handler) {
	right := rightOf(page.Shows(r))
	if v := ask(r, r.Method, right, authorized); !v.allowed {
		page.Deny(w, r, v.code, right)
		return
	}
	if post := page.Posts(r); post != "" && ask(r, http.MethodPost, rightOf(post), authorized).allowed {
		r = page.WithButtons(r)
	}
	handler.ServeHTTP(w, r)
}

// ask asks whether the caller of a request has a right.
func ask(r *http.Request, method, right string, authorized http.Handler) *verdict {
	asked := r.Clone(r.Context())
	asked.Method, asked.URL.Path, asked.URL.RawPath = method, right, ""
	asked.Body = http.NoBody
	v := &verdict{header: http.Header{}, code: http.StatusInternalServerError}
	authorized.ServeHTTP(v, asked)
	return v
}

// token is the key of the bearer token of a request in its context. The filter, which asks the API server
// about it, does not pass on whose it is.
type token struct{}

// takeToken keeps the bearer token of a request in its context. A request without Authorization has that in
// rest.TokenHeader, which goes no further, or none if there are two.
func takeToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken := r.Clone(r.Context())
		taken.Header.Del(api.TokenHeader)
		tokens := r.Header.Values(api.TokenHeader)
		_, there := taken.Header["Authorization"]
		if !there && len(tokens) == 1 && tokens[0] != "" && len(tokens[0]) <= maxToken {
			taken.Header.Set("Authorization", "Bearer "+tokens[0])
		}
		scheme, text, ok := strings.Cut(taken.Header.Get("Authorization"), " ")
		if ok && strings.EqualFold(scheme, "bearer") {
			taken = taken.WithContext(context.WithValue(taken.Context(), token{}, strings.TrimSpace(text)))
		}
		next.ServeHTTP(w, taken)
	})
}
