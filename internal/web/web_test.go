package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// site is a server with what it serves.
type site struct {
	t      *testing.T
	table  *table.Table
	ledger *capacity.Ledger
	peers  *peers
	server *Server
	http   *httptest.Server
}

func newSite(t *testing.T) *site {
	s := &site{t: t, table: table.New(), ledger: capacity.NewLedger(), peers: &peers{}}
	s.server = New(s.table, s.ledger, s.peers, nil, "v0.1.0")
	mux := http.NewServeMux()
	for path, handler := range s.server.Handlers() {
		mux.Handle(path, handler)
	}
	s.http = httptest.NewServer(mux)
	t.Cleanup(s.http.Close)
	return s
}

// evaluated is when the site evaluates.
var evaluatedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// publish evaluates the policies after what was published before.
func (s *site) publish(policies []*v1alpha1.ResourcePolicy, slices ...table.DecidedSlice) *table.Snapshot {
	var all []table.Policy
	for _, object := range policies {
		all = append(all, policy.Of(object, nil))
	}
	list := table.NewPolicyList(all)
	in := offer.Input{Policies: list.Valid, View: s.ledger.View(list.Selections, list.Resources...)}
	var before *offer.Result
	if now := s.table.Current(); now != nil {
		before = now.Result
	}
	next := table.Snapshot{Policies: list.All, Time: evaluatedAt}
	if len(slices) > 0 {
		next.Slices = rehearse.Requests(slices).DryRun(func() *offer.AllocationInput { return offer.NewAllocationInput(in) })
		in.Grants = next.Slices.Granted()
	}
	next.Result, next.Input = offer.Evaluate(in.After(before)), in
	return s.table.Publish(next)
}

// answered is what an answer has besides its body.
type answered struct {
	StatusCode int
	Header     http.Header
}

// do sends a request, and returns the answer with its body.
func (s *site) do(method, path, body string) (answered, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, strings.NewReader(body))
	test.Must(s.t, err)
	response, err := s.http.Client().Do(request)
	test.Must(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	test.Must(s.t, err)
	return answered{response.StatusCode, response.Header}, strings.TrimSpace(string(text))
}

// read reads an answer into a value.
func (s *site) read(method, path, body string, into any) {
	s.t.Helper()
	response, text := s.do(method, path, body)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

func node(name string, cpu int64) capacity.Node {
	return capacity.Node{Name: name, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: cpu, capacity.Memory: 1 << 30, capacity.Pods: 10}}
}

func podOf(consumer, key, on string, cpu int64) capacity.Pod {
	return capacity.Pod{Key: key, Node: on, Consumer: consumer, Requests: capacity.Amounts{capacity.CPU: cpu}}
}

func inClass(class string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }
}

const (
	rome = `"clusterID":"rome","known":true,"offers":[{"class":"","policy":"standard","override":0,` +
		`"resources":{"cpu":"1"},"because":["cpu 1: fixed at 1 by the override"]}]`
	anyone = `[{"class":"","policy":"standard","resources":{"cpu":"500m"},"because":["cpu 500m: fixed at 500m"]}]`
)

// standard offers everybody 500m, and rome 1.
func standard() *v1alpha1.ResourcePolicy {
	return kubetest.Policy("standard", kubetest.Fixed("cpu", "500m"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Overrides = []v1alpha1.Override{{
			Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}}, Offer: v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "1")},
		}}
	})
}

