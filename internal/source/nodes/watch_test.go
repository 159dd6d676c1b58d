package nodes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
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
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
)

// waitTimeout bounds waits for events that take milliseconds on an idle machine.
const waitTimeout = time.Minute

// requests records the requests that clients send to the API server.
type requests struct {
	// change modifies each request before it is sent. It may be nil.
	change func(*http.Request)
	mu     sync.Mutex
	made   []string
}

// recordingTransport records the requests that it sends.
type recordingTransport struct {
	*requests
	next http.RoundTripper
}

func (r recordingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.made = append(r.made, request.URL.String())
	r.mu.Unlock()
	if r.change != nil {
		r.change(request)
	}
	return r.next.RoundTrip(request)
}

// with counts the requests whose URL contains the text.
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

// runningWatch is a Watch of the cluster that runs until the test ends.
type runningWatch struct {
	*Watch
	t        *testing.T
	ledger   *capacity.Ledger
	woken    chan struct{}
	requests *requests
	sources  []<-chan struct{}
}

func startWatch(t *testing.T, config *rest.Config, change func(*http.Request)) *runningWatch {
	t.Helper()
	w := &runningWatch{t: t, ledger: capacity.NewLedger(), woken: make(chan struct{}, 1), requests: &requests{change: change}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recordingTransport{w.requests, next} })
	watch, err := New(config, w.ledger, 0, func() {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}, logr.Discard())
	test.Must(t, err)
	w.Watch = watch
	for _, s := range watch.Sources() {
		w.sources = append(w.sources, s.Done())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		test.Check(t, watch.Start(ctx))
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// synced waits until every object has been seen once, and then checks the free cpu.
func (w *runningWatch) synced(milli int64) {
	w.t.Helper()
	for _, s := range w.sources {
		select {
		case <-s:
		case <-time.After(waitTimeout):
			w.t.Fatal("timed out waiting for the first lists")
		}
	}
	if got := free(w.ledger); got != milli {
		w.t.Fatalf("free cpu %d after the first lists, want %d", got, milli)
	}
}

// settles waits until this much cpu is free.
func (w *runningWatch) settles(milli int64) {
	w.t.Helper()
	w.await(func() bool { return free(w.ledger) == milli })
}

// await waits until the ledger is as wanted. It checks again after each change of the ledger.
func (w *runningWatch) await(wanted func() bool) {
	w.t.Helper()
	late := time.After(waitTimeout)
	for !wanted() {
		select {
		case <-w.woken:
		case <-late:
			w.t.Fatalf("free cpu %d, used %v", free(w.ledger), maps.Collect(w.ledger.View([]capacity.Selection{{}}).Used.All))
		}
	}
}

func TestTheLedgerFollowsARealAPIServer(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
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

			// Each of the two kinds needs one list and one watch.
			if got := w.requests.with("watch=true"); got != 2 || w.requests.with("/api/v1/") != 4 {
				t.Errorf("%d requests, %d of them watches; want 4 and 2", w.requests.with("/api/v1/"), got)
			}
		})
	}
}

// protocolRecorder is a proxy in front of an API server. It reports the protocol of each list and
// watch of pods, and answers the first watch with 410 Gone.
type protocolRecorder struct {
	http.Handler
	lists, watches chan string
	gone           sync.Once
}

