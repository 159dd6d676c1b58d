package filters

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
	"proffer.dev/proffer/test"
)

// nodeFunc is a filter of nodes, consumerFunc one of consumers.
type (
	nodeFunc     func(*plugin.Policy, *plugin.Node) (bool, string)
	consumerFunc func(*plugin.Policy, *plugin.Consumer) (bool, string)
)

func (nodeFunc) Name() string                                                     { return "Custom" }
func (f nodeFunc) Filter(p *plugin.Policy, n *plugin.Node) (bool, string)         { return f(p, n) }
func (consumerFunc) Name() string                                                 { return "Custom" }
func (f consumerFunc) Filter(p *plugin.Policy, c *plugin.Consumer) (bool, string) { return f(p, c) }

// cluster is a ledger with a policy whose nodes are filtered.
type cluster struct {
	*Chain
	t      *testing.T
	ledger *capacity.Ledger
	policy *offer.Policy
	woken  atomic.Int32
}

func newCluster(t *testing.T, f nodeFunc, order ...string) *cluster {
	if order == nil {
		order = []string{config.FilterBasic, config.FilterAffinity, "Custom"}
	}
	c := &cluster{t: t, ledger: capacity.NewLedger()}
	c.Chain = New(config.Filters{Nodes: order}, map[string]plugin.NodeFilter{"Custom": f}, nil, nil,
		Late{Reconsider: c.ledger.Reconsider, Wake: func() { c.woken.Add(1) }}, logr.Discard())
	c.policy = c.parsed("gold")
	return c
}

func (c *cluster) parsed(name string, affinity ...capacity.NodeFilter) *offer.Policy {
	p := &offer.Policy{Name: name, Version: "1", Nodes: &offer.Nodes{Percent: 100, Selection: capacity.Selection{Filters: affinity}}}
	c.AddTo(&v1alpha1.ResourcePolicy{}, p)
	return p
}

func (c *cluster) set(names ...string) {
	for _, name := range names {
		c.ledger.SetNode(capacity.Node{Name: name, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 8000}})
	}
}

// pool returns the pool of the policy, and how long that took.
func (c *cluster) pool() (capacity.Pool, time.Duration) {
	start := time.Now()
	p := c.ledger.View([]capacity.Selection{c.policy.Nodes.Selection}).Pools[0]
	return p, time.Since(start)
}

func (c *cluster) expect(nodes int, unusable string) {
	c.t.Helper()
	p, took := c.pool()
	if p.Nodes != nodes || p.Unusable.String() != unusable || took > 0 {
		c.t.Errorf("%d nodes, left out %q after %v; want %d, %q at once", p.Nodes, p.Unusable, took, nodes, unusable)
	}
}

// waiting returns the number of questions that are asked again.
func waiting(c *caller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unanswered)
}

func TestAFilterIsAskedOnceAboutEachStateOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := newCluster(t, func(p *plugin.Policy, n *plugin.Node) (bool, string) {
			calls.Add(1)
			if p.Name != "gold" || n.Allocatable.Cpu().String() != "8" || !n.Ready {
				t.Errorf("asked with %v and %v", p, n)
			}
			return n.Name == "cool", "too\nhot " + strings.Repeat("!", 1000)
		})
		c.set("cool", "hot")
		c.expect(1, "hot is left out by Custom: too hot "+strings.Repeat("!", 189)+"...")
		c.expect(1, "hot is left out by Custom: too hot "+strings.Repeat("!", 189)+"...")
		if calls.Load() != 2 {
			t.Errorf("%d calls, want one for each node", calls.Load())
		}
	})
}

