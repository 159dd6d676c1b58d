package nodes

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

const grace = 2 * time.Minute

// at returns the time d after the start of a test.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

// sound returns a node that has everything, changed.
func sound(with ...func(*capacity.Node)) *capacity.Node {
	n := &capacity.Node{
		Name: "n", State: capacity.Ready, Labels: map[string]string{"pool": "gold", "zone": "a"},
		Allocatable: capacity.Amounts{capacity.CPU: 8000, "nvidia.com/gpu": 8},
	}
	for _, f := range with {
		f(n)
	}
	return n
}

func notReady(n *capacity.Node) {
	n.State = capacity.NotReady
	n.Taints = append(n.Taints, capacity.Taint{Key: "node.kubernetes.io/unreachable", Effect: capacity.NoExecute})
}
func tainted(n *capacity.Node) {
	n.Taints = append(n.Taints, capacity.Taint{Key: "node.kubernetes.io/not-ready", Effect: capacity.NoSchedule})
}
func offline(n *capacity.Node) {
	n.Taints = append(n.Taints, capacity.Taint{Key: "node.kubernetes.io/network-unavailable", Effect: capacity.NoSchedule})
}
func terminating(n *capacity.Node)         { n.Deleted = true }
func cordoned(n *capacity.Node)            { n.State = capacity.Cordoned }
func unlabelled(n *capacity.Node)          { delete(n.Labels, "pool") }
func relabelled(n *capacity.Node)          { n.Labels["pool"] = "silver" }
func withoutGPUs(n *capacity.Node)         { n.Allocatable["nvidia.com/gpu"] = 0 }
func withoutDevicePlugin(n *capacity.Node) { delete(n.Allocatable, "nvidia.com/gpu") }
func withFewerGPUs(n *capacity.Node)       { n.Allocatable["nvidia.com/gpu"] = 7 }
func busy(n *capacity.Node) {
	n.Taints = append(n.Taints, capacity.Taint{Key: "node.kubernetes.io/disk-pressure", Effect: capacity.NoSchedule})
}
func ofPeer(n *capacity.Node) {
	n.Labels["liqo.io/type"], n.Labels["liqo.io/remote-cluster-id"] = "virtual-node", "milan"
	describeLabels(n)
}
func anonymous(n *capacity.Node) { delete(n.Labels, "liqo.io/type"); describeLabels(n) }

// follower counts the reports of one node.
type follower struct {
	counts *capacity.Node
	lapses lapses
}

func (f *follower) report(d time.Duration, reported *capacity.Node) {
	counts, next := f.lapses.count(f.counts, reported, at(d), grace)
	f.counts, f.lapses = &counts, next
}

func TestWhatMayPassByItselfCountsAfterAGrace(t *testing.T) {
	type edits = []func(*capacity.Node)
	for name, tc := range map[string]struct {
		before, reported, meanwhile edits
		grace                       string
	}{
		"not Ready":                     {nil, edits{notReady}, nil, "not Ready"},
		"a taint that stays":            {nil, edits{tainted}, nil, "not Ready"},
		"no network":                    {nil, edits{offline}, nil, "not Ready"},
		"a label":                       {nil, edits{unlabelled}, nil, "without the label pool"},
		"no devices":                    {nil, edits{withoutGPUs}, nil, "without nvidia.com/gpu"},
		"no device plugin":              {nil, edits{withoutDevicePlugin}, nil, "without nvidia.com/gpu"},
		"a kind":                        {edits{ofPeer}, edits{ofPeer, anonymous}, edits{ofPeer}, "without the label liqo.io/type"},
		"not Ready, with another taint": {nil, edits{notReady, busy}, edits{busy}, "not Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &follower{counts: sound(tc.before...)}
			reported := sound(tc.reported...)
			want := sound(tc.meanwhile...)
			want.Grace = tc.grace + " since 1970-01-01T00:16:40Z and counts as before until 1970-01-01T00:18:40Z"
			for _, d := range []time.Duration{0, time.Second, grace - 1} {
				f.report(d, reported)
				if diff := cmp.Diff(want, f.counts); diff != "" {
					t.Errorf("after %v (-want +got):\n%s", d, diff)
				}
			}
			f.report(grace, reported)
			if diff := cmp.Diff(sound(tc.reported...), f.counts); diff != "" {
				t.Errorf("after the grace (-want +got):\n%s", diff)
			}
			f.report(grace+time.Second, sound(tc.before...))
			if diff := cmp.Diff(sound(tc.before...), f.counts); diff != "" {
				t.Errorf("afterwards (-want +got):\n%s", diff)
			}
			f.report(grace*(recovery+1), sound(tc.before...))
			if len(f.lapses) > 0 {
				t.Errorf("%v is remembered", f.lapses)
			}
		})
	}
}

