package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func (c cluster) granted(grants map[string]map[string]capacity.Amounts, policies ...Policy) *Result {
	return Evaluate(Input{Policies: policies, View: c.View(Selections(policies)), Grants: grants})
}

func TestGrantsOfAClassThatNoPolicyDecidesForAreCommittedEverywhere(t *testing.T) {
	c := newCluster("a")
	left := map[string]map[string]capacity.Amounts{"gold": {"rome": {capacity.CPU: 8000}}}
	silver := ofNodes("silver", class("silver"), scope(ids("rome", "oslo")))
	r := c.granted(left, silver)
	expect(t, "oslo", offered(r, "oslo")["silver"][capacity.CPU], int64(0))
	// Rome cannot use in another class what it holds in the class that is gone.
	expect(t, "rome", offered(r, "rome")["silver"][capacity.CPU], int64(0))
	// Rome's pods use part of its grant on these nodes. That part is committed only once.
	c.pod("p", "a", "rome", 3000)
	left["gold"]["rome"][capacity.CPU] = 5000
	expect(t, "oslo, while rome has pods", offered(c.granted(left, silver), "oslo")["silver"][capacity.CPU], int64(3000))
	// Grants of fixed amounts take nothing from nodes.
	c = newCluster("a")
	fixedGold := fixed("gold", capacity.Amounts{capacity.CPU: 8000}, class("gold"))
	expect(t, "oslo, while rome has fixed amounts", offered(c.granted(left, silver, fixedGold), "oslo")["silver"][capacity.CPU], int64(8000))
}

func TestGrantsOfADryRunAreCommittedOnItsNodesAlone(t *testing.T) {
	c := newCluster("a", "b")
	on := func(node string) func(*Policy) {
		return func(p *Policy) { p.Nodes.Selection.Selector = withLabel("name", node) }
	}
	dry := func(p *Policy) { p.DryRun = true }
	policies := []Policy{ofNodes("gold", class("gold"), on("a"), dry), ofNodes("same", class("same"), on("a")), ofNodes("silver", class("silver"), on("b"))}
	for name, tc := range map[string]struct {
		by           []string
		same, silver int64
	}{
		"by the dry run":                {[]string{"gold"}, 2000, 8000},
		"also by a policy that is gone": {[]string{"gold", "gone"}, 2000, 2000},
		"by an unknown policy":          {nil, 2000, 2000},
	} {
		r := Evaluate(Input{
			Policies: policies, Consumers: consumers("oslo"), View: c.View(Selections(policies)),
			Grants:    map[string]map[string]capacity.Amounts{"gold": {"rome": {capacity.CPU: 6000}}},
			GrantedBy: map[string]map[string][]string{"gold": {"rome": tc.by}},
		})
		expect(t, name+", on the same nodes", offered(r, "oslo")["same"][capacity.CPU], tc.same)
		expect(t, name+", on others", offered(r, "oslo")["silver"][capacity.CPU], tc.silver)
	}
}

// A grant counts on the nodes that it was granted from until it has been answered from the present ones.
func TestGrantsAreCommittedOnTheNodesThatAPolicySelectedBefore(t *testing.T) {
	c := newCluster("a", "b", "d")
	on := func(node string) func(*Policy) {
		return func(p *Policy) { p.Nodes.Selection.Selector = withLabel("name", node) }
	}
	before := ofNodes("gold", class("gold"), on("a"))
	for name, tc := range map[string]struct {
		by              string
		now             []Policy
		a, b, elsewhere int64
	}{
		"edited":             {before.Granter(), []Policy{ofNodes("gold", class("gold"), on("b"))}, 2000, 2000, 8000},
		"edited to no nodes": {before.Granter(), []Policy{fixed("gold", capacity.Amounts{capacity.CPU: 6000}, class("gold"))}, 2000, 8000, 8000},
		"deleted":            {before.Granter(), nil, 2000, 8000, 8000},
		"from unknown nodes": {"gold@0123456789abcdef", []Policy{ofNodes("gold", class("gold"), on("b"))}, 2000, 2000, 2000},
	} {
		in := Input{Former: []Policy{before}, Consumers: consumers("oslo"),
			Policies:  append(tc.now, ofNodes("on-a", class("a"), on("a")), ofNodes("on-b", class("b"), on("b")), ofNodes("on-d", class("d"), on("d"))),
			Grants:    map[string]map[string]capacity.Amounts{"gold": {"rome": {capacity.CPU: 6000}}},
			GrantedBy: map[string]map[string][]string{"gold": {"rome": {tc.by}}},
		}
		in.View = c.View(Selections(in.Policies, in.Former))
		r := Evaluate(in)
		for class, want := range map[string]int64{"a": tc.a, "b": tc.b, "d": tc.elsewhere} {
			expect(t, name+", on "+class, offered(r, "oslo")[class][capacity.CPU], want)
		}
	}
}

func TestRetainHoldsWhatIsGrantedOfAResourceThatNoNodeLists(t *testing.T) {
	const storage, gpu = "storage", "nvidia.com/gpu"
	grants := map[string]map[string]capacity.Amounts{"": {"rome": {storage: 100}}}
	r := newCluster("a").granted(grants, fixed("p", capacity.Amounts{storage: 10}, reclaim(Retain)))
	expect(t, "storage", offered(r, "rome")[""][storage], int64(100))

	// The node with the GPU is gone. One replica has seen it, another one started later.
	grants = map[string]map[string]capacity.Amounts{"": {"rome": {gpu: 4}}}
	for name, known := range map[string][]string{"named in the status": {gpu}, "named nowhere": nil} {
		p := ofNodes("p", reclaim(Retain), func(p *Policy) { p.Known = known })
		fresh, old := newCluster("a"), newCluster("a")
		old.node("b", capacity.Amounts{gpu: 4})
		old.DeleteNode("b")
		expect(t, "a GPU "+name, offered(fresh.granted(grants, p), "rome")[""][gpu], int64(4))
		expect(t, "replicas", offered(old.granted(grants, p), "rome"), offered(fresh.granted(grants, p), "rome"))
	}
}

func TestRetainHoldsWhatIsGrantedAfterItsNodeIsGone(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	p := ofNodes("p", reclaim(Retain), threshold(5))
	in := Input{Policies: []Policy{p}, Grants: map[string]map[string]capacity.Amounts{"": {"rome": {capacity.CPU: 1000}}}}
	c := newCluster("a")
	in.View = c.View(Selections(in.Policies))
	r := Evaluate(in)
	// Meanwhile a replica that has seen the GPU granted it.
	in.Grants = map[string]map[string]capacity.Amounts{"": {"rome": {capacity.CPU: 1000, gpu: 4}}}
	r = Evaluate(in.After(r))
	expect(t, "a GPU", offered(r, "rome")[""][gpu], int64(4))
}
