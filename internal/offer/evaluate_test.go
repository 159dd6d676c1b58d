package offer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/internal/capacity"
)

const gi = 1 << 30

// cluster is the ledger of a small cluster.
type cluster struct{ *capacity.Ledger }

func newCluster(nodes ...string) cluster {
	c := cluster{capacity.NewLedger()}
	for _, name := range nodes {
		c.node(name, capacity.Amounts{capacity.CPU: 8000, capacity.Memory: 32 * gi, capacity.Pods: 110})
	}
	return c
}

func (c cluster) node(name string, allocatable capacity.Amounts) {
	c.SetNode(capacity.Node{Name: name, Labels: map[string]string{"name": name}, State: capacity.Ready, Allocatable: allocatable})
}

func (c cluster) cordon(name string) {
	c.SetNode(capacity.Node{Name: name, Allocatable: capacity.Amounts{capacity.CPU: 8000, capacity.Memory: 32 * gi, capacity.Pods: 110}})
}

func (c cluster) pod(key, node, consumer string, milli int64) {
	c.SetPod(capacity.Pod{Key: key, Node: node, Consumer: consumer, Requests: capacity.Amounts{capacity.CPU: milli}})
}

// evaluate evaluates the policies for these consumers on the cluster.
func (c cluster) evaluate(prev *Result, consumers []Consumer, policies ...Policy) *Result {
	in := c.input(consumers, policies...)
	return Evaluate(in.After(prev))
}

func (c cluster) input(consumers []Consumer, policies ...Policy) Input {
	return Input{Policies: policies, Consumers: consumers, View: c.View(Selections(policies), ResourceNames(policies)...)}
}

func ids(names ...string) Scope {
	s := Scope{IDs: map[string]struct{}{}}
	for _, name := range names {
		s.IDs[name] = struct{}{}
	}
	return s
}

func consumers(names ...string) []Consumer {
	all := make([]Consumer, 0, len(names))
	for _, name := range names {
		all = append(all, Consumer{ID: name})
	}
	return all
}

func fixed(name string, a capacity.Amounts, with ...func(*Policy)) Policy {
	return policy(name, append([]func(*Policy){func(p *Policy) { p.Fixed = a }}, with...)...)
}

func ofNodes(name string, with ...func(*Policy)) Policy {
	return policy(name, append([]func(*Policy){func(p *Policy) { p.Nodes = &Nodes{Percent: 100} }}, with...)...)
}

func policy(name string, with ...func(*Policy)) Policy {
	p := Policy{Name: name, Version: "1"}
	for _, f := range with {
		f(&p)
	}
	return p
}

func percent(n int64) func(*Policy)   { return func(p *Policy) { p.Nodes.Percent = n } }
func reclaim(r Reclaim) func(*Policy) { return func(p *Policy) { p.Reclaim = r } }
func class(c string) func(*Policy)    { return func(p *Policy) { p.Class = c } }
func threshold(n int64) func(*Policy) { return func(p *Policy) { p.ThresholdPercent = n } }
func priority(n int32) func(*Policy)  { return func(p *Policy) { p.Priority = n } }
func version(v string) func(*Policy)  { return func(p *Policy) { p.Version = v } }
func dryRun(p *Policy)                { p.DryRun = true }
func scope(s Scope) func(*Policy)     { return func(p *Policy) { p.Consumers = s } }
func selecting(name string) func(*Policy) {
	return func(p *Policy) {
		p.Nodes.Selection.Selector = withLabel("name", name)
	}
}

// withLabel selects objects by the value of one label. It implements capacity.Selector.
func withLabel(key, value string) capacity.Selector { return labelSelector{key, value} }

type labelSelector struct{ key, value string }

func (l labelSelector) Matches(labels map[string]string) bool { return labels[l.key] == l.value }
func (l labelSelector) Keys() []string                        { return []string{l.key} }
func (l labelSelector) String() string                        { return l.key + "=" + l.value }