func TestAnswers(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"GET /offers", "GET /offers/rome", "GET /snapshot", "POST /simulate"} {
		method, path, _ := strings.Cut(path, " ")
		if response, body := s.do(method, path, ""); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "try again") ||
			response.Header.Get("Retry-After") != "1" {
			t.Errorf("%s before the first offers: %d %s", path, response.StatusCode, body)
		}
	}
	p := standard()
	p.Generation = 3
	s.publish([]*v1alpha1.ResourcePolicy{p})
	const details = `,"details":{"revision":1,"time":"2026-01-02T03:04:05Z","policies":[{"class":"","policy":"standard","decides":true}],"slices":[],"pods":[]}}`
	for _, tc := range []struct {
		name, method, path string
		code               int
		body               string
	}{
		{
			"everybody", "GET", "/offers", 200, `{"revision":1,"time":"2026-01-02T03:04:05Z","consumers":[{` + rome + `}],"anyone":` + anyone +
				`,"policies":[{"name":"standard","generation":3,"source":"Fixed","reason":"Incomplete","conditions":[` +
				`{"type":"Ready","status":"False","reason":"Incomplete","message":"The policy does not offer memory, pods to every consumer. ` +
				`A virtual node needs cpu, memory and pods: set them above 0 in spec.offer or in the override. Unknown: rome. No Liqo object has such a cluster ID."},` +
				`{"type":"InForce","status":"True","reason":"Deciding","message":"The policy decides for all of its consumers."}],"consumers":1,"slices":0}]}`,
		},
		{"one consumer", "GET", "/offers/rome", 200, `{` + rome + details},
		{"a consumer nobody knows", "GET", "/offers/oslo", 200, `{"clusterID":"oslo","known":false,"offers":` + anyone + details},
		{"any text as an ID", "GET", "/offers/%00%ff", 200, `{"clusterID":"\u0000\ufffd","known":false,"offers":` + anyone + details},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if response, body := s.do(tc.method, tc.path, ""); response.StatusCode != tc.code || body != tc.body {
				t.Errorf("got  %d %s\nwant %d %s", response.StatusCode, body, tc.code, tc.body)
			}
		})
	}
	if got := s.table.Stats().UnknownReads; got != 0 {
		t.Errorf("looking counts as a read: %d", got)
	}
}

func TestErrorsAreStatuses(t *testing.T) {
	s := newSite(t)
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	for _, tc := range []struct {
		method, path, body string
		want               metav1.StatusReason
		code               int32
		message            string
	}{
		{"GET", "/offers/rome/x", "", metav1.StatusReasonNotFound, 404, ""},
		{"DELETE", "/offers/rome", "", metav1.StatusReasonMethodNotAllowed, 405, ""},
		{"GET", "/simulate", "", metav1.StatusReasonMethodNotAllowed, 405, ""},
		{"POST", "/snapshot", "", metav1.StatusReasonMethodNotAllowed, 405, ""},
		{"POST", "/simulate", "", metav1.StatusReasonBadRequest, 400, "EOF"},
		{"POST", "/simulate", `{"drain":["n1"]} {}`, metav1.StatusReasonBadRequest, 400, "nothing after it"},
		{"POST", "/simulate", `{"deletes":["standard"]}`, metav1.StatusReasonBadRequest, 400, "deletes: unknown field"},
		{"POST", "/simulate", `{"apply":[{"metadata":{"name":"p"},"spec":{"ofer":{}}}]}`, metav1.StatusReasonBadRequest, 400, `unknown field "ofer"`},
		{"POST", "/simulate", `{"apply":[{"spec":{}}]}`, metav1.StatusReasonBadRequest, 400, "metadata.name is missing"},
		{"POST", "/simulate", `{"apply":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}]}`, metav1.StatusReasonBadRequest, 400, "write ResourcePolicies"},
		{"POST", "/simulate", `{"delete":["gone"]}`, metav1.StatusReasonBadRequest, 400, `there is no ResourcePolicy "gone"`},
		{"POST", "/simulate", `{"drain":["gone"]}`, metav1.StatusReasonBadRequest, 400, `there is no Node "gone"`},
		{"POST", "/simulate", `{"addNodes":[{"count":0,"allocatable":{}}]}`, metav1.StatusReasonBadRequest, 400, "write 1 to 10000"},
		{"POST", "/simulate", `{"addNodes":[{"count":1,"allocatable":{"cpu":"-1"}}]}`, metav1.StatusReasonBadRequest, 400, "write 0 or more"},
		{"POST", "/simulate", `{"delete":["standard"],"apply":[{"metadata":{"name":"standard"}}]}`, metav1.StatusReasonBadRequest, 400, "once in apply and delete"},
		{"POST", "/simulate", strings.Repeat(" ", rest.MaxChange+1), metav1.StatusReasonRequestEntityTooLarge, 413, "more than 1048576 bytes"},
	} {
		response, body := s.do(tc.method, tc.path, tc.body)
		var got metav1.Status
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s %s: %v in %s", tc.method, tc.path, err, body)
			continue
		}
		if response.StatusCode != int(tc.code) || got.Kind != "Status" || got.Code != tc.code || got.Reason != tc.want || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s %s %.60s:\n%d %s\nwant %s with %q", tc.method, tc.path, tc.body, response.StatusCode, body, tc.want, tc.message)
		}
	}
}

