package nodes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
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

// requests are what clients have asked of the API server. They may ask in another way than they do.
type requests struct {
	change func(*http.Request)
	mu     sync.Mutex
	made   []string
}

// through is a transport whose requests are counted.
type through struct {
	*requests
	next http.RoundTripper
}

func (r through) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.made = append(r.made, request.URL.String())
	r.mu.Unlock()
	if r.change != nil {
		r.change(request)
	}
	return r.next.RoundTrip(request)
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

func startWatch(t *testing.T, config *rest.Config, change func(*http.Request)) *watching {
	t.Helper()
	w := &watching{t: t, ledger: capacity.NewLedger(), woken: make(chan struct{}, 1), requests: &requests{change: change}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return through{w.requests, next} })
	watch, err := New(config, w.ledger, func() {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	w.Watch = watch
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
			objects.pod(aPod("unbound", "", list("cpu", "1")))
			finishes := objects.pod(aPod("finishes", "n", list("cpu", "2")))

			w := startWatch(t, cluster.Config, tc.change)
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

// spoken is an API server in front of a real one. It tells over which protocol each list and watch of pods came, and says once to a watch that it is
// too late.
type spoken struct {
	http.Handler
	lists, watches chan string
	late           sync.Once
}

func (s *spoken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/pods" {
		s.Handler.ServeHTTP(w, r)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		s.lists <- r.Proto
		s.Handler.ServeHTTP(w, r)
		return
	}
	s.watches <- r.Proto
	tooLate := false
	s.late.Do(func() { tooLate = true })
	if !tooLate {
		s.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_ = json.NewEncoder(w).Encode(apierrors.NewResourceExpired("too late").Status())
}

func TestOnlyTheFirstListComesOverHTTP1(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	transport, err := rest.TransportFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		speaks []string
		lists  []string
	}{
		"an API server like any other":            {[]string{"h2", "http/1.1"}, []string{"HTTP/1.1", "HTTP/2.0"}},
		"an API server that speaks HTTP/2 only":   {[]string{"h2"}, []string{"HTTP/2.0", "HTTP/2.0"}},
		"an API server that speaks HTTP/1.1 only": {[]string{"http/1.1"}, []string{"HTTP/1.1", "HTTP/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			front := &spoken{
				Handler: &httputil.ReverseProxy{
					Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, Transport: transport, FlushInterval: -1,
					ErrorLog: log.New(io.Discard, "", 0),
				},
				lists: make(chan string, 100), watches: make(chan string, 100),
			}
			server := httptest.NewUnstartedServer(front)
			server.EnableHTTP2 = slices.Contains(tc.speaks, "h2")
			// A server of net/http speaks HTTP/1.1 with whoever asks for nothing else.
			server.TLS = &tls.Config{VerifyConnection: func(s tls.ConnectionState) error {
				if s.NegotiatedProtocol != "h2" && !slices.Contains(tc.speaks, "http/1.1") {
					return errors.New("spoken to in HTTP/1.1")
				}
				return nil
			}}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			startWatch(t, config, nil).synced(0)
			last := tc.lists[len(tc.lists)-1]
			for i, want := range tc.lists {
				if got := next(t, front.lists); got != want {
					t.Errorf("list %d came over %s, want %s", i+1, got, want)
				}
				if got := next(t, front.watches); got != last {
					t.Errorf("watch %d came over %s, want %s", i+1, got, last)
				}
			}
		})
	}
}

func next(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatal("nothing came")
		return ""
	}
}

// What a pod's owner writes decides nothing: a shadow is known by its node.
func TestWhetherAPodCountsIsDecidedByItsNode(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	objects, shadow := objects{t, api}, podLabel("liqo.io/shadowPod", "true")
	rome := podLabel(OriginLabel, "rome")
	objects.node(aNode("n", list("cpu", "8")))
	objects.node(aNode("virtual", list("cpu", "100"), nodeLabel(NodeTypeLabel, NodeTypeVirtual)))
	objects.pod(aPod("hides", "n", list("cpu", "1"), shadow))
	objects.pod(aPod("hides-of-rome", "n", list("cpu", "2"), shadow, rome, podLabel(CreatorLabel, "slice-1")))
	objects.pod(aPod("shadow", "virtual", list("cpu", "16"), shadow))
	objects.pod(aPod("of-rome-elsewhere", "virtual", list("cpu", "16"), shadow, rome, podLabel(CreatorLabel, "slice-1")))
	w := startWatch(t, cluster.Config, nil)
	w.synced(7000)
	rowOf := func() (everywhere, creator int64) {
		v := w.ledger.View([]capacity.Selection{{}})
		c := slices.Index(v.Columns, capacity.CPU)
		return v.Used.Of("rome").In(0).At(c), v.Used.Of("rome").By("slice-1").At(c)
	}
	if everywhere, creator := rowOf(); everywhere != 2000 || creator != 2000 {
		t.Errorf("rome uses %d, and its slice %d, want 2000", everywhere, creator)
	}
	// The pods come before their node is known, and both after all has been seen.
	objects.pod(aPod("early-shadow", "late-virtual", list("cpu", "16"), shadow))
	objects.pod(aPod("early", "late", list("cpu", "3"), shadow))
	objects.node(aNode("late-virtual", list("cpu", "100"), nodeLabel(NodeTypeLabel, NodeTypeVirtual)))
	objects.node(aNode("late", list("cpu", "4")))
	w.settles(8000)
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
	err := o.api.CoreV1().
		Pods(p.Namespace).
		Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if !apierrors.IsNotFound(err) {
		o.check(err)
	}
}