// offered returns the amounts that a consumer reads, by class.
func offered(r *Result, id string) map[string]capacity.Amounts {
	entry := r.Of(id)
	all := map[string]capacity.Amounts{}
	for _, o := range entry.Offers {
		a := capacity.Amounts{}
		for _, amount := range o.Amounts {
			a[amount.Resource] = amount.Value
		}
		all[o.Class] = a
	}
	return all
}

func cpu(r *Result, id string) int64 { return offered(r, id)[""][capacity.CPU] }

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Step{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTheWorkedExample(t *testing.T) {
	c := newCluster("n1", "n2")
	c.pod("local", "n1", "", 2000)
	c.pod("rome", "n1", "rome", 3000)
	c.pod("oslo", "n2", "oslo", 1000)
	r := c.evaluate(nil, nil, ofNodes("half", percent(50)))
	expect(t, "rome", cpu(r, "rome"), int64(6000))
	expect(t, "oslo", cpu(r, "oslo"), int64(4000))
	expect(t, "anyone", cpu(r, "paris"), int64(3000))
	report := r.Reports["half"]
	expect(t, "capacity", report.Capacity[capacity.CPU], int64(7000))
	expect(t, "committed", report.Committed[capacity.CPU], int64(4000))
	expect(t, "remaining", report.Remaining[capacity.CPU], int64(3000))
	step := r.Explainer().Of("rome")[0].Now[0]
	expect(t, "steps", step, Step{
		Resource: capacity.CPU, Source: FromNodes, Counted: 14000, Percent: 50, Pool: 7000, Committed: 4000,
		Own: 3000, Remaining: 3000, Max: -1, Held: -1, Offer: 6000,
	})
}

func TestTheArithmetic(t *testing.T) {
	gpu := "nvidia.com/gpu"
	cases := []struct {
		name   string
		nodes  []capacity.Amounts
		local  int64
		policy Policy
		want   capacity.Amounts
	}{
		{"fixed amounts as they are", nil, 0,
			fixed("p", capacity.Amounts{"cpu": 2000, "memory": 2e9, "pods": 10}), capacity.Amounts{"cpu": 2000, "memory": 2e9, "pods": 10}},
		{"max cuts fixed amounts", nil, 0,
			fixed("p", capacity.Amounts{"cpu": 2000}, func(p *Policy) { p.Max = capacity.Amounts{"cpu": 500} }), capacity.Amounts{"cpu": 500}},
		{"reserve before percent", []capacity.Amounts{{"cpu": 8000}}, 0,
			ofNodes("p", percent(50), func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"cpu": 4000} }), capacity.Amounts{"cpu": 2000}},
		{"a reserve larger than the pool leaves 0", []capacity.Amounts{{"cpu": 8000}}, 0,
			ofNodes("p", func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"cpu": 9000} }), capacity.Amounts{"cpu": 0}},
		{"local pods are subtracted", []capacity.Amounts{{"cpu": 8000}}, 1500,
			ofNodes("p"), capacity.Amounts{"cpu": 6500}},
		{"count: Allocatable ignores local pods", []capacity.Amounts{{"cpu": 8000}}, 1500,
			ofNodes("p", func(p *Policy) { p.Nodes.Count = Allocatable }), capacity.Amounts{"cpu": 8000}},
		{"percentages floor", []capacity.Amounts{{gpu: 1}}, 0,
			ofNodes("p", percent(30)), capacity.Amounts{gpu: 0}},
		{"another percentage for one resource", []capacity.Amounts{{"cpu": 8000, gpu: 3}}, 0,
			ofNodes("p", percent(50), func(p *Policy) { p.Nodes.Percentages = map[string]int64{gpu: 100} }), capacity.Amounts{"cpu": 4000, gpu: 3}},
		{"a share of the pool, rounded down", []capacity.Amounts{{"cpu": 10_000, gpu: 5}}, 0,
			ofNodes("p", percent(50), func(p *Policy) { p.MaxShares = Shares{Percent: 33} }), capacity.Amounts{"cpu": 1650, gpu: 0}},
		{"another share of one resource", []capacity.Amounts{{"cpu": 8000, gpu: 4}}, 0,
			ofNodes("p", func(p *Policy) { p.MaxShares = Shares{Percent: 25, Percentages: map[string]int64{gpu: 50}} }), capacity.Amounts{"cpu": 2000, gpu: 2}},
		{"the smaller of share and max", []capacity.Amounts{{"cpu": 8000, gpu: 4}}, 0,
			ofNodes("p", func(p *Policy) { p.MaxShares, p.Max = Shares{Percent: 50}, capacity.Amounts{"cpu": 5000, gpu: 1} }), capacity.Amounts{"cpu": 4000, gpu: 1}},
		{"above 100 overcommits", []capacity.Amounts{{"cpu": 8000}}, 0,
			ofNodes("p", percent(150)), capacity.Amounts{"cpu": 12000}},
		{"only the resources named", []capacity.Amounts{{"cpu": 8000, gpu: 3}}, 0,
			ofNodes("p", func(p *Policy) { p.Resources = []string{"cpu"} }), capacity.Amounts{"cpu": 8000}},
		{"2^63-1 bytes on two nodes at 1000 percent stay 2^63-1", []capacity.Amounts{{"memory": 1<<63 - 1}, {"memory": 1<<63 - 1}}, 0,
			ofNodes("p", percent(1000)), capacity.Amounts{"memory": 1<<63 - 1}},
		{"a node without allocatable adds nothing", []capacity.Amounts{{"cpu": 8000}, nil}, 0,
			ofNodes("p"), capacity.Amounts{"cpu": 8000}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster()
			for i, allocatable := range tc.nodes {
				c.node(string(rune('a'+i)), allocatable)
			}
			if tc.local > 0 {
				c.pod("local", "a", "", tc.local)
			}
			r := c.evaluate(nil, consumers("rome"), tc.policy)
			expect(t, "rome", offered(r, "rome")[""], tc.want)
		})
	}
}

