package federation

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
	"proffer.dev/proffer/test/providertest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// createWithStatus creates an object, and then writes its status, as Liqo does.
func createWithStatus(t testing.TB, u *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	kubetest.Create(t, u)
	u.Object["status"] = status
	test.Must(t, kubetest.WriteStatus(t.Context(), kubetest.API(t), u))
	return u
}

// keepCRDs installs what Liqo keeps of a provider.
func keepCRDs(t testing.TB) {
	t.Helper()
	for _, file := range providertest.CRDs {
		kubetest.Keep(t, controlplane.LiqoCRD(t, file))
	}
}

// peer makes the peering with a provider.
func peer(t testing.TB, id string, p *providertest.Provider) *unstructured.Unstructured {
	t.Helper()
	keepCRDs(t)
	return p.Peer(t, kubetest.API(t), id)
}

// startSource runs a source of this cluster until the test ends.
func startSource(t testing.TB) *Source {
	t.Helper()
	keepCRDs(t)
	s := newSource(t)
	run(t, s)
	return s
}

func newSource(t testing.TB) *Source {
	t.Helper()
	config := kubetest.Cluster(t).Config
	objects, err := dynamic.NewForConfig(config)
	test.Must(t, err)
	secrets, err := corev1client.NewForConfig(config)
	test.Must(t, err)
	return New(objects, secrets, logr.Discard())
}

