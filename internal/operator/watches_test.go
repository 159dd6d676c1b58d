package operator

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/watchage"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// watchRequests records the URL of every watch request.
type watchRequests struct {
	mu   sync.Mutex
	made []*url.URL
}

// wrap returns a transport that records its watch requests.
func (r *watchRequests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.URL.Query().Get("watch") == "true" {
			r.mu.Lock()
			r.made = append(r.made, request.URL)
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// watched returns the resources whose watches the metrics report.
func watched(t *testing.T, watches prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	test.Must(t, registry.Register(watches))
	families, err := registry.Gather()
	test.Must(t, err)
	var all []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "proffer_watch_news_age_seconds" {
				all = append(all, m.GetLabel()[0].GetValue())
			}
		}
	}
	return all
}

// missing returns the wanted names that are not in all.
func missing(all []string, wanted ...string) string {
	wanted = slices.DeleteFunc(wanted, func(w string) bool { return slices.Contains(all, w) })
	return strings.Join(wanted, " ")
}

func TestTheAgeOfEveryWatchIsReportedWhileItIsOpen(t *testing.T) {
	const tenants = "tenants.authentication.liqo.io"
	uninstall := kubetest.Install(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	watches := watchage.New(logr.Discard())
	requests := &watchRequests{}
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	config.Wrap(requests.wrap)
	config.Wrap(watches.Wrap)
	o := launchOperator(t, config, withElection(shortLease(t)), func(o *parts) { o.ServedClasses = "watched-classes" })
	builtin := []string{
		"nodes", "pods", "namespaces", "storageclasses.storage.k8s.io",
		"customresourcedefinitions.apiextensions.k8s.io",
		"resourcepolicies.proffer.dev",
	}
	test.Eventually(o.t, func() string {
		return missing(watched(t, watches), append(builtin, tenants, "admissionparams.proffer.dev")...)
	})

	uninstall()
	test.Eventually(o.t, func() string {
		if slices.Contains(watched(t, watches), tenants) {
			return tenants + " still has an age"
		}
		return ""
	})
	if lost := missing(watched(t, watches), builtin...); lost != "" {
		t.Errorf("no longer reported: %s", lost)
	}
	// A quiet watch shows that it is alive by a bookmark each minute.
	requests.mu.Lock()
	defer requests.mu.Unlock()
	for _, made := range requests.made {
		if made.Query().Get("allowWatchBookmarks") != "true" {
			t.Errorf("without bookmarks: %s", made)
		}
	}
	o.stop()
	test.Eventually(o.t, func() string { return strings.Join(watched(t, watches), " ") })
}