func TestWhichPolicyDecides(t *testing.T) {
	amount := func(n int64) capacity.Amounts { return capacity.Amounts{capacity.CPU: n} }
	created := func(n int64) func(*Policy) { return func(p *Policy) { p.Created = n } }
	rome := Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}
	gold := Scope{Selector: withLabel("tier", "gold")}
	cases := []struct {
		name     string
		policies []Policy
		want     int64
	}{
		{"the highest priority", []Policy{fixed("a", amount(1)), fixed("b", amount(2), priority(1))}, 2},
		{"with equal priority, the oldest", []Policy{fixed("a", amount(1), created(20)), fixed("b", amount(2), created(10))}, 2},
		{"with equal age, the first by name", []Policy{fixed("b", amount(2)), fixed("a", amount(1))}, 1},
		{"not one for another consumer", []Policy{fixed("a", amount(1), priority(1), scope(ids("oslo"))), fixed("b", amount(2))}, 2},
		{"by label", []Policy{fixed("a", amount(1), priority(1), scope(gold)), fixed("b", amount(2))}, 1},
		{"not a dry run", []Policy{fixed("a", amount(1), priority(1), dryRun), fixed("b", amount(2))}, 2},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := newCluster().evaluate(nil, []Consumer{rome}, tc.policies...)
			expect(t, "rome", cpu(r, "rome"), tc.want)
		})
	}
}

