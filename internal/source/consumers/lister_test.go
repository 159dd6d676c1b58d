package consumers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/test"
)

// earlyExample is a cluster in the shape of the early broker.
//
//go:embed testdata/early.json
var earlyExample string

// apiServer serves lists of ForeignClusters. An empty list stands for a kind that is not installed.
type apiServer struct {
	v1, v0   string
	requests atomic.Int32
	// wait is closed when requests may be answered; nil lets them be answered at once.
	wait chan struct{}
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	if a.wait != nil {
		<-a.wait
	}
	list := ""
	switch r.URL.Path {
	case "/apis/core.liqo.io/v1beta1/foreignclusters":
		list = a.v1
	case "/apis/discovery.liqo.io/v1alpha1/foreignclusters":
		list = a.v0
	}
	w.Header().Set("Content-Type", "application/json")
	if list == "" {
		http.NotFound(w, r)
		return
	}
	_, _ = fmt.Fprint(w, list)
}

// listOf returns the JSON of a list.
func listOf(objects ...string) string {
	return `{"metadata":{},"items":[` + strings.Join(objects, ",") + `]}`
}

func (a *apiServer) lister(t *testing.T) *Lister {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	l, err := NewLister(&rest.Config{Host: server.URL}, logr.Discard())
	test.Must(t, err)
	return l
}

func read(t *testing.T, l *Lister) *ForeignClusters {
	t.Helper()
	list, err := l.List(t.Context())
	test.Must(t, err)
	return list
}

// ofRole returns a ForeignCluster of Liqo v1.
func ofRole(name, role string, networking bool) string {
	return fmt.Sprintf(`{"apiVersion":"core.liqo.io/v1beta1","kind":"ForeignCluster","metadata":{"name":%q,"uid":"u-%[1]s",`+
		`"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"resourceVersion":"7","labels":{"tier":"gold"},"annotations":{"note":"secret"},`+
		`"managedFields":[{"manager":"liqo"}]},"spec":{"clusterID":%[1]q},"status":{"role":%q,"modules":{"networking":{"enabled":%t}},`+
		`"apiServerUrl":"https://10.0.0.1:6443","tenantNamespace":{"local":"liqo-tenant-%[1]s"}}}`, name, role, networking)
}

func TestAClusterOfTheEarlyBrokerIsListedAsItWas(t *testing.T) {
	stored := strings.Replace(earlyExample, `"metadata": {`, `"metadata": {"managedFields": [{"manager": "liqo"}],`, 1)
	list := read(t, (&apiServer{v0: listOf(stored)}).lister(t))
	for name, form := range map[string][]map[string]any{"early": list.Early(), "native": list.Native(), "public": list.Public()} {
		got, err := json.MarshalIndent(form[0], "", "  ")
		test.Must(t, err)
		if diff := cmp.Diff(earlyExample, string(got)+"\n"); diff != "" || len(form) != 1 {
			t.Errorf("%s: %d clusters: %s", name, len(form), diff)
		}
	}
}

func TestAClusterOfLiqoV1HasTheEarlyShape(t *testing.T) {
	for _, tc := range []struct {
		role                        string
		networking                  bool
		outgoing, incoming, network string
	}{
		{"Provider", true, "Yes", "No", "Yes"},
		{"Consumer", false, "No", "Yes", "No"},
		{"ConsumerAndProvider", true, "Yes", "Yes", "Yes"},
		{"Unknown", true, "Auto", "Auto", "Yes"},
		{"", false, "Auto", "Auto", "No"},
	} {
		t.Run(tc.role, func(t *testing.T) {
			list := read(t, (&apiServer{v1: listOf(ofRole("rome", tc.role, tc.networking))}).lister(t))
			spec := map[string]any{
				"clusterIdentity":        map[string]any{"clusterID": "rome", "clusterName": "rome"},
				"outgoingPeeringEnabled": tc.outgoing, "incomingPeeringEnabled": tc.incoming, "networkingEnabled": tc.network,
				"foreignAuthUrl": "https://10.0.0.1:6443", "insecureSkipTLSVerify": false, "ttl": 0,
				"apiServerUrl": "https://10.0.0.1:6443",
			}
			want := []map[string]any{object(map[string]any{
				"name": "rome", "uid": "u-rome", "creationTimestamp": "2026-01-02T03:04:05Z",
				"labels": map[string]any{"tier": "gold", "discovery.liqo.io/cluster-id": "rome"},
			}, spec)}
			if diff := cmp.Diff(want, list.Early()); diff != "" {
				t.Errorf("early: %s", diff)
			}
			public := []map[string]any{object(map[string]any{
				"name": "rome", "labels": map[string]any{"discovery.liqo.io/cluster-id": "rome"},
			}, spec)}
			if diff := cmp.Diff(public, list.Public()); diff != "" {
				t.Errorf("public: %s", diff)
			}
		})
	}
}

