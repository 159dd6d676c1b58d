package command

import (
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"proffer.dev/proffer/test"
)

// arrivals records when each version of a slice arrived. It watches only metadata: reading slices
// that the hostile consumer has stuffed takes seconds, by which a watch of whole slices falls
// behind.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Duration
}

func newArrivals(t *testing.T, config *rest.Config, now func() time.Duration) *arrivals {
	t.Helper()
	api, err := metadata.NewForConfig(config)
	test.Must(t, err)
	all := api.Resource(authv1beta1.ResourceSliceGroupVersionResource)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	test.Must(t, err)
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: all.Watch,
	})
	test.Must(t, err)
	a := &arrivals{at: map[string]time.Duration{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range w.ResultChan() {
			a.note(e, now())
		}
	})
	t.Cleanup(wg.Wait)
	return a
}

func (a *arrivals) note(e watch.Event, at time.Duration) {
	object, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return // The watch of whole slices reports the error.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[object.ResourceVersion] = at
}

// of returns when a version arrived, at the latest when it was read.
func (a *arrivals) of(version string, read time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, known := a.at[version]; known {
		return min(at, read)
	}
	return read
}