func TestTheFirstOverrideThatMatchesReplacesResourceByResource(t *testing.T) {
	p := fixed("p", capacity.Amounts{"cpu": 1, "memory": 2, "pods": 3}, func(p *Policy) {
		p.Max = capacity.Amounts{"pods": 2}
		p.Overrides = []Override{
			{Consumers: ids("rome"), Fixed: capacity.Amounts{"cpu": 8, "nvidia.com/gpu": 1}, Max: capacity.Amounts{"pods": 9}},
			{Consumers: ids("rome", "oslo"), Fixed: capacity.Amounts{"cpu": 9}},
		}
	})
	r := newCluster().evaluate(nil, consumers("paris"), p)
	expect(t, "rome", offered(r, "rome")[""], capacity.Amounts{"cpu": 8, "memory": 2, "pods": 3, "nvidia.com/gpu": 1})
	expect(t, "oslo", offered(r, "oslo")[""], capacity.Amounts{"cpu": 9, "memory": 2, "pods": 2})
	expect(t, "paris", offered(r, "paris")[""], capacity.Amounts{"cpu": 1, "memory": 2, "pods": 2})
	expect(t, "override of oslo", r.Entries.Of("oslo").Offers[0].Override, 1)
}

func TestAConsumersOwnPodsDoNotShrinkItsOffer(t *testing.T) {
	c := newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), ofNodes("p"))
	c.pod("a", "n1", "rome", 3000)
	after := c.evaluate(before, consumers("rome"), ofNodes("p"))
	expect(t, "rome", cpu(after, "rome"), cpu(before, "rome"))
}

func TestPoliciesOfOverlappingNodesSubtractEachOthersCommitments(t *testing.T) {
	c := newCluster("n1", "n2")
	policies := []Policy{ofNodes("a", class("a"), selecting("n1")), ofNodes("b", class("b")), ofNodes("c", class("c"), selecting("n2"))}
	grants := map[string]map[string]capacity.Amounts{
		"a": {"rome": {capacity.CPU: 2000}},
		"b": {"oslo": {capacity.CPU: 1000}},
	}
	r := Evaluate(Input{Policies: policies, View: c.View(Selections(policies), ResourceNames(policies)...), Grants: grants, Consumers: consumers("paris")})
	got := map[string]int64{}
	for name, report := range r.Reports {
		got[name] = report.Remaining[capacity.CPU]
	}
	expect(t, "remaining", got, map[string]int64{"a": 5000, "b": 13000, "c": 7000})
	expect(t, "rome in a", offered(r, "rome")["a"][capacity.CPU], int64(7000))
}

func TestACommitmentIsTheLargerOfGrantedAndUsed(t *testing.T) {
	c := newCluster("n1")
	c.pod("r", "n1", "rome", 3000)
	c.pod("o", "n1", "oslo", 1000)
	policies := []Policy{ofNodes("p", class("a"))}
	grants := map[string]map[string]capacity.Amounts{"a": {"rome": {capacity.CPU: 2000}, "oslo": {capacity.CPU: 4000}}}
	r := Evaluate(Input{Policies: policies, View: c.View(Selections(policies), ResourceNames(policies)...), Grants: grants})
	expect(t, "committed", r.Reports["p"].Committed[capacity.CPU], int64(7000))
	policies[0].Nodes.Count = Allocatable
	r = Evaluate(Input{Policies: policies, View: c.View(Selections(policies), ResourceNames(policies)...), Grants: grants})
	expect(t, "committed of allocatable", r.Reports["p"].Committed[capacity.CPU], int64(6000))
}