func TestWhatAConsumerHasAndUsesIsBesideItsOffer(t *testing.T) {
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8000))
	s.ledger.SetPod(podOf("rome", "p", "n1", 500))
	slice := table.DecidedSlice{Namespace: "liqo-tenant-rome", Name: "mine", UID: "u", Slice: grant.Slice{
		Key: "liqo-tenant-rome/mine", Consumer: "rome", Class: "gold", Request: capacity.Amounts{capacity.CPU: 2000},
	}, Written: func() map[string]string { return map[string]string{"cpu": "2000m"} }}
	gold := kubetest.Policy("gold", inClass("gold"))
	low := kubetest.Policy("low", inClass("gold"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = -1 })
	s.publish([]*v1alpha1.ResourcePolicy{gold, low}, slice)
	var c rest.Consumer
	s.read("GET", "/offers/rome", "", &c)
	want := `"resources":{"cpu":"8","memory":"1Gi","pods":"10"},"granted":{"cpu":"2","memory":"1Gi","pods":"10"},"used":{"cpu":"500m","memory":"0","pods":"1"},` +
		`"because":["cpu 8: 100% of 8 is a pool of 8, 2 committed, 6 remaining; it has 2",`
	if _, body := s.do("GET", "/offers/rome", ""); !strings.Contains(body, want) {
		t.Errorf("got %s\nwant %s", body, want)
	}
	wantDetails := `{"revision":1,"time":"2026-01-02T03:04:05Z",` +
		`"policies":[{"class":"gold","policy":"gold","decides":true},{"class":"gold","policy":"low","decides":false,"because":"policy gold has the higher priority, 0"}],` +
		`"slices":[{"namespace":"liqo-tenant-rome","name":"mine","class":"gold","policy":"gold","asked":{"cpu":"2"},"written":{"cpu":"2000m"},"granted":{"cpu":"2","memory":"1Gi","pods":"10"},"accepted":true,` +
		`"because":"granted in full by policy gold, and 1Gi of 8Gi memory by default: policy gold leaves 1Gi for this cluster; ` +
		`10 of 110 pods by default: policy gold leaves 10 for this cluster"}],` +
		`"pods":[{"uid":"p","node":"n1","requests":{"cpu":"500m"}}]}`
	got, err := json.Marshal(c.Details)
	test.Must(t, err)
	if diff := cmp.Diff(wantDetails, string(got)); diff != "" {
		t.Error(diff)
	}
}

// The nodes of the provider are no business of its consumers.
func TestTheSeatOfASliceIsForAdmins(t *testing.T) {
	const name = "worker-of-ours"
	seated := kubetest.Policy("gold", inClass("gold"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Slices = &v1alpha1.Slices{Fit: v1alpha1.FitNode, EnforcePlacement: true}
	})
	for want, tc := range map[string]struct {
		granted capacity.Amounts
		edit    func(*capacity.Node)
		lost    int32
	}{
		" on worker-of-ours": {edit: func(*capacity.Node) {}},
		"Cordoned on worker-of-ours, which is cordoned": {
			granted: capacity.Amounts{capacity.CPU: 2000}, edit: func(n *capacity.Node) { n.State = capacity.Cordoned },
		},
		"Lost was on worker-of-ours, which is gone or not usable": {
			granted: capacity.Amounts{capacity.CPU: 2000}, edit: func(n *capacity.Node) { n.Labels = nil }, lost: 1,
		},
	} {
		s := newSite(t)
		n := node(name, 8000)
		n.Labels = map[string]string{v1alpha1.DefaultNodeKey: name}
		tc.edit(&n)
		s.ledger.SetNode(n)
		slice := table.DecidedSlice{Namespace: "liqo-tenant-rome", Name: "mine", UID: "u", Slice: grant.Slice{
			Key: "liqo-tenant-rome/mine", Consumer: "rome", Class: "gold", Request: capacity.Amounts{capacity.CPU: 2000}, Granted: tc.granted,
		}}
		if tc.granted != nil {
			slice.GrantedBy, slice.GrantedIn = offer.Seated("gold", name), "gold"
		}
		s.publish([]*v1alpha1.ResourcePolicy{seated}, slice)
		var c rest.Consumer
		s.read("GET", "/offers/rome", "", &c)
		var all rest.Offers
		s.read("GET", "/offers", "", &all)
		one := c.Details.Slices[0]
		if got := one.SeatState + " " + one.On(); one.Seat != name || got != want || all.Policies[0].SeatsLost != tc.lost {
			t.Errorf("got %q, %d lost; want %q, %d", got, all.Policies[0].SeatsLost, want, tc.lost)
		}
		var of rest.CatalogOf
		s.read("GET", "/api/catalog/rome", "", &of)
		for i := range of.Entries {
			if e := &of.Entries[i]; e.Fit != v1alpha1.FitNode {
				t.Errorf("the catalog has %+v", e)
			}
		}
		for _, path := range []string{"/api/catalog", "/api/catalog/rome", "/api/catalog/nobody"} {
			if _, body := s.do("GET", path, ""); strings.Contains(body, name) {
				t.Errorf("%s names a node: %s", path, body)
			}
		}
	}
}