// run runs a source until the test ends.
func run(t testing.TB, s *Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// of returns what a source knows of a provider, nil if it does not know it.
func of(s *Source, id string, now time.Time) *rest.FederationProvider {
	all := s.Federation(now).Providers
	if i := slices.IndexFunc(all, func(p rest.FederationProvider) bool { return p.ClusterID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// offersOf are those of a provider at this time.
func offersOf(now time.Time) []v1alpha1.Offer { return operatortest.ProviderOffers(now) }

func TestAChangeIsSeenLongBeforeTheNextPeriod(t *testing.T) {
	now := time.Now()
	milan := providertest.New(t, nil, offersOf(now)...)
	s := startSource(t)
	id := peer(t, "milan", milan)
	test.Eventually(t, func() string {
		if p := of(s, "milan", now); p == nil || !p.Publishes || len(p.Offers) != 3 || p.ReadTime == nil || len(p.Problems) > 0 {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	changed := offersOf(now)[:1]
	changed[0].Status.Prices["cpu"] = "0.5"
	milan.Publish(changed...)
	test.Eventually(t, func() string {
		if p := of(s, "milan", now); len(p.Offers) != 1 || p.Offers[0].Prices["cpu"] != "0.5" {
			return fmt.Sprintf("%+v", p.Offers)
		}
		return ""
	})
	if n := milan.Lists(); n != 2 {
		t.Errorf("it is read %d times, want 2", n)
	}
	kubetest.Remove(t, id)
	test.Eventually(t, func() string {
		if p := of(s, "milan", now); p != nil {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
}

// hostiles are the ways in which a provider answers that harms itself, and what is said of it.
func hostiles(t testing.TB) map[string]struct {
	serve http.HandlerFunc
	want  string
} {
	many, err := json.Marshal(offersOf(time.Now())[0])
	test.Must(t, err)
	return map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
		}, "it answers 302, a redirect, which is not followed"},
		"forbids": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "it publishes no catalog to this cluster"},
		"long": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items": [{"a": "`)
			for range 10 << 10 {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<10))
			}
		}, "its answer has more than 4 MiB"},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\x1b]0;title\a") }, "its answer is not a list of Offers"},
		"many": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items": [`+strings.Repeat(string(many)+",", 10_000)+string(many)+"]}")
		}, "it has more than 200 Offers, and the others are left out"},
		"huge-header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, "it cannot be reached"},
	}
}

func TestAHostileProviderHarmsItself(t *testing.T) {
	now := time.Now()
	peer(t, "paris", providertest.New(t, nil, offersOf(now)...))
	for name, h := range hostiles(t) {
		peer(t, name, providertest.New(t, h.serve))
	}
	s := startSource(t)
	test.Eventually(t, func() string {
		if p := of(s, "paris", now); p == nil || len(p.Offers) != 3 || len(p.Problems) > 0 {
			return fmt.Sprintf("%+v", p)
		}
		for name, h := range hostiles(t) {
			p := of(s, name, now)
			if p == nil || len(p.Problems) == 0 || !strings.Contains(p.Problems[len(p.Problems)-1], h.want) ||
				strings.ContainsFunc(p.Problems[0], dangerous) || len(p.Offers) > 1 {
				return fmt.Sprintf("%s: %+v, want %s", name, p, h.want)
			}
		}
		return ""
	})
}

// Of a hundred providers five hang, after their headers or before, and five announce changes all the time.
func TestAHundredProvidersAreReadInTimeAndFitIntoTheMemory(t *testing.T) {
	now := time.Now()
	hang := func(w http.ResponseWriter, r *http.Request) {
		if !providertest.Watches(r) {
			_, _ = io.WriteString(w, `{"items": [`)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
	list, err := json.Marshal(v1alpha1.OfferList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: offersOf(now)})
	test.Must(t, err)
	flood := func(w http.ResponseWriter, r *http.Request) {
		if !providertest.Watches(r) {
			_, _ = w.Write(list)
			return
		}
		_, _ = io.WriteString(w, `{"type":"MODIFIED"}`)
	}
	var honest []string
	var flooding []*providertest.Provider
	for i := range 100 {
		id := fmt.Sprintf("p%02d", i)
		switch {
		case i < 5:
			peer(t, id, providertest.New(t, hang))
		case i < 10:
			flooding = append(flooding, providertest.New(t, flood))
			peer(t, id, flooding[i-5])
		default:
			honest = append(honest, id)
			peer(t, id, providertest.New(t, nil, offersOf(now)...))
		}
	}
	before := heap()
	s := startSource(t)
	test.Eventually(t, func() string {
		for _, id := range honest {
			if p := of(s, id, now); p == nil || len(p.Offers) != 3 {
				return fmt.Sprintf("%s: %+v", id, p)
			}
		}
		if p := of(s, "p00", now); p == nil || len(p.Problems) == 0 || p.Problems[0] != "it does not answer within 10s" || p.ReadTime != nil {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	if took := heap() - before; took > 64<<20 {
		t.Errorf("they take %d MiB", took>>20)
	}
	for _, p := range flooding {
		if n := p.Lists(); n > changeBurst+1+int(time.Since(now)/changePeriod) {
			t.Errorf("one that floods is read %d times in %s", n, time.Since(now))
		}
	}
}

// A stream of empty files in the format of gzip has no end and no bytes.
func TestACompressedAnnouncementIsNotExpanded(t *testing.T) {
	var empty bytes.Buffer
	test.Must(t, gzip.NewWriter(&empty).Close())
	p := providertest.New(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		for {
			if _, err := w.Write(empty.Bytes()); err != nil {
				return
			}
		}
	})
	c, err := connect(p.Kubeconfig(t), "rome")
	test.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if !c.awaitChange(ctx, "7") {
		t.Error("it is expanded until the time is over")
	}
}

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestOffersStayAfterAnErrorAndExpire(t *testing.T) {
	s := New(nil, nil, logr.Discard())
	expect := func(when string, publishes bool, offers int, expired bool, problems ...string) {
		t.Helper()
		at := noon
		if expired {
			at = noon.Add(time.Hour)
		}
		p := of(s, "milan", at)
		if p == nil || p.Publishes != publishes || len(p.Offers) != offers || !cmp.Equal(p.Problems, problems) {
			t.Fatalf("%s: %+v", when, p)
		}
		for _, o := range p.Offers {
			if o.Expired != expired {
				t.Errorf("%s: %s is expired: %v", when, o.Class, o.Expired)
			}
		}
	}
	var items []any
	for _, o := range offersOf(noon) {
		items = append(items, o)
	}
	read, err := readFrom(t, items...)
	test.Must(t, err)
	s.note(t.Context(), "milan", Reading{}, errors.New("it does not answer"))
	expect("never read", false, 0, false, "it does not answer")
	s.note(t.Context(), "milan", read, nil)
	expect("read", true, 3, false)
	s.note(t.Context(), "milan", Reading{}, errors.New("it does not answer"))
	expect("not read again", true, 3, false, "it does not answer")
	expect("an hour later", true, 3, true, "it does not answer")
	for i := range read.Offers {
		read.Offers[i].ValidUntil.Time = noon.AddDate(1000, 0, 0)
	}
	s.note(t.Context(), "milan", read, nil)
	for _, o := range of(s, "milan", time.Now().Add(maxUnread+time.Minute)).Offers {
		if !o.Expired {
			t.Errorf("%s is not expired, and was not read for %v", o.Class, maxUnread)
		}
	}
	s.note(t.Context(), "milan", Reading{}, errNotPublished)
	expect("published no more", false, 0, false, errNotPublished.Error())
	s.keep([]Identity{{Provider: "paris"}}, []Identity{{Provider: "zurich"}})
	ended, end := context.WithCancel(t.Context())
	end()
	s.note(ended, "milan", read, nil) // The reading was under way.
	if p := of(s, "milan", noon); p != nil {
		t.Errorf("it is remembered: %+v", p)
	}
	if p := of(s, "zurich", noon); p == nil || !cmp.Equal(p.Problems, []string{"it is not read: only the first 256 identities are"}) {
		t.Errorf("one that is not read: %+v", p)
	}
}

// noSecrets are the Secrets of a cluster without any.
type noSecrets struct {
	corev1client.SecretInterface
	mu sync.Mutex
	// read are the names of those that were asked for.
	read []string
}

func (s *noSecrets) Secrets(string) corev1client.SecretInterface { return s }

func (s *noSecrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, name)
	return nil, errors.New("there is none")
}

func TestAnIdentityThatChangesAllTheTimeIsReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := &noSecrets{}
		s := New(nil, secrets, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.followAll(ctx) })
		for i := range 1000 { // In 10 seconds.
			u := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"namespace": "liqo-tenant-milan", "name": "controlplane-milan", "uid": "u"},
				"spec":     map[string]any{"clusterID": "milan", "type": controlPlane},
				"status":   map[string]any{"kubeconfigSecretRef": map[string]any{"name": fmt.Sprintf("s-%d", i)}},
			}}
			if s.peerings.ids.Set(u) {
				s.wake()
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
		}
		time.Sleep(lookPeriod) //nolint:forbidigo // the clock of the bubble
		cancel()
		running.Wait()
		if n := len(secrets.read); n == 0 || n > lookBurst+4 || secrets.read[n-1] != "s-999" {
			t.Errorf("in 10 seconds its Secrets are read: %q", secrets.read)
		}
	})
}