func TestTheOrderOfTheChainIsThatOfTheReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := nodeFunc(func(*plugin.Policy, *plugin.Node) (bool, string) { return false, "never" })
		for _, tc := range []struct {
			order []string
			want  []string
		}{
			{[]string{"Basic", "Affinity", "Custom"}, []string{"not Ready", "left out by the policy", "left out by Custom: never"}},
			{[]string{"Custom", "Basic", "Affinity"}, []string{"left out by Custom: never", "left out by Custom: never", "left out by Custom: never"}},
			{[]string{"Affinity", "Custom", "Basic"}, []string{"left out by the policy", "left out by the policy", "left out by Custom: never"}},
			{[]string{"Basic", "Custom", "Affinity"}, []string{"not Ready", "left out by Custom: never", "left out by Custom: never"}},
		} {
			c := newCluster(t, never, tc.order...)
			c.policy = c.parsed("gold", affinity{})
			c.ledger.SetNode(capacity.Node{Name: "1-unselected-down"})
			c.set("2-unselected", "3-ready")
			pool, _ := c.pool()
			var got []string
			for _, n := range pool.Unusable.First {
				got = append(got, n.Why)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%v: -want +got:\n%s", tc.order, diff)
			}
		}
	})
}

// affinity is a filter of a policy, which leaves out nodes with "unselected" in their names.
type affinity struct{}

func (affinity) String() string { return "affinity" }
func (affinity) Admits(n *capacity.Node) (bool, string) {
	return !strings.Contains(n.Name, "unselected"), "left out by the policy"
}

