package check

import (
	"fmt"
	"net/http"
	"strings"

	"proffer.dev/proffer/internal/kube/watchage"
)

const checkNews Check = "news"

// probe is the answer of one replica to /readyz, through the API server.
type probe struct {
	pod string
	// status is the HTTP status, 0 without an answer.
	status int
	body   string
	err    error
}

// findNews reports whether each replica is ready and hears from the API server.
func findNews(namespace string, f flags, pods known[[]string], probes []probe) Finding {
	switch {
	case portOf(f.probes) == 0:
		return checkNews.skipped("The operator serves no /readyz: --health-probe-bind-address is off.")
	case pods.err != nil:
		return pods.skip(checkNews, "list pods in "+namespace)
	case len(pods.value) == 0:
		return checkNews.skipped("No replica runs.")
	}
	var failing []string
	for _, p := range probes {
		failed := failedChecks(p.body)
		switch {
		case p.status == http.StatusOK:
		case len(failed) > 0:
			failing = append(failing, fmt.Sprintf("%s fails %s", p.pod, strings.Join(failed, " and ")))
		case p.status == http.StatusForbidden:
			return checkNews.skipped(
				"You may not get pods/proxy in %s, so the replicas were not asked for the age of their news.", namespace).
				do("Ask for this right, or look at the metric proffer_watch_oldest_news_seconds.")
		default:
			return checkNews.skipped("The API server does not reach /readyz of %s: %v.", p.pod, p.err).
				do("Look at the metric proffer_watch_oldest_news_seconds.")
		}
	}
	if len(failing) > 0 {
		return checkNews.wrong("Not ready: %s.", strings.Join(failing, "; ")).
			do("See docs/how-to/find-out-what-hangs.md.")
	}
	return checkNews.ok("Each of %d replicas is ready, and has heard from all its watches within %v.",
		len(probes), watchage.StaleAfter)
}

// failedChecks returns the names of the checks of healthz that failed, from its verbose output.
func failedChecks(body string) []string {
	var names []string
	for line := range strings.Lines(body) {
		if failed, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(failed, " ")
			names = append(names, name)
		}
	}
	return names
}