func TestReclaim(t *testing.T) {
	ten, four := capacity.Amounts{"cpu": 10000, "memory": 10}, capacity.Amounts{"cpu": 4000, "memory": 10}
	cases := []struct {
		name    string
		reclaim Reclaim
		used    int64
		granted int64
		want    int64
	}{
		{"Unused takes back what is not used", Unused, 2000, 0, 4000},
		{"Unused keeps what pods request", Unused, 6000, 0, 6000},
		{"Unused keeps at most what was offered", Unused, 12000, 0, 10000},
		{"Unused does not keep an unused grant", Unused, 2000, 7000, 4000},
		{"Evict takes back everything", Evict, 6000, 7000, 4000},
		{"Retain keeps the grant", Retain, 2000, 7000, 7000},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster("n1", "n2")
			in := func(a capacity.Amounts, v string) Input {
				policies := []Policy{fixed("p", a, reclaim(tc.reclaim), version(v), class("c"))}
				return Input{Policies: policies, Consumers: consumers("rome"), View: c.View(nil), Grants: map[string]map[string]capacity.Amounts{"c": {"rome": {"cpu": tc.granted}}}}
			}
			before := Evaluate(in(ten, "1"))
			c.pod("a", "n1", "rome", tc.used)
			after := Evaluate(in(four, "2").After(before))
			expect(t, "cpu", offered(after, "rome")["c"]["cpu"], tc.want)
			expect(t, "held", after.Reports["p"].Consumers[0].Held, tc.want > 4000)
		})
	}
}

func TestEvictSharesOutAPoolThatFellBelowItsCommitments(t *testing.T) {
	c := newCluster("n1", "n2")
	c.pod("a", "n1", "rome", 6000)
	c.pod("b", "n2", "oslo", 3000)
	six := func(p *Policy) { p.Nodes.Reserve = capacity.Amounts{"cpu": 10000} }
	r := c.evaluate(nil, nil, ofNodes("p", reclaim(Evict), six))
	expect(t, "rome", cpu(r, "rome"), int64(4000))
	expect(t, "oslo", cpu(r, "oslo"), int64(2000))
	r = c.evaluate(nil, nil, ofNodes("p", six))
	expect(t, "rome, unused", cpu(r, "rome"), int64(6000))
}

func TestEvictLeavesToGrantsWhatWasDecidedOnThem(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 8000)
	c.pod("b", "n1", "oslo", 6000)
	policy := ofNodes("p", reclaim(Evict), func(p *Policy) { p.Class = "gold" })
	in := Input{Policies: []Policy{policy}, View: c.View(Selections([]Policy{policy}), ResourceNames([]Policy{policy})...), Grants: map[string]map[string]capacity.Amounts{
		"gold": {"rome": {"cpu": 8000}, "oslo": {"cpu": 0}},
	}}
	r := Evaluate(in)
	expect(t, "rome", offered(r, "rome")["gold"]["cpu"], int64(8000))
	expect(t, "oslo", offered(r, "oslo")["gold"]["cpu"], int64(0))
}

func TestCordoningANodeDoesNotTakeWhatPodsOnItRequest(t *testing.T) {
	c := newCluster("n1", "n2")
	c.pod("a", "n1", "rome", 6000)
	before := c.evaluate(nil, nil, ofNodes("p"))
	c.cordon("n1")
	c.cordon("n2")
	after := c.evaluate(before, nil, ofNodes("p"))
	expect(t, "cpu", cpu(after, "rome"), int64(6000))
	expect(t, "outcome", after.Reports["p"].Outcome, NoNodes)
}

func TestCPUAndMemoryNeverReachZeroUnderRunningPods(t *testing.T) {
	amounts := capacity.Amounts{"cpu": 1000, "memory": 1000, "pods": 10}
	zero := capacity.Amounts{"cpu": 0, "memory": 0, "pods": 0}
	for _, tc := range []struct {
		name    string
		reclaim Reclaim
		want    capacity.Amounts
		zeroed  []string
	}{
		{"unused", Unused, capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1}, nil},
		{"retain", Retain, capacity.Amounts{"cpu": 1, "memory": 1, "pods": 1}, nil},
		{"evict", Evict, zero, []string{"rome"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster("n1")
			c.SetPod(capacity.Pod{Key: "best-effort", Node: "n1", Consumer: "rome"})
			before := c.evaluate(nil, nil, fixed("p", amounts))
			after := c.evaluate(before, nil, fixed("p", zero, version("2"), reclaim(tc.reclaim)))
			expect(t, "rome", offered(after, "rome")[""], tc.want)
			expect(t, "zeroed", after.Reports["p"].Zeroed, tc.zeroed)
		})
	}
}

