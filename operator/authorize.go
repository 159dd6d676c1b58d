package operator

import (
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "proffer.dev/proffer/api/rest"
)

// maxToken bounds a token in TokenHeader, in bytes. Those of ServiceAccounts have about 1,000.
const maxToken = 16 << 10

// authorize has the API server authenticate and authorize each request, by the token in Authorization
// or, if there is no such header, in rest.TokenHeader.
func authorize(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		authorized, err := filter(log, handler)
		if err != nil {
			return nil, err
		}
		return takeToken(authorized), nil
	}, nil
}

// takeToken makes the token in rest.TokenHeader the bearer token of a request without Authorization. A
// request with two tokens there has none. The header goes no further.
func takeToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens := r.Header.Values(api.TokenHeader)
		if len(tokens) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		taken := r.Clone(r.Context())
		taken.Header.Del(api.TokenHeader)
		if _, there := taken.Header["Authorization"]; !there && len(tokens) == 1 && tokens[0] != "" && len(tokens[0]) <= maxToken {
			taken.Header.Set("Authorization", "Bearer "+tokens[0])
		}
		next.ServeHTTP(w, taken)
	})
}
