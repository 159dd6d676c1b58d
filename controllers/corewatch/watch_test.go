package corewatch

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
)

// patience is for what takes milliseconds on a machine that has nothing else to do.
const patience = time.Minute

// requests are what a client has asked of the API server. It may ask in another way than the client does.
type requests struct {
	http.RoundTripper
	change func(*http.Request)
	mu     sync.Mutex
	made   []string
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.made = append(r.made, request.URL.String())
	r.mu.Unlock()
	if r.change != nil {
		r.change(request)
	}
	return r.RoundTripper.RoundTrip(request)
}

// with counts the requests that hold the text in their URL.
func (r *requests) with(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, url := range r.made {
		if strings.Contains(url, text) {
			n++
		}
	}
	return n
}

// watching runs a Watch of the cluster until the test ends.
type watching struct {
	*Watch
	t        *testing.T
	ledger   *capacity.Ledger
	woken    chan struct{}
	requests *requests
	sources  []<-chan struct{}
}

func startWatch(t *testing.T, config *rest.Config, pause time.Duration, change func(*http.Request)) *watching {
	t.Helper()
	w := &watching{t: t, ledger: capacity.NewLedger(), woken: make(chan struct{}, 1), requests: &requests{change: change}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.requests.RoundTripper = next
		return w.requests
	})
	watch, err := New(config, w.ledger, pause, func() {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	w.Watch = watch
	for _, k := range watch.kinds {
		k.gathering.pause = pause // a test may want one that only it ends
	}
	for _, s := range watch.Sources() {
		w.sources = append(w.sources, s.Done())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := watch.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// synced waits until all has been seen once, and then wants so much free.
func (w *watching) synced(milli int64) {
	w.t.Helper()
	for _, s := range w.sources {
		select {
		case <-s:
		case <-time.After(patience):
			w.t.Fatal("not all was seen")
		}
	}
	if got := free(w.ledger); got != milli {
		w.t.Fatalf("%d milli are free when all has been seen, want %d", got, milli)
	}
}

// settles waits until so much is free, looking again each time that the ledger has changed.
func (w *watching) settles(milli int64) {
	w.t.Helper()
	late := time.After(patience)
	for {
		if free(w.ledger) == milli {
			return
		}
		select {
		case <-w.woken:
		case <-late:
			w.t.Fatalf("%d milli are free, want %d", free(w.ledger), milli)
		}
	}
}

func TestTheLedgerFollowsARealAPIServer(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"in protobuf", nil},
		{"in JSON", func(r *http.Request) { r.Header.Set("Accept", "application/json") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := objects{t, api}
			objects.node(aNode("n", list("cpu", "8")))
			objects.pod(aPod("kept", "n", list("cpu", "1")))
			objects.pod(aPod("done", "n", list("cpu", "1"), phase(corev1.PodSucceeded)))
			objects.pod(aPod("shadow", "n", list("cpu", "1"), podLabel(ShadowPodLabel, "true")))
			objects.pod(aPod("unbound", "", list("cpu", "1")))
			finishes := objects.pod(aPod("finishes", "n", list("cpu", "2")))

			w := startWatch(t, cluster.Config, time.Millisecond, tc.change)
			w.synced(5000)
			objects.finish(finishes)
			w.settles(7000)
			comes := objects.pod(aPod("comes", "n", list("cpu", "3")))
			w.settles(4000)
			objects.node(aNode("m", list("cpu", "4")))
			w.settles(8000)
			objects.remove(comes)
			w.settles(11000)

			// Two kinds, each with one request for what there is and one to follow what changes.
			if got := w.requests.with("watch=true"); got != 2 || w.requests.with("/api/v1/") != 4 {
				t.Errorf("%d requests, %d of them to watch", w.requests.with("/api/v1/"), got)
			}
		})
	}
}

func TestWhatComesInAPauseIsReadAtItsEnd(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	objects := objects{t, api}
	objects.node(aNode("n", list("cpu", "8")))
	w := startWatch(t, cluster.Config, time.Hour, nil)
	w.synced(8000)
	beside, err := api.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	objects.check(err)
	defer beside.Stop()

	objects.pod(aPod("first", "n", list("cpu", "1")))
	w.settles(7000)
	second := objects.pod(aPod("second", "n", list("cpu", "2")))
	for event := range beside.ResultChan() {
		if p, ok := event.Object.(*corev1.Pod); ok && p.UID == second.UID {
			break
		}
	}
	if got := free(w.ledger); runtime.GOOS == "linux" && got != 7000 {
		t.Errorf("%d milli are free in a pause, want 7000 as before", got)
	}
	w.Hurry()
	w.settles(5000)
}

// objects makes nodes and pods that go when the test ends.
type objects struct {
	t   *testing.T
	api kubernetes.Interface
}

func (o objects) check(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o objects) node(n *corev1.Node) {
	o.t.Helper()
	nodes := o.api.CoreV1().Nodes()
	made, err := nodes.Create(o.t.Context(), n, metav1.CreateOptions{})
	o.check(err)
	o.t.Cleanup(func() { o.check(nodes.Delete(context.Background(), n.Name, metav1.DeleteOptions{})) })
	made.Spec.Taints = nil // The API server taints each new node as not ready.
	made, err = nodes.Update(o.t.Context(), made, metav1.UpdateOptions{})
	o.check(err)
	made.Status = n.Status
	_, err = nodes.UpdateStatus(o.t.Context(), made, metav1.UpdateOptions{})
	o.check(err)
}

func (o objects) pod(p *corev1.Pod) *corev1.Pod {
	o.t.Helper()
	made, err := o.api.CoreV1().Pods(p.Namespace).Create(o.t.Context(), p, metav1.CreateOptions{})
	o.check(err)
	o.t.Cleanup(func() { o.remove(made) })
	made.Status = p.Status
	return o.status(made)
}

func (o objects) finish(p *corev1.Pod) {
	o.t.Helper()
	p.Status.Phase = corev1.PodSucceeded
	o.status(p)
}

func (o objects) status(p *corev1.Pod) *corev1.Pod {
	o.t.Helper()
	if p.Status.Phase == "" {
		return p
	}
	p, err := o.api.CoreV1().Pods(p.Namespace).UpdateStatus(o.t.Context(), p, metav1.UpdateOptions{})
	o.check(err)
	return p
}

// remove deletes a pod at once; one that is gone already is no error.
func (o objects) remove(p *corev1.Pod) {
	o.t.Helper()
	err := o.api.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if !apierrors.IsNotFound(err) {
		o.check(err)
	}
}