func TestAResourceOnceOfferedIsRevokedByAnExplicitZero(t *testing.T) {
	c := newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 1, "gpu": 2}))
	edited := fixed("p", capacity.Amounts{"cpu": 1}, version("2"))
	after := c.evaluate(before, consumers("rome"), edited)
	want := capacity.Amounts{"cpu": 1, "gpu": 0}
	expect(t, "after the edit", offered(after, "rome")[""], want)
	expect(t, "after another evaluation", offered(c.evaluate(after, consumers("rome"), edited), "rome")[""], want)
	edited.Known = []string{"cpu", "gpu"}
	expect(t, "after a restart", offered(c.evaluate(nil, consumers("rome"), edited), "rome")[""], want)
}

func TestWhenNoPolicyDecidesAnyMoreTheOfferIsWithdrawnByZeros(t *testing.T) {
	c := newCluster("n1")
	before := c.evaluate(nil, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 5000, "memory": 5}, class("gold")))
	after := c.evaluate(before, consumers("rome"))
	zero := map[string]capacity.Amounts{"gold": {"cpu": 0, "memory": 0}}
	expect(t, "withdrawn", offered(after, "rome"), zero)
	expect(t, "identity", c.evaluate(after, consumers("rome")).Entries.Of("rome") == after.Entries.Of("rome"), true)
	expect(t, "unknown consumers, who may have read it", offered(after, "oslo"), zero)

	c.pod("a", "n1", "rome", 2000)
	after = c.evaluate(before, consumers("rome"))
	expect(t, "under running pods", offered(after, "rome"), map[string]capacity.Amounts{"gold": {"cpu": 2000, "memory": 1}})
	c.DeletePod("a")
	expect(t, "after the pods are gone", offered(c.evaluate(after, consumers("rome")), "rome"), zero)
	back := c.evaluate(after, consumers("rome"), fixed("q", capacity.Amounts{"cpu": 1}, class("gold")))
	expect(t, "another policy", offered(back, "rome"), map[string]capacity.Amounts{"gold": {"cpu": 1, "memory": 0}})
}

func TestAtTheStartWhatPodsRequestMustHaveBeenOffered(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "rome", 6000)
	r := c.evaluate(nil, nil, fixed("p", capacity.Amounts{"cpu": 4000, "memory": 1}))
	expect(t, "rome", cpu(r, "rome"), int64(6000))
	both := c.evaluate(nil, nil, fixed("p", capacity.Amounts{"cpu": 4000}, class("a")), fixed("q", capacity.Amounts{"cpu": 4000}, class("b")))
	expect(t, "pods that may belong to either class raise neither", offered(both, "rome"), map[string]capacity.Amounts{"a": {"cpu": 4000}, "b": {"cpu": 4000}})
}