func TestWhatLiqoKnowsOfAProviderIsShown(t *testing.T) {
	s := startSource(t)
	createWithStatus(t, kubetest.ForeignCluster(t, "oslo", "oslo", nil), map[string]any{
		"role": "Provider", "apiServerUrl": "https://192.0.2.1:6443",
		"tenantNamespace": map[string]any{},
		"conditions":      []any{map[string]any{"type": "APIServerStatus", "status": "Established"}},
		"modules": map[string]any{
			"networking":     map[string]any{"enabled": true, "conditions": []any{map[string]any{"type": "NetworkConnectionStatus", "status": "Error"}}},
			"authentication": map[string]any{"enabled": true}, "offloading": map[string]any{"enabled": false},
		},
	})
	kubetest.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode",
		"metadata": map[string]any{"namespace": "default", "name": "oslo-gold"}, "spec": map[string]any{"clusterID": "oslo"},
	}})
	want := rest.FederationProvider{
		ClusterID: "oslo", Offers: []rest.FederationOffer{}, Liqo: &rest.FederationPeering{
			APIServer: "https://192.0.2.1:6443", Modules: []string{"authentication", "networking"},
			Conditions:   map[string]string{"APIServerStatus": "Established", "NetworkConnectionStatus": "Error"},
			VirtualNodes: []string{"oslo-gold"},
		},
	}
	test.Eventually(t, func() string {
		p := of(s, "oslo", noon)
		if p == nil {
			return "it is not known"
		}
		return cmp.Diff(want, *p)
	})
}

// ourSlice creates a ResourceSlice of this cluster that a provider has answered.
func ourSlice(t testing.TB, namespace, name, provider, class, answer string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"liqo.io/replication": "true"}},
		"spec":     map[string]any{"class": class, "providerClusterID": provider},
	}}
	return createWithStatus(t, u, map[string]any{"conditions": []any{map[string]any{
		"type": "Resources", "status": answer, "lastTransitionTime": "2026-11-25T10:00:00Z", "reason": "r", "message": "m",
	}}})
}