func TestNativeObjectsAreAsStoredWithoutManagedFields(t *testing.T) {
	stored := ofRole("rome", "Consumer", true)
	list := read(t, (&apiServer{v1: listOf(stored)}).lister(t))
	var want map[string]any
	test.Must(t, json.Unmarshal([]byte(stored), &want))
	delete(want["metadata"].(map[string]any), "managedFields")
	got, err := json.Marshal(list.Native())
	test.Must(t, err)
	var native []map[string]any
	test.Must(t, json.Unmarshal(got, &native))
	if diff := cmp.Diff([]map[string]any{want}, native); diff != "" {
		t.Error(diff)
	}
}

// ofV09 returns a ForeignCluster of Liqo v0.9, which has no networkingEnabled and omits a ttl of 0.
func ofV09(name, id, network string) string {
	return fmt.Sprintf(`{"apiVersion":"discovery.liqo.io/v1alpha1","kind":"ForeignCluster","metadata":{"name":%q},"spec":{"peeringType":"OutOfBand",`+
		`"clusterIdentity":{"clusterID":%q,"clusterName":%[1]q},"outgoingPeeringEnabled":"Yes","incomingPeeringEnabled":"No",`+
		`"foreignAuthUrl":"https://auth.example.com","foreignProxyUrl":"https://10.0.0.1","insecureSkipTLSVerify":true},`+
		`"status":{"peeringConditions":[{"type":"IncomingPeering","status":"None"}%[3]s]}}`, name, id, network)
}

func TestFieldsThatLiqoDroppedAreFilledIn(t *testing.T) {
	for network, want := range map[string]string{
		"": "Auto",
		`,{"type":"NetworkStatus","status":"None"}`:        "Auto",
		`,{"type":"NetworkStatus","status":"Pending"}`:     "Yes",
		`,{"type":"NetworkStatus","status":"Established"}`: "Yes",
		`,{"type":"NetworkStatus","status":"External"}`:    "No",
		`,7`: "Auto",
	} {
		list := read(t, (&apiServer{v0: listOf(ofV09("rome", "id", network))}).lister(t))
		early := list.Early()[0]
		spec := mapAt(early, "spec")
		if spec["networkingEnabled"] != want || spec["ttl"] != 0 || spec["peeringType"] != "OutOfBand" ||
			textAt(early, "metadata", "labels", "discovery.liqo.io/cluster-id") != "id" || mapAt(early, "status") == nil {
			t.Errorf("with %s: %v", network, early)
		}
		public := mapAt(list.Public()[0], "spec")
		if len(public) != len(publicSpec)-1 || public[apiServerURL] != nil || public["foreignProxyUrl"] != nil || mapAt(list.Public()[0], "status") != nil {
			t.Errorf("a stranger sees %v", public)
		}
		if native := mapAt(list.Native()[0], "spec"); native["ttl"] != nil {
			t.Errorf("the stored object was changed: %v", native)
		}
	}
}