func TestAFilterThatPanicsLeavesOutWhatItWasAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if n.Name == "b" {
				panic("nil map")
			}
			return true, ""
		})
		c.set("a", "b", "c")
		c.expect(2, "b is left out because Custom panics: nil map")
		test.Check(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP proffer_filter_questions_total Number of questions that a filter in Go was asked, by what came of them: admitted, left_out or panic.
# TYPE proffer_filter_questions_total counter
proffer_filter_questions_total{filter="Custom",of="nodes",result="admitted"} 2
proffer_filter_questions_total{filter="Custom",of="nodes",result="left_out"} 0
proffer_filter_questions_total{filter="Custom",of="nodes",result="panic"} 1
`), "proffer_filter_questions_total"))
	})
}

func TestAFilterThatBlocksIsWaitedForOnceAndItsAnswersCountWhenTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocks atomic.Bool
		c := newCluster(t, func(*plugin.Policy, *plugin.Node) (bool, string) {
			if blocks.Load() {
				time.Sleep(30 * time.Second) //nolint:forbidigo // in a bubble
			}
			return true, ""
		})
		c.set("a", "b")
		c.expect(2, "")
		blocks.Store(true)
		c.set("c", "d", "e")
		c.ledger.SetNode(capacity.Node{Name: "a", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 9000}})
		pool, took := c.pool()
		if took > 0 { // The nodes were asked about when they came.
			t.Errorf("the view waited for %v", took)
		}
		if pool.Nodes != 2 || !strings.Contains(pool.Unusable.String(), "c is left out until Custom answers") {
			t.Errorf("%d nodes, left out %v; want b and the earlier state of a", pool.Nodes, pool.Unusable)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // in a bubble
		c.expect(5, "")
		if c.woken.Load() == 0 || waiting(c.nodes[2].filter.caller) > 0 {
			t.Error("nobody was woken, or there are still questions")
		}
	})
}

func TestAllWaitingForASlowFilterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(*plugin.Policy, *plugin.Node) (bool, string) {
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // in a bubble
			return true, ""
		})
		c.pool()
		start := time.Now()
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprint("n", i))
		}
		c.set(names...)
		if took := time.Since(start); took > time.Second {
			t.Errorf("100 nodes waited for %v", took)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		c.expect(100, "")
	})
}

func TestAFilterOfConsumersIsAskedByPolicyAndLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		f := consumerFunc(func(p *plugin.Policy, c *plugin.Consumer) (bool, string) {
			calls.Add(1)
			return c.Labels["tier"] == p.Name, "of another tier"
		})
		chain := New(config.Filters{Consumers: []string{"Basic", "Custom", "Affinity"}}, nil, map[string]plugin.ConsumerFilter{"Custom": f}, nil, Late{}, logr.Discard())
		var policies []offer.Policy
		for _, name := range []string{"gold", "silver"} {
			p := offer.Policy{Name: name, Class: name, Version: "1", Fixed: capacity.Amounts{capacity.CPU: 1000}}
			chain.AddTo(&v1alpha1.ResourcePolicy{}, &p)
			policies = append(policies, p)
		}
		in := offer.Input{Policies: policies, View: capacity.NewLedger().View(nil), Consumers: []offer.Consumer{
			{ID: "oslo", Labels: map[string]string{"tier": "silver"}}, {ID: "rome", Labels: map[string]string{"tier": "gold"}},
		}}
		r := offer.Evaluate(in)
		if o := r.Entries.Of("rome").Offers; len(o) != 1 || o[0].Class != "gold" || len(r.Default.Offers) != 0 {
			t.Errorf("rome is offered %v, anybody %v", o, r.Default.Offers)
		}
		after := calls.Load()
		r = offer.Evaluate(in.After(r))
		explainer := r.Explainer()
		candidates := explainer.Candidates("oslo")
		if len(candidates) != 2 || candidates[0].Because != "left out by Custom: of another tier" || calls.Load() != after {
			t.Errorf("candidates %v after %d more calls", candidates, calls.Load()-after)
		}
	})
}

type sliceFunc func(*plugin.Policy, *plugin.Request) (bool, string)

func (sliceFunc) Name() string { return "Custom" }

func (f sliceFunc) Filter(p *plugin.Policy, r *plugin.Request) (bool, string) { return f(p, r) }

// ownFilter is the filter of a policy. It refuses requests without cpu.
type ownFilter struct{ offer.SliceFilter }

func (ownFilter) Rule(r *offer.Request) (offer.Ruling, string) {
	if r.Resources[capacity.CPU] == 0 {
		return offer.Refused, "no cpu"
	}
	return offer.Admitted, ""
}

func TestAFilterOfSlicesSeesTheRequestAndDecidesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		var seen atomic.Pointer[plugin.Request]
		woken := make(chan struct{}, 1)
		f := sliceFunc(func(p *plugin.Policy, r *plugin.Request) (bool, string) {
			if slow.Load() {
				time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			}
			seen.Store(r)
			if r.Labels["team"] == "panic" {
				panic("no such team")
			}
			return r.Labels["team"] == p.Name, "of another team"
		})
		chain := New(config.Filters{Slices: []string{"Basic", "Affinity", "Custom"}}, nil, nil, map[string]plugin.SliceFilter{"Custom": f},
			Late{Wake: func() { woken <- struct{}{} }}, logr.Discard())
		p := &offer.Policy{Name: "gold", Class: "gold", Version: "1", Slices: offer.Slices{Filters: []offer.SliceFilter{ownFilter{}}}}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		p.Nodes = &offer.Nodes{Percent: 100}
		ledger := capacity.NewLedger()
		terms := offer.NewAllocationInput(offer.Input{
			Policies: []offer.Policy{*p}, View: ledger.View(offer.Selections([]offer.Policy{*p})), Now: time.Now(),
			Consumers: []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "gold"}}},
		})
		rule := func(team string, cpu int64) string {
			ruling, why := terms.Rule(p, &offer.Request{
				Key: "tenant/s", Consumer: offer.Consumer{ID: "rome"}, Resources: capacity.Amounts{capacity.CPU: cpu},
				Labels: map[string]string{"team": team},
			}, time.Now().Add(-90*time.Second).Unix())
			return fmt.Sprint(int(ruling), " ", why)
		}
		for _, tc := range []struct {
			team string
			cpu  int64
			want string
		}{
			{"gold", 0, "1 no cpu"}, {"gold", 2000, "0 "}, {"silver", 2000, "1 left out by Custom: of another team"},
			{"panic", 2000, "1 left out because Custom panics: no such team"},
		} {
			if got := rule(tc.team, tc.cpu); got != tc.want {
				t.Errorf("team %s: %s, want %s", tc.team, got, tc.want)
			}
		}
		want := &plugin.Request{
			Consumer:  plugin.Consumer{ClusterID: "rome", Labels: map[string]string{"tier": "gold"}},
			Namespace: "tenant", Name: "s", Labels: map[string]string{"team": "panic"}, Age: 90 * time.Second,
			Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}
		if diff := cmp.Diff(want, seen.Load()); diff != "" {
			t.Error(diff)
		}
		// While there is no answer, the last one counts. Another edit of the policy has none.
		slow.Store(true)
		p.Version = "2"
		p.Slices.Filters = []offer.SliceFilter{ownFilter{}}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		if got, want := rule("gold", 2000), "2 left out until Custom answers"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		<-woken
		if got := rule("gold", 2000); got != "0 " {
			t.Error(got)
		}
		if names := chain.Names(); len(names) != 1 || names[0] != "Custom" {
			t.Errorf("filters %v", names)
		}
		r := chain.Rehearse()
		r.left = time.Second
		all := r.Policies([]table.Policy{{Name: "gold", Parsed: p}})
		if got := fmt.Sprint(all[0].Parsed.Slices.Filters[1].Rule(&offer.Request{Key: "tenant/other", Resources: capacity.Amounts{"cpu": 1}})); got != "2left out because Custom has not answered in time" {
			t.Error(got)
		}
		if got := fmt.Sprint(r.Unanswered()); got != "[Custom]" {
			t.Error(got)
		}
		time.Sleep(5 * time.Minute) //nolint:forbidigo // in a bubble, until the filter has answered
	})
}

// A consumer asks for little, and for much once that is admitted. A filter that is slow, or hangs, must neither
// admit that unseen nor be asked about each state in between.
func TestAnAnswerAboutARequestIsNoneAboutAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var slow atomic.Bool
		f := sliceFunc(func(_ *plugin.Policy, r *plugin.Request) (bool, string) {
			if slow.Load() {
				<-hangs
			}
			return r.Resources.Cpu().Value() <= 8, "too much"
		})
		chain := New(config.Filters{Slices: []string{"Basic", "Affinity", "Custom"}}, nil, nil, map[string]plugin.SliceFilter{"Custom": f},
			Late{Wake: func() {}}, logr.Discard())
		p := &offer.Policy{Name: "gold", Class: "gold", Version: "1"}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		rule := func(cpu int64, age time.Duration) offer.Ruling {
			ruling, _ := p.Slices.Filters[0].Rule(&offer.Request{Key: "tenant/s", Resources: capacity.Amounts{capacity.CPU: cpu}, Age: age})
			return ruling
		}
		if got := rule(2000, 0); got != offer.Admitted {
			t.Fatalf("the request is ruled %d", got)
		}
		slow.Store(true)
		if got := rule(2000, time.Minute); got != offer.Admitted {
			t.Errorf("the same request, a minute later, is ruled %d, want as before", got)
		}
		for cpu := range int64(1000) {
			if got := rule(1_000_000+cpu, 0); got != offer.Undecided {
				t.Fatalf("another request is ruled %d, want %d", got, offer.Undecided)
			}
		}
		if n := waiting(chain.slices[2].filter.caller); n > 1 {
			t.Errorf("%d questions wait about one slice", n)
		}
		close(hangs)
		synctest.Wait()
		if got := rule(1_000_999, 0); got != offer.Refused {
			t.Errorf("the last request is ruled %d, want %d", got, offer.Refused)
		}
	})
}

func TestARehearsalAsksWithoutAnyEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		var asked sync.Map
		c := newCluster(t, func(p *plugin.Policy, n *plugin.Node) (bool, string) {
			asked.Store(p.Name+" "+n.Name, true)
			if slow.Load() {
				time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			}
			return n.Name != "b", "never b"
		})
		c.set("a", "b")
		c.expect(1, "b is left out by Custom: never b")
		rehearse := func() (*Rehearsal, func() capacity.Pool) {
			r, copied := c.Rehearse(), c.ledger.Copy().Ledger()
			policies := r.Policies([]table.Policy{{Name: "gold", Parsed: c.policy}, {Name: "invalid"}})
			copied.SetNode(capacity.Node{Name: "added/0/0", State: capacity.Ready})
			return r, func() capacity.Pool {
				return copied.View([]capacity.Selection{policies[0].Parsed.Nodes.Selection}).Pools[0]
			}
		}
		r, pool := rehearse()
		if p := pool(); p.Nodes != 2 || len(r.Unanswered()) != 0 {
			t.Errorf("%d nodes, unanswered %v", p.Nodes, r.Unanswered())
		}
		if n := c.policy.Nodes.Selection.Filters[0].(nodeFilter).known.Len(); n != 2 {
			t.Errorf("%d answers are remembered, want those of the cluster alone", n)
		}

		slow.Store(true)
		r, pool = rehearse()
		start := time.Now()
		p := pool()
		if took := time.Since(start); took > maxRehearsal || p.Nodes != 1 || !slices.Equal(r.Unanswered(), []string{"Custom"}) {
			t.Errorf("%d nodes after %v, unanswered %v; want the known answers, and to know of the others", p.Nodes, took, r.Unanswered())
		}
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
	})
}

// TestQuestionsDoNotPileUp while a call hangs, with each edit of a policy and with each rehearsal.
func TestQuestionsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCluster(t, func(*plugin.Policy, *plugin.Node) (bool, string) { <-release; return true, "" })
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprint("n", i))
		}
		c.set(names...)
		for range 20 {
			c.policy = c.parsed("gold")
			c.ledger.View(nil)
			c.pool()
			r, copied := c.Rehearse(), c.ledger.Copy().Ledger()
			policies := r.Policies([]table.Policy{{Name: "gold", Parsed: c.policy}})
			if p := copied.View([]capacity.Selection{policies[0].Parsed.Nodes.Selection}).Pools[0]; p.Nodes != 0 {
				t.Errorf("%d nodes", p.Nodes)
			}
		}
		if unanswered := waiting(c.nodes[2].filter.caller); unanswered > len(names) {
			t.Errorf("%d questions wait, want at most one for each of %d nodes", unanswered, len(names))
		}
		close(release)
		synctest.Wait()
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if p, _ := c.pool(); p.Nodes != len(names) {
			t.Errorf("%d nodes in the end", p.Nodes)
		}
	})
}

func TestPoliciesThatAreNoMoreAreForgotten(t *testing.T) {
	c := newCluster(t, func(*plugin.Policy, *plugin.Node) (bool, string) { return true, "" })
	const edits = 100
	var forgotten atomic.Int32
	for i := range edits {
		p := c.parsed(fmt.Sprint("edit ", i))
		runtime.AddCleanup(p.Nodes.Selection.Filters[0].(nodeFilter).answers, func(int) { forgotten.Add(1) }, i)
	}
	test.Eventually(t, func() string {
		runtime.GC()
		if n := edits - forgotten.Load(); n > 1 {
			return fmt.Sprintf("%d policies are known", n)
		}
		return ""
	})
	runtime.KeepAlive(c)
}

func TestTheOrderOfAChainIsChecked(t *testing.T) {
	for _, tc := range []struct {
		order []string
		want  string
	}{
		{nil, ""},
		{[]string{"Basic", "Affinity"}, ""},
		{[]string{"Custom", "Affinity", "Basic"}, ""},
		{[]string{"Basic", "Affinity", "Custom", "Custom"}, "filters.nodes lists Custom twice: leave one of them out"},
		{[]string{"Basic", "Affinity", "custom"}, `filters.nodes lists "custom", and there is no such filter: write Basic, Affinity or Custom`},
		{[]string{"Affinity"}, "filters.nodes leaves out Basic: add it, since fields of policies have no effect without it"},
		{[]string{"Basic", "Custom"}, "filters.nodes leaves out Affinity: add it, since fields of policies have no effect without it"},
	} {
		got := ""
		if err := CheckOrder("filters.nodes", tc.order, []string{"Custom"}); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.order, got, tc.want)
		}
	}
}
