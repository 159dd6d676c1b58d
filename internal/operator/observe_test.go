package operator

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// methods counts the requests that are sent with a configuration, by method.
type methods struct {
	mu    sync.Mutex
	count map[string]int
}

func (m *methods) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		m.mu.Lock()
		m.count[r.Method]++
		m.mu.Unlock()
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func observe(t *testing.T) (*table.Snapshot, *capacity.Copy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), test.Timeout)
	defer cancel()
	sent := methods{count: map[string]int{}}
	config := rest.CopyConfig(kubetest.Cluster(t).Config)
	config.Wrap(sent.wrap)
	snapshot, content, err := Observe(ctx, config, namespaceOf(nil))
	test.Must(t, err)
	delete(sent.count, http.MethodGet)
	if len(sent.count) > 0 {
		t.Errorf("besides reads there were %v", sent.count)
	}
	return snapshot, content
}

func TestAnObserverSeesWhatTheLeaderPublishesAndWritesNothing(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "20", "memory", "100Gi", "pods", "500")
	kubetest.Create(t, classGold())
	o := startOperator(t)
	rome := newTenancy(t, "rome")
	newTenancy(t, "oslo")
	awaitAnswer(t, rome.ask("a", nodestest.List("cpu", "12")), "Accepted Incomplete cpu=12")
	o.awaitCaughtUp()

	published := o.table.Current()
	snapshot, content := observe(t)
	if diff := cmp.Diff(amountsOf(published), amountsOf(snapshot)); diff != "" {
		t.Errorf("offers, -published +observed:\n%s", diff)
	}
	if n := len(content.Nodes); n != 2 { // One is the mark of awaitCaughtUp.
		t.Errorf("%d nodes, want 2", n)
	}

	o.stop()
	test.Eventually(t, func() string { // The ended leader has left its grants on record.
		alone, _ := observe(t)
		return cmp.Diff(amountsOf(published), amountsOf(alone))
	})
}

func TestAnObserverAnswersSlicesThatNobodyHasAnsweredYet(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "20", "memory", "100Gi", "pods", "500")
	kubetest.Create(t, classGold())
	newTenancy(t, "rome").ask("a", nodestest.List("cpu", "12"))
	newTenancy(t, "oslo")

	snapshot, content := observe(t)
	world := rehearse.Of(snapshot, content)
	outcome := rehearse.Rehearse(&world, &rehearse.Change{}, func() bool { return false })
	got := map[string]capacity.Amounts{}
	for class, byConsumer := range outcome.With.Slices.Granted() {
		for id, amounts := range byConsumer {
			got[class+"/"+id] = amounts
		}
	}
	if diff := cmp.Diff(map[string]capacity.Amounts{"gold/rome": {"cpu": 12_000}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnObserverGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Observe(ctx, rest.CopyConfig(kubetest.Cluster(t).Config), namespaceOf(nil))
	if !errors.Is(err, ErrNotObserved) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// amountsOf returns what each consumer is offered, by class and resource.
func amountsOf(s *table.Snapshot) map[string]map[string]capacity.Amounts {
	out := map[string]map[string]capacity.Amounts{}
	for id, entry := range s.Entries.All {
		out[id] = map[string]capacity.Amounts{}
		for _, o := range entry.Offers {
			amounts := capacity.Amounts{}
			for _, a := range o.Amounts {
				amounts[a.Resource] = a.Value
			}
			out[id][o.Class] = amounts
		}
	}
	return out
}
