package grant

import (
	"maps"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// withDefaults returns a policy of all nodes with Liqo's defaults.
func withDefaults(edits ...func(*offer.Policy)) offer.Policy {
	own := func(p *offer.Policy) { p.Slices.Defaults, p.Slices.LiqoDefaults = offer.LiqoDefaults(), true }
	return gold(append([]func(*offer.Policy){own}, edits...)...)
}

func defaultsOf(amounts capacity.Amounts) func(*offer.Policy) {
	return func(p *offer.Policy) { p.Slices.Defaults, p.Slices.LiqoDefaults = amounts, false }
}

func TestARequestGetsTheDefaultsWithinWhatIsOffered(t *testing.T) {
	node := capacity.Amounts{"cpu": 8000, "memory": 16 << 30, "pods": 200, "ephemeral-storage": 100 << 30}
	with := func(name string, amount int64) capacity.Amounts {
		changed := maps.Clone(node)
		changed[name] = amount
		return changed
	}
	deny := func(p *offer.Policy) { p.Slices.DenyExcess = true }
	only := func(names ...string) func(*offer.Policy) { return func(p *offer.Policy) { p.Resources = names } }
	for name, tc := range map[string]struct {
		policy            offer.Policy
		node, request     capacity.Amounts
		want, why, reason string
	}{
		"nothing is asked for": {
			withDefaults(), node, nil, "s cpu=4000,ephemeral-storage=21474836480,memory=8589934592,pods=110",
			"granted the defaults of policy standard", ReasonGranted,
		},
		"key by key": {
			withDefaults(), node, capacity.Amounts{"cpu": 2000, "memory": 1 << 30, "ephemeral-storage": 0},
			"s cpu=2000,ephemeral-storage=0,memory=1073741824,pods=110", "granted in full by policy standard", ReasonGranted,
		},
		"less is offered": {
			withDefaults(), with("pods", 40), nil, "s cpu=4000,ephemeral-storage=21474836480,memory=8589934592,pods=40",
			"granted 40 of 110 pods by default: policy standard leaves 40 for this cluster", ReasonGranted,
		},
		"less is offered, all or nothing": {
			withDefaults(deny), with("pods", 40), capacity.Amounts{"cpu": 2000}, "s cpu=2000,ephemeral-storage=21474836480,memory=8589934592,pods=40",
			"granted in full by policy standard, and 40 of 110 pods by default: policy standard leaves 40 for this cluster", ReasonGranted,
		},
		"more is asked for than is offered": {
			withDefaults(), with("pods", 40), capacity.Amounts{"cpu": 9000, "memory": 1}, "s cpu=8000,ephemeral-storage=21474836480,memory=1,pods=40",
			"granted 8 of 9 cpu: policy standard leaves 8 for this cluster; 40 of 110 pods by default: policy standard leaves 40 for this cluster", ReasonCapped,
		},
		"what a node does without is not offered": {
			withDefaults(only("cpu", "memory", "pods")), node, nil, "s cpu=4000,memory=8589934592,pods=110",
			"granted the defaults of policy standard", ReasonGranted,
		},
		"pods are not offered": {
			withDefaults(only("cpu", "memory")), node, nil, "s cpu=4000,memory=8589934592",
			"granted by policy standard, but a virtual node without pods runs no pods; only the provider can add pods to policy standard", ReasonIncomplete,
		},
		"no pods are left": {
			withDefaults(func(p *offer.Policy) { p.Nodes.Reserve = capacity.Amounts{"pods": 1000} }), node, nil, "s -", "denied: 110 pods by default, but policy standard leaves 0 for this cluster", ReasonDenied,
		},
		"other defaults": {
			gold(defaultsOf(capacity.Amounts{"cpu": 1000, "pods": 3, "gpu": 1})), node, capacity.Amounts{"memory": 1 << 30}, "s cpu=1000,memory=1073741824,pods=3",
			"granted in full by policy standard", ReasonGranted,
		},
		"no defaults": {
			gold(), node, capacity.Amounts{"cpu": 2000}, "s cpu=2000",
			"granted by policy standard, but a virtual node without memory and pods runs no pods: write amounts in the request, such as memory: 8Gi, pods: 110", ReasonIncomplete,
		},
		"no defaults, and a zero is asked for": {
			gold(), node, capacity.Amounts{"cpu": 0, "memory": 1 << 30, "pods": 1}, "s cpu=0,memory=1073741824,pods=1",
			"granted by policy standard, but a virtual node without cpu runs no pods: write amounts in the request, such as cpu: 4", ReasonIncomplete,
		},
		"no defaults, and not all is granted": {
			gold(), node, capacity.Amounts{"cpu": 9000, "memory": 1}, "s cpu=8000,memory=1",
			"granted 8 of 9 cpu: policy standard leaves 8 for this cluster; a virtual node without pods runs no pods: write amounts in the request, such as pods: 110", ReasonCapped,
		},
		"no defaults, and nothing is asked for": {
			gold(), node, nil, "s -",
			"denied: nothing is asked for, and policy standard has no defaults of what it offers: write resources in the request", ReasonDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.policy).node("n", "a", tc.node).
				slice(Slice{Key: "s", Consumer: "rome", Class: "gold", Request: tc.request})
			a := w.settle(t)[0]
			w.want(t, tc.want)
			if got := a.Explain(""); got != tc.why || a.Reason() != tc.reason {
				t.Errorf("got %s: %s\nwant %s: %s", a.Reason(), got, tc.reason, tc.why)
			}
		})
	}
}