func TestDetailsAreBounded(t *testing.T) {
	s := newSite(t)
	var slices []table.DecidedSlice
	for i := range maxDetailSlices + 1 {
		s.ledger.SetPod(podOf("rome", fmt.Sprintf("pod-%03d", i), "n1", 1))
		key := fmt.Sprintf("ns/slice-%03d", i)
		slices = append(slices, table.DecidedSlice{Namespace: "ns", Name: key[3:], UID: key, Slice: grant.Slice{Key: key, Consumer: "rome", Class: "gold"}})
	}
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("gold", inClass("gold"))}, slices...)
	var c rest.Consumer
	s.read("GET", "/offers/rome", "", &c)
	if d := c.Details; len(d.Pods) != maxDetailPods || len(d.Slices) != maxDetailSlices || fmt.Sprint(d.Truncated) != "[slices pods]" || d.Pods[499].UID != "pod-499" {
		t.Errorf("%d pods, %d slices, truncated %v", len(d.Pods), len(d.Slices), d.Truncated)
	}
	// The pods of nobody are the provider's own.
	s.ledger.SetPod(podOf("", "own", "n1", 1))
	var nobody rest.Consumer
	s.read("GET", "/offers/%20", "", &nobody)
	if len(nobody.Details.Pods) != 0 {
		t.Errorf("nobody has %v", nobody.Details.Pods)
	}
}

func TestWithoutAnOfferItSaysWhy(t *testing.T) {
	s := newSite(t)
	for _, tc := range []struct {
		policies []*v1alpha1.ResourcePolicy
		because  string
	}{
		{nil, "there is no valid ResourcePolicy"},
		{
			[]*v1alpha1.ResourcePolicy{kubetest.Policy("p", kubetest.Fixed("cpu", "1"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun })},
			"no ResourcePolicy in force is for this consumer",
		},
	} {
		s.publish(tc.policies)
		var c rest.Consumer
		if s.read("GET", "/offers/rome", "", &c); len(c.Offers) != 0 || c.Because != tc.because {
			t.Errorf("got %+v, want %s", c, tc.because)
		}
	}
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	s.publish(nil)
	const nothing = `"offers":[],"because":"there is no valid ResourcePolicy"`
	if _, body := s.do("GET", "/offers/rome", ""); !strings.Contains(body, nothing) {
		t.Errorf("when the policy is gone: %s", body)
	}
	s.ledger.SetPod(podOf("rome", "a", "n1", 500))
	s.publish([]*v1alpha1.ResourcePolicy{standard()})
	s.publish(nil)
	const held = `not offered any more: policy standard is gone or invalid; held at 500m by reclaim: its pods request 500m`
	if _, body := s.do("GET", "/offers/rome", ""); !strings.Contains(body, held) {
		t.Errorf("when the policy is gone and pods run: %s", body)
	}
}