func (s *protocolRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	first := false
	s.gone.Do(func() { first = true })
	if !first {
		s.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_ = json.NewEncoder(w).Encode(apierrors.NewResourceExpired("too old").Status())
}

func TestOnlyTheFirstListComesOverHTTP1(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	transport, err := rest.TransportFor(cluster.Config)
	test.Must(t, err)
	behind, err := url.Parse(cluster.Config.Host)
	test.Must(t, err)
	for name, tc := range map[string]struct {
		speaks []string
		lists  []string
	}{
		"an API server that speaks both":          {[]string{"h2", "http/1.1"}, []string{"HTTP/1.1", "HTTP/2.0"}},
		"an API server that speaks HTTP/2 only":   {[]string{"h2"}, []string{"HTTP/2.0", "HTTP/2.0"}},
		"an API server that speaks HTTP/1.1 only": {[]string{"http/1.1"}, []string{"HTTP/1.1", "HTTP/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			front := &protocolRecorder{
				Handler: &httputil.ReverseProxy{
					Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, Transport: transport, FlushInterval: -1,
					ErrorLog: log.New(io.Discard, "", 0),
				},
				lists: make(chan string, 100), watches: make(chan string, 100),
			}
			server := httptest.NewUnstartedServer(front)
			server.EnableHTTP2 = slices.Contains(tc.speaks, "h2")
			// A net/http server falls back to HTTP/1.1, so this one refuses it in the handshake.
			server.TLS = &tls.Config{VerifyConnection: func(s tls.ConnectionState) error {
				if s.NegotiatedProtocol != "h2" && !slices.Contains(tc.speaks, "http/1.1") {
					return errors.New("the client speaks HTTP/1.1")
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
					t.Errorf("list %d was requested over %s, want %s", i+1, got, want)
				}
				if got := next(t, front.watches); got != last {
					t.Errorf("watch %d was requested over %s, want %s", i+1, got, last)
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
	case <-time.After(waitTimeout):
		t.Fatal("timed out waiting for a request")
		return ""
	}
}

// The labels of a pod do not matter, because its owner can set them.
func TestTheNodeOfAPodDecidesWhetherItCounts(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
	objects, shadow := objects{t, api}, podLabel("liqo.io/shadowPod", "true")
	rome := podLabel(liqo.OriginLabel, "rome")
	objects.node(aNode("n", list("cpu", "8")))
	objects.node(aNode("virtual", list("cpu", "100"), nodeLabel(liqo.NodeTypeLabel, liqo.VirtualNodeType)))
	objects.pod(aPod("hides", "n", list("cpu", "1"), shadow))
	objects.pod(aPod("hides-of-rome", "n", list("cpu", "2"), shadow, rome, podLabel(liqo.CreatorLabel, "slice-1")))
	objects.pod(aPod("shadow", "virtual", list("cpu", "16"), shadow))
	objects.pod(aPod("of-rome-elsewhere", "virtual", list("cpu", "16"), shadow, rome, podLabel(liqo.CreatorLabel, "slice-1")))
	objects.pod(aPod("waits", "", list("cpu", "3"), rome, podLabel(liqo.CreatorLabel, "slice-1")))
	w := startWatch(t, cluster.Config, nil)
	w.synced(7000)
	uses := func() [2]int64 {
		v := w.ledger.View([]capacity.Selection{{}})
		c := slices.Index(v.Columns, capacity.CPU)
		return [2]int64{v.Used.Of("rome").In(0).At(c), v.Used.Of("rome").By("slice-1").At(c)}
	}
	if got := uses(); got != [2]int64{2000, 5000} {
		t.Errorf("on nodes and for its slice rome uses %d, want 2000 and 5000", got)
	}
	comes := objects.pod(aPod("waits-too", "", list("cpu", "1"), rome, podLabel(liqo.CreatorLabel, "slice-1")))
	w.await(func() bool { return uses() == [2]int64{2000, 6000} })
	objects.bind(comes, "n")
	w.await(func() bool { return uses() == [2]int64{3000, 6000} })
	objects.remove(comes)
	w.await(func() bool { return uses() == [2]int64{2000, 5000} })
	// These pods are created before their nodes, after the first lists.
	objects.pod(aPod("early-shadow", "late-virtual", list("cpu", "16"), shadow))
	objects.pod(aPod("early", "late", list("cpu", "3"), shadow))
	objects.node(aNode("late-virtual", list("cpu", "100"), nodeLabel(liqo.NodeTypeLabel, liqo.VirtualNodeType)))
	objects.node(aNode("late", list("cpu", "4")))
	w.settles(8000)
}

// TestADeadNodeAndItsPodsCountAsTheSchedulerCountsThem until they are gone, however long nobody ends them.
func TestADeadNodeAndItsPodsCountAsTheSchedulerCountsThem(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	api, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
	objects := objects{t, api}
	held := aNode("held", list("cpu", "8", "pods", "2"), func(n *corev1.Node) { n.Finalizers = []string{"example.com/drain"} })
	objects.node(held)
	objects.node(aNode("n", list("cpu", "4")))
	objects.pod(aPod("local", "held", list("cpu", "1")))
	of := objects.pod(aPod("of-rome", "held", list("cpu", "2"), podLabel(liqo.OriginLabel, "rome")))
	w := startWatch(t, cluster.Config, nil)
	w.synced(6000) // The node takes no more pods: of its 7 cpu the 2 that rome uses count.
	pods, nodes := api.CoreV1().Pods(of.Namespace), api.CoreV1().Nodes()
	test.Must(t, pods.Delete(t.Context(), of.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(30))}))
	objects.pod(aPod("later", "n", list("cpu", "1")))
	w.settles(5000)
	if got := usedBy(w.ledger, "rome"); got != 2000 {
		t.Errorf("rome uses %d while its pod is being deleted, want 2000", got)
	}

	test.Must(t, nodes.Delete(t.Context(), held.Name, metav1.DeleteOptions{}))
	w.settles(3000)
	if got := usedBy(w.ledger, "rome"); got != 2000 {
		t.Errorf("rome uses %d on a node that is being deleted, want 2000", got)
	}
	objects.remove(of)
	w.await(func() bool { return usedBy(w.ledger, "rome") == 0 })
	kept, err := nodes.Get(t.Context(), held.Name, metav1.GetOptions{})
	test.Must(t, err)
	kept.Finalizers = nil
	_, err = nodes.Update(t.Context(), kept, metav1.UpdateOptions{})
	test.Must(t, err)
	w.await(func() bool { _, known := w.ledger.Node(held.Name); return !known })
}

// usedBy returns the cpu that a consumer's pods request.
func usedBy(l *capacity.Ledger, consumer string) int64 {
	use := l.View([]capacity.Selection{{}}).Used.Of(consumer)
	if use == nil {
		return 0
	}
	return use.Everywhere.At(0) // cpu is the first column.
}

// objects creates nodes and pods, and deletes them when the test ends.
type objects struct {
	t   *testing.T
	api kubernetes.Interface
}

func (o objects) check(err error) {
	o.t.Helper()
	test.Must(o.t, err)
}

func (o objects) node(n *corev1.Node) {
	o.t.Helper()
	nodes := o.api.CoreV1().Nodes()
	made, err := nodes.Create(o.t.Context(), n, metav1.CreateOptions{})
	o.check(err)
	o.t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), n.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			o.check(err)
		}
	})
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

func (o objects) bind(p *corev1.Pod, node string) {
	o.t.Helper()
	o.check(o.api.CoreV1().Pods(p.Namespace).Bind(o.t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
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

// remove deletes a pod without a grace period. It is no error if the pod is already gone.
func (o objects) remove(p *corev1.Pod) {
	o.t.Helper()
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	err := o.api.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, options)
	if !apierrors.IsNotFound(err) {
		o.check(err)
	}
}