func TestThreshold(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	start := capacity.Amounts{"cpu": 1000, "memory": 0, gpu: 24}
	cases := []struct {
		name      string
		with      []func(*Policy)
		now       capacity.Amounts
		published bool
	}{
		{"a change equal to the threshold is held back", []func(*Policy){threshold(5)}, capacity.Amounts{"cpu": 950, "memory": 0, gpu: 24}, false},
		{"a larger fall is published", []func(*Policy){threshold(5)}, capacity.Amounts{"cpu": 949, "memory": 0, gpu: 24}, true},
		{"a larger rise is published", []func(*Policy){threshold(5)}, capacity.Amounts{"cpu": 1051, "memory": 0, gpu: 24}, true},
		{"a rise from 0 is published", []func(*Policy){threshold(100)}, capacity.Amounts{"cpu": 1000, "memory": 1, gpu: 24}, true},
		{"a fall to 0 is published", []func(*Policy){threshold(100)}, capacity.Amounts{"cpu": 0, "memory": 0, gpu: 24}, true},
		{"a new resource is published", []func(*Policy){threshold(100)}, capacity.Amounts{"cpu": 1000, "memory": 0, gpu: 24, "gpu": 0}, true},
		{"an edit of the policy is published", []func(*Policy){threshold(50), version("2")}, capacity.Amounts{"cpu": 999, "memory": 0, gpu: 24}, true},
		{"a lost device is published", []func(*Policy){threshold(100)}, capacity.Amounts{"cpu": 1000, "memory": 0, gpu: 23}, true},
		{"a new device is published", []func(*Policy){threshold(100)}, capacity.Amounts{"cpu": 1000, "memory": 0, gpu: 25}, true},
		{"a threshold of 0 holds nothing back", []func(*Policy){threshold(0)}, capacity.Amounts{"cpu": 999, "memory": 0, gpu: 24}, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster()
			c.node("n1", start)
			before := c.evaluate(nil, consumers("rome"), ofNodes("p", tc.with[0]))
			c.node("n1", tc.now)
			after := c.evaluate(before, consumers("rome"), ofNodes("p", tc.with...))
			same := after.Entries.Of("rome") == before.Entries.Of("rome")
			expect(t, "published", !same, tc.published)
		})
	}
}

func TestWhatDidNotChangeKeepsItsIdentity(t *testing.T) {
	c := newCluster("n1")
	policies := []Policy{ofNodes("p"), fixed("q", capacity.Amounts{"cpu": 1}, class("gold"))}
	before := c.evaluate(nil, consumers("oslo", "rome"), policies...)
	after := c.evaluate(before, consumers("oslo", "rome", "paris"), policies...)
	for _, id := range []string{"oslo", "rome"} {
		expect(t, id, after.Entries.Of(id) == before.Entries.Of(id), true)
	}
	expect(t, "equal offers are shared", before.Entries.Of("oslo") == before.Entries.Of("rome"), true)
	expect(t, "anyone", after.Default == before.Default, true)
	expect(t, "a new consumer keeps the default entry", after.Entries.Of("paris") == before.Default, true)
}

func TestAnEditThatChangesNoAmountReadsTheSame(t *testing.T) {
	c := newCluster()
	before := c.evaluate(nil, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 1}))
	after := c.evaluate(before, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 1}, version("2")))
	expect(t, "amounts", after.Entries.Of("rome").SameAmounts(before.Entries.Of("rome")), true)
	other := c.evaluate(after, consumers("rome"), fixed("p", capacity.Amounts{"cpu": 2}, version("3")))
	expect(t, "other amounts", other.Entries.Of("rome").SameAmounts(after.Entries.Of("rome")), false)
	expect(t, "no entry", (*Entry)(nil).SameAmounts(after.Entries.Of("rome")), false)
	expect(t, "no entries", (*Entry)(nil).SameAmounts(&Entry{}), true)
}

func TestConsumersThatNoObjectDescribes(t *testing.T) {
	c := newCluster("n1")
	c.pod("a", "n1", "by-pod", 1)
	p := fixed("p", capacity.Amounts{"cpu": 1}, func(p *Policy) {
		p.Overrides = []Override{{Consumers: ids("by-override"), Fixed: capacity.Amounts{"cpu": 2}}}
	})
	q := fixed("q", capacity.Amounts{"cpu": 1}, scope(ids("by-policy")), class("gold"))
	in := Input{Policies: []Policy{p, q}, View: c.View(nil), Grants: map[string]map[string]capacity.Amounts{"gold": {"by-grant": {"cpu": 1}}}}
	var got []string
	for id := range Evaluate(in).Entries.All {
		got = append(got, id)
	}
	expect(t, "known", got, []string{"by-grant", "by-override", "by-pod", "by-policy"})
}