func TestTheListOfPoliciesSaysWhatADryRunWouldDo(t *testing.T) {
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8000))
	dry := kubetest.Policy("dry", kubetest.ForIDs("rome", "oslo"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode, s.Priority = v1alpha1.ModeDryRun, 9 })
	bad := kubetest.Policy("bad", inClass("default"))
	bad.Generation, dry.Generation = 3, 3
	s.publish([]*v1alpha1.ResourcePolicy{bad, dry})
	for range 2 { // The second time from what is kept of the revision.
		var all rest.Offers
		s.read("GET", "/offers", "", &all)
		got, err := json.Marshal(all.Policies)
		test.Must(t, err)
		want := `[{"name":"bad","generation":3,"reason":"Invalid","conditions":[{"type":"Ready","status":"False","reason":"Invalid",` +
			`"message":"The policy is ignored until this is corrected: spec.class: Invalid value: \"default\": Liqo itself answers this class; ` +
			`write another name, or leave class out for the unnamed pool"},` +
			`{"type":"InForce","status":"False","reason":"Invalid","message":"The policy is ignored: see the condition Ready."}],"consumers":0,"slices":0},` +
			`{"name":"dry","generation":3,"source":"Nodes","dryRun":true,"reason":"DryRun","conditions":[{"type":"Ready","status":"True","reason":"DryRun",` +
			`"message":"Evaluated for 2 consumers but not published: set spec.mode to Active to put the policy in force. ` +
			`Unknown: oslo, rome. No Liqo object has such a cluster ID."},` +
			`{"type":"InForce","status":"False","reason":"DryRun","message":"spec.mode is DryRun: other policies decide as if this one did not exist."}],` +
			`"consumers":2,"slices":0,"nodes":1,` +
			`"capacity":{"cpu":"8","memory":"1Gi","pods":"10"},"committed":{"cpu":"0","memory":"0","pods":"0"},"remaining":{"cpu":"8","memory":"1Gi","pods":"10"}}]`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestASimulationSaysWhatAChangeWouldDo(t *testing.T) {
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8000))
	s.ledger.SetNode(node("n2", 8000))
	s.ledger.SetPod(podOf("rome", "p", "n1", 500))
	before := s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all")})
	next := kubetest.Policy("all", func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Max, s.Reclaim = kubetest.Quantities("cpu", "0"), v1alpha1.ReclaimEvict
	})
	bad := kubetest.Policy("bad", inClass("default"))
	body, err := json.Marshal(rest.Change{Apply: []v1alpha1.ResourcePolicy{*next, *bad}, Drain: []string{"n2"}})
	test.Must(t, err)
	var got rest.Simulation
	s.read("POST", "/simulate", string(body), &got)
	const because = "cpu 0: 100% of 8 is a pool of 8, 500m committed, 7.5 remaining; it has 500m; at most 0"
	want := rest.Simulation{
		Evaluated: rest.Evaluated{Revision: 1, Time: evaluatedAt},
		Problems:  map[string][]string{"bad": {`spec.class: Invalid value: "default": Liqo itself answers this class; write another name, or leave class out for the unnamed pool`}},
		Offers: []rest.OfferChange{
			{Consumer: "rome", Resource: "cpu", Now: "16", Then: "0", Because: because},
			{Consumer: "rome", Resource: "memory", Now: "2Gi", Then: "1Gi", Because: "memory 1Gi: 100% of 1Gi is a pool of 1Gi, 0 committed, 1Gi remaining; it has 0"},
			{Consumer: "rome", Resource: "pods", Now: "20", Then: "10", Because: "pods 10: 100% of 10 is a pool of 10, 1 committed, 9 remaining; it has 1"},
			{Anyone: true, Resource: "cpu", Now: "15500m", Then: "0", Because: "cpu 0: 100% of 8 is a pool of 8, 500m committed, 7.5 remaining; it has 0; at most 0"},
			{Anyone: true, Resource: "memory", Now: "2Gi", Then: "1Gi", Because: "memory 1Gi: 100% of 1Gi is a pool of 1Gi, 0 committed, 1Gi remaining; it has 0"},
			{Anyone: true, Resource: "pods", Now: "19", Then: "9", Because: "pods 9: 100% of 10 is a pool of 10, 1 committed, 9 remaining; it has 0"},
		},
		Evicted: []rest.Eviction{{Consumer: "rome", Pods: 1, Because: "cpu falls to 0: " + because}},
	}
	policies := got.Policies
	got.Policies = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(policies) != 2 || policies[0].Policy != "all" || policies[0].Now != "Offering" || policies[0].Then != "Incomplete" || policies[1].Now != "" || policies[1].Then != "Invalid" {
		t.Errorf("policies %+v", policies)
	}
	if s.table.Current() != before {
		t.Error("a simulation has published something")
	}
	if view := s.ledger.View([]capacity.Selection{{}}); view.Pools[0].Nodes != 2 {
		t.Errorf("a simulation has drained the cluster: %d nodes", view.Pools[0].Nodes)
	}
	// Nothing changes by a policy as it is.
	body, err = json.Marshal(rest.Change{Apply: []v1alpha1.ResourcePolicy{*kubetest.Policy("all")}})
	test.Must(t, err)
	if _, text := s.do("POST", "/simulate", string(body)); text != `{"revision":1,"time":"2026-01-02T03:04:05Z"}` {
		t.Errorf("the policy as it is: %s", text)
	}
}