func TestEverythingElseCountsAtOnce(t *testing.T) {
	for name, tc := range map[string][2]func(*capacity.Node){
		"cordoned":                           {nil, cordoned},
		"cordoned while not Ready":           {nil, func(n *capacity.Node) { notReady(n); cordoned(n) }},
		"another taint":                      {nil, busy},
		"deleted":                            {nil, terminating},
		"deleted while not Ready":            {notReady, func(n *capacity.Node) { notReady(n); terminating(n) }},
		"another value of a label":           {nil, relabelled},
		"fewer devices":                      {nil, withFewerGPUs},
		"Ready again":                        {notReady, nil},
		"labelled again":                     {unlabelled, nil},
		"devices again":                      {withoutGPUs, nil},
		"still not Ready":                    {notReady, notReady},
		"what a peer does not give any more": {ofPeer, func(n *capacity.Node) { ofPeer(n); withoutGPUs(n) }},
	} {
		t.Run(name, func(t *testing.T) {
			var edits [2]*capacity.Node
			for i, edit := range tc {
				if edits[i] = sound(); edit != nil {
					edit(edits[i])
				}
			}
			f := &follower{counts: edits[0]}
			f.report(0, edits[1])
			if diff := cmp.Diff(edits[1], f.counts); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(f.lapses) > 0 {
				t.Errorf("%v is remembered", f.lapses)
			}
		})
	}
}

func TestShortLapsesNeverCount(t *testing.T) {
	f := &follower{counts: sound()}
	for d := time.Duration(0); d < time.Hour; d += time.Minute {
		f.report(d, sound(notReady))
		if f.counts.State != capacity.Ready {
			t.Fatalf("not Ready for 3 s in each minute: it counts after %v", d)
		}
		f.report(d+3*time.Second, sound())
	}
}

func TestManyLossesOfOneNodeAreBounded(t *testing.T) {
	f := &follower{counts: sound(func(n *capacity.Node) {
		for i := range 2 * maxLapses {
			n.Labels[string(rune('\U00010000'+i))] = ""
		}
	})}
	f.report(0, sound())
	if len(f.lapses) != maxLapses || len(f.counts.Labels) != maxLapses+2 {
		t.Errorf("%d lapses, %d labels", len(f.lapses), len(f.counts.Labels))
	}
}

// What a node has lost counts for at most the grace at a time, and beyond the first grace for at most a
// tenth of the remaining time. Everything else counts as reported, and what is remembered is forgotten.
func TestWhatIsAlwaysTrueOfLapses(t *testing.T) {
	edits := []func(*capacity.Node){
		notReady, tainted, cordoned, unlabelled, relabelled, withoutGPUs, withoutDevicePlugin, withFewerGPUs, busy,
	}
	rapid.Check(t, func(t *rapid.T) {
		f := &follower{counts: sound()}
		var now, kept time.Duration
		longest := rapid.SampledFrom([]int{10_000, 300_000}).Draw(t, "longest pause")
		for range rapid.IntRange(1, 60).Draw(t, "reports") {
			edited := rapid.SliceOfNDistinct(rapid.IntRange(0, len(edits)-1), 0, 3, rapid.ID).Draw(t, "changes")
			var of []func(*capacity.Node)
			for _, i := range edited {
				of = append(of, edits[i])
			}
			reported, before := sound(of...), sound(of...)
			f.report(now, reported)
			if diff := cmp.Diff(before, reported); diff != "" {
				t.Fatalf("the report was changed:\n%s", diff)
			}
			checkCounts(t, f.counts, reported, f.lapses.keeping())
			next := now + time.Duration(rapid.IntRange(1, longest).Draw(t, "pause"))*time.Millisecond
			for now < next { // Until the next report, as graceful.run does.
				until, due := next, f.lapses.next(grace)
				switch {
				case due.IsZero():
				case !due.After(at(now)):
					t.Fatalf("%v: the next change is at %v", at(now), due)
				case due.Before(at(next)):
					until = due.Sub(at(0))
				}
				if f.lapses[loss{}].kept {
					kept += until - now
				}
				if now = until; now < next {
					f.report(now, reported)
				}
			}
			if most := grace + (now-kept)/recovery + time.Microsecond; kept > most {
				t.Fatalf("%v: it counted as Ready for %v without being so, want at most %v", now, kept, most)
			}
		}
		f.report(now, sound())
		f.report(now+grace*recovery, sound())
		if diff := cmp.Diff(sound(), f.counts); diff != "" || len(f.lapses) > 0 {
			t.Fatalf("%v is remembered of a whole node:\n%s", f.lapses, diff)
		}
	})
}

// checkCounts checks that a node counts as reported, apart from what it may have kept of a sound one.
func checkCounts(t *rapid.T, counts, reported *capacity.Node, keeping bool) {
	if keeping != (counts.Grace != "") {
		t.Fatalf("in its grace: %v, %q", keeping, counts.Grace)
	}
	all := *counts
	all.Grace = ""
	if !keeping && !all.Equal(reported) {
		t.Fatalf("without a grace (-reported +counts):\n%s", cmp.Diff(reported, &all))
	}
	if !isUp(reported) && isUp(counts) && reported.State == capacity.Cordoned {
		t.Fatal("a cordoned node counts as Ready")
	}
	for key, value := range reported.Labels {
		if counts.Labels[key] != value {
			t.Fatalf("the label %s is %q, want %q", key, counts.Labels[key], value)
		}
	}
	for name, amount := range reported.Allocatable {
		if amount > 0 && counts.Allocatable[name] != amount {
			t.Fatalf("%d of %s, want %d", counts.Allocatable[name], name, amount)
		}
	}
	others := func(n *capacity.Node) []capacity.Taint { return slices.DeleteFunc(slices.Clone(n.Taints), ofReadiness) }
	if !slices.Equal(others(counts), others(reported)) {
		t.Fatalf("the taints are %v, want %v", counts.Taints, reported.Taints)
	}
}