// As after an upgrade from a version without these defaults.
func TestADefaultTakesNothingFromASliceThatHasAGrant(t *testing.T) {
	taken := Slice{Key: "all", Consumer: "oslo", Class: "gold", Created: 1, Request: capacity.Amounts{"memory": 8, "pods": 1}}
	s := having("s", "rome", 2, 2000)
	for name, tc := range map[string]struct {
		policy    offer.Policy
		edit      func(*Slice)
		want, why string
	}{
		"what is left is added": {withDefaults(), nil, "s cpu=2000,pods=9",
			"granted 0 of 8Gi memory by default: policy standard leaves 0 for this cluster; 9 of 110 pods by default: policy standard leaves 9 for this cluster"},
		"all or nothing": {withDefaults(func(p *offer.Policy) { p.Slices.DenyExcess = true }), nil, "s cpu=2000,pods=9",
			"granted 0 of 8Gi memory by default: policy standard leaves 0 for this cluster; 9 of 110 pods by default: policy standard leaves 9 for this cluster"},
		"nothing is added under a cordon": {withDefaults(), func(s *Slice) { s.Frozen = true }, "s cpu=2000",
			"granted 0 of 8Gi memory by default: the provider has cordoned this cluster and grants it nothing new; 0 of 110 pods by default: the provider has cordoned this cluster and grants it nothing new"},
		"nothing is added to an invalid request": {withDefaults(), func(s *Slice) { s.Invalid = true }, "s cpu=2000",
			"nothing more is granted until the request is corrected: x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			if tc.edit != nil {
				tc.edit(&s)
			}
			w := newWorld(tc.policy).node("n", "a", capacity.Amounts{"cpu": 8000, "memory": 8, "pods": 10}).slice(taken)
			w.policies[0].Slices.Defaults = nil
			w.settle(t)
			w.policies[0] = tc.policy
			w.slice(s)
			answers := w.settle(t)
			if got := w.granted(); got != "all cpu=4000,memory=8,pods=1; "+tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
			if got := answers[1].Explain("x"); got != tc.why || answers[1].Verdict != Accept {
				t.Errorf("got %s\nwant %s", got, tc.why)
			}
		})
	}
}

func TestAnEditOfTheDefaultsTakesNothingFromRunningPods(t *testing.T) {
	s := having("s", "rome", 1, 2000)
	w := newWorld(withDefaults()).node("n", "a", capacity.Amounts{"cpu": 8000, "memory": 16 << 30, "pods": 200}).slice(s)
	w.settle(t)
	w.pod("p", "n", "rome", capacity.Amounts{"cpu": 500, "memory": 3 << 30})
	w.slices[0].Used = capacity.Amounts{"cpu": 500, "memory": 3 << 30, "pods": 1}
	for _, tc := range []struct {
		defaults capacity.Amounts
		want     string
	}{
		{capacity.Amounts{"memory": 5 << 30}, "s cpu=2000,memory=5368709120,pods=1"},
		{capacity.Amounts{"memory": 1 << 30}, "s cpu=2000,memory=3221225472,pods=1"},
		{nil, "s cpu=2000,memory=3221225472,pods=1"},
	} {
		w.policies[0] = gold(defaultsOf(tc.defaults))
		w.settle(t)
		w.want(t, tc.want)
	}
	w.ledger.DeletePod("p")
	w.slices[0].Used = nil
	w.settle(t)
	w.want(t, "s cpu=2000,memory=0,pods=0")
}