func TestASimulationSaysWhatSlicesWouldLose(t *testing.T) {
	s := newSite(t)
	s.ledger.SetNode(node("n1", 8000))
	slice := table.DecidedSlice{Namespace: "ns", Name: "mine", UID: "u", Slice: grant.Slice{
		Key: "ns/mine", Consumer: "rome", Class: "gold", Request: capacity.Amounts{capacity.CPU: 6000}, Granted: capacity.Amounts{capacity.CPU: 6000}, GrantedBy: "gold",
	}}
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("gold", inClass("gold"))}, slice)
	var got rest.Simulation
	s.read("POST", "/simulate", `{"delete":["gold"]}`, &got)
	text, err := json.Marshal(got.Slices)
	test.Must(t, err)
	want := `[{"namespace":"ns","name":"mine","consumer":"rome","class":"gold","now":{"cpu":"6","memory":"1Gi","pods":"10"},"then":{"cpu":"0","memory":"0","pods":"0"},` +
		`"because":"granted 0 of 6 cpu: no policy of the provider serves this cluster in this class any more"}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestOneSimulationOrSnapshotIsMadeAtATime(t *testing.T) {
	s := newSite(t)
	s.publish(nil)
	s.server.busy <- struct{}{}
	for _, other := range []string{"POST /simulate", "GET /snapshot"} {
		method, path, _ := strings.Cut(other, " ")
		response, text := s.do(method, path, "{}")
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" || !strings.Contains(text, "TooManyRequests") {
			t.Errorf("%s meanwhile: %d %s", other, response.StatusCode, text)
		}
	}
	if response, _ := s.do("GET", "/offers", ""); response.StatusCode != http.StatusOK {
		t.Errorf("offers meanwhile: %d", response.StatusCode)
	}
	<-s.server.busy
	if response, text := s.do("POST", "/simulate", "{}"); response.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d %s", response.StatusCode, text)
	}
}

func TestASnapshotCanBeRehearsedElsewhere(t *testing.T) {
	s := newSite(t)
	tainted := node("n2", 4000)
	tainted.Taints, tainted.Labels = []capacity.Taint{{Key: "k", Value: "a:b", Effect: capacity.NoExecute}}, map[string]string{"zone": "a"}
	s.ledger.SetNode(node("n1", 8000))
	s.ledger.SetNode(tainted)
	s.ledger.SetPod(podOf("rome", "p", "n1", 500))
	s.publish([]*v1alpha1.ResourcePolicy{kubetest.Policy("all")})
	response, text := s.do("GET", "/snapshot", "")
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	w, of, err := world.Decode(strings.NewReader(text))
	test.Must(t, err)
	if of.Revision != 1 || !of.Time.Equal(evaluatedAt) || len(w.Policies) != 1 || len(w.Content.Nodes) != 2 || w.Content.Len() != 1 {
		t.Errorf("%+v of %+v", w, of)
	}
	var again bytes.Buffer
	test.Must(t, world.Encode(&again, s.table.Current(), w.Content, "v0.1.0", nil))
	if diff := cmp.Diff(text, strings.TrimSpace(again.String())); diff != "" {
		t.Errorf("read and written again:\n%s", diff)
	}
	var strict rest.World
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&strict); err != nil || strict.Proffer != "v0.1.0" {
		t.Errorf("it is not a World: %v", err)
	}
}