func TestOursAreTheOffersOfTheClassesThatWeHave(t *testing.T) {
	now := time.Now()
	milan, oslo := providertest.New(t, nil, offersOf(now)...), providertest.New(t, nil, offersOf(now)...)
	peer(t, "milan", milan)
	peer(t, "oslo", oslo)
	ourSlice(t, "liqo-tenant-milan", "ours", "milan", "gold", "Accepted")
	ourSlice(t, "liqo-tenant-milan", "denied", "milan", "silver", "Denied")
	// A consumer may write any ResourceSlice into its own tenant namespace.
	ourSlice(t, "liqo-tenant-oslo", "forged", "milan", "spot", "Accepted")
	ourSlice(t, "default", "stray", "oslo", "gold", "Accepted")
	changed := make(chan struct{}, 1)
	s := newSource(t)
	s.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if s.Complete(now) {
		t.Error("it is complete before its start")
	}
	run(t, s)
	classes := func(at time.Time) string {
		text := ""
		for id, offers := range s.Ours(at) {
			for _, o := range offers {
				text += fmt.Sprintf("%s %s %v %s;", id, o.Class, o.Expired, o.Prices["cpu"])
			}
		}
		return text
	}
	test.Eventually(t, func() string {
		if got := classes(now); !s.Complete(now) || got != "milan gold false 0.021;" {
			return fmt.Sprintf("complete %v: %q", s.Complete(now), got)
		}
		return ""
	})
	if got := classes(now.Add(15 * time.Minute)); got != "milan gold true 0.021;" {
		t.Errorf("a quarter of an hour later: %q", got)
	}
	// await waits until the source has told of a change after which this holds.
	await := func(want string) {
		t.Helper()
		for got := classes(now); got != want; got = classes(now) {
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatalf("no change is told of: %q, want %q", got, want)
			}
		}
	}
	dearer := offersOf(now)
	dearer[0].Status.Prices["cpu"] = "0.5"
	milan.Publish(dearer...)
	await("milan gold false 0.5;")
	ourSlice(t, "liqo-tenant-milan", "second", "milan", "spot", "Accepted")
	await("milan gold false 0.5;milan spot false ;")
}

func TestOnlyAChangeIsToldOf(t *testing.T) {
	s, told := New(nil, nil, logr.Discard()), 0
	s.OnChange(func() { told++ })
	note := func(change func(*v1alpha1.Offer)) int {
		t.Helper()
		var items []any
		for _, o := range offersOf(noon) {
			change(&o)
			items = append(items, o)
		}
		read, err := readFrom(t, items...)
		test.Must(t, err)
		told = 0
		s.note(t.Context(), "milan", read, nil)
		return told
	}
	same := func(*v1alpha1.Offer) {}
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.Offer)
		want   int
	}{
		{"the first", same, 1}, {"the same", same, 0},
		{"renewed", func(o *v1alpha1.Offer) {
			o.Status.ObservedTime.Time, o.Status.ValidUntil.Time = noon.Add(time.Minute), noon.Add(time.Hour)
		}, 0},
		{"a title", func(o *v1alpha1.Offer) { o.Status.Title = "new" }, 1}, {"back", same, 1},
	} {
		if got := note(tc.change); got != tc.want {
			t.Errorf("%s: told %d times, want %d", tc.name, got, tc.want)
		}
	}
	told = 0
	s.note(t.Context(), "milan", Reading{}, errors.New("it does not answer"))
	if told != 0 {
		t.Error("an error that may pass is told of")
	}
	s.note(t.Context(), "milan", Reading{}, errNotPublished)
	if told != 1 {
		t.Error("that nothing is published is not told of")
	}
}

func TestTheFirstReadingsAreNotAwaitedForEver(t *testing.T) {
	s := New(nil, nil, logr.Discard())
	s.started = noon
	if s.Complete(noon.Add(maxFirst)) {
		t.Error("it is complete without a list of identities")
	}
	if !s.Complete(noon.Add(maxFirst+time.Second)) || !s.Complete(noon) {
		t.Error("it is never complete")
	}
}