func TestAClusterOfBothVersionsIsListedOnce(t *testing.T) {
	list := read(t, (&apiServer{
		v1: listOf(ofRole("rome", "Consumer", true), ofRole("bern", "Consumer", true)), v0: listOf(ofV09("old", "rome", ""), ofV09("oslo", "oslo", "")),
	}).lister(t))
	var names []string
	for _, c := range list.Early() {
		names = append(names, textAt(c, "metadata", "name"))
	}
	if diff := cmp.Diff([]string{"bern", "oslo", "rome"}, names); diff != "" {
		t.Error(diff)
	}
	if n := len(list.Native()); n != 4 {
		t.Errorf("%d objects are stored", n)
	}
}

func TestWithoutLiqoThereAreNoClusters(t *testing.T) {
	list := read(t, (&apiServer{}).lister(t))
	for _, form := range [][]map[string]any{list.Early(), list.Native(), list.Public()} {
		if text, err := json.Marshal(form); err != nil || string(text) != "[]" {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestObjectsOfAnyFormAreListed(t *testing.T) {
	for _, odd := range []string{`{}`, `{"metadata":7,"spec":[],"status":"x"}`, `{"metadata":{"name":7,"labels":7},"spec":{"clusterID":{}}}`} {
		list := read(t, (&apiServer{v1: listOf(odd), v0: listOf(odd)}).lister(t))
		if e, p := len(list.Early()), len(list.Public()); e != p || e < 1 {
			t.Errorf("%s: %d and %d clusters", odd, e, p)
		}
	}
}

func TestManyCallersCauseOneRequest(t *testing.T) {
	server := &apiServer{v1: listOf(ofRole("rome", "Consumer", true)), wait: make(chan struct{})}
	l := server.lister(t)
	now := time.Now()
	l.now = func() time.Time { return now }
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := l.List(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone waits: %v", err)
	}
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if list, err := l.List(t.Context()); err != nil || len(list.Native()) != 1 {
				t.Errorf("%v", err)
			}
		})
	}
	close(server.wait)
	callers.Wait()
	if n := server.requests.Load(); n != 2 {
		t.Errorf("%d requests for two kinds", n)
	}
	now = now.Add(MaxListAge - 1)
	read(t, l)
	if n := server.requests.Load(); n != 2 {
		t.Errorf("%d requests within %v", n, MaxListAge)
	}
	now = now.Add(1)
	read(t, l)
	if n := server.requests.Load(); n != 4 {
		t.Errorf("%d requests after %v", n, MaxListAge)
	}
}

func TestAListThatIsTooLargeIsAnError(t *testing.T) {
	long := func(bytes int) string {
		return `{"metadata":{"name":"long"},"spec":{"clusterID":"` + strings.Repeat("a", bytes) + `"}}`
	}
	many := make([]string, MaxListBytes/(MaxForeignClusterBytes/2)+1)
	for i := range many {
		many[i] = long(MaxForeignClusterBytes / 2)
	}
	for _, tc := range []struct{ name, list, want string }{
		{"more objects", `{"metadata":{"continue":"more"},"items":[]}`, "there are more than 1000"},
		{"a large object", listOf(long(MaxForeignClusterBytes)), "one has more than 65536 bytes"},
		{"many objects", listOf(many...), "all have more than 8388608"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := &apiServer{v1: tc.list}
			l := server.lister(t)
			for range 3 {
				if _, err := l.List(t.Context()); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v", err)
				}
			}
			if n := server.requests.Load(); n != 1 {
				t.Errorf("%d requests: an error is asked for again at once", n)
			}
		})
	}
	// What is not kept does not count.
	fields := `{"metadata":{"name":"rome","managedFields":[` + string(bytes.Repeat([]byte("{},"), MaxForeignClusterBytes)) + `{}]}}`
	if n := len(read(t, (&apiServer{v1: listOf(fields)}).lister(t)).Native()); n != 1 {
		t.Errorf("%d objects", n)
	}
}

func TestAnAnswerThatIsNoListIsAnError(t *testing.T) {
	for _, odd := range []string{`{}`, `[]`, `{"items":{}}`, `{"items":[{"metadata":`, `{"items":null}`} {
		if _, err := (&apiServer{v1: odd}).lister(t).List(t.Context()); err == nil || errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", odd, err)
		}
	}
}
