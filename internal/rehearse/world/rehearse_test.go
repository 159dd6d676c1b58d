package world

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
)

// all is a policy that offers everything, with a threshold of 5 percent.
func all(version string) table.Policy {
	return table.Policy{Name: "all", Parsed: &offer.Policy{
		Name: "all", Version: version, ThresholdPercent: 5, Nodes: &offer.Nodes{Percent: 100}, Resources: []string{capacity.CPU},
	}}
}

// busyNode is a world in which a pool has just fallen from 10 cpu to 9.2.
func busyNode() *rehearse.World {
	l, list := capacity.NewLedger(), table.NewPolicyList([]table.Policy{all("1")})
	l.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 10_000}})
	in := offer.Input{Policies: list.Valid, View: l.View(list.Selections)}
	w := &rehearse.World{Now: time.Unix(1000, 0), Policies: list.All}
	w.Levels.Stabilize(w.Now, &in)
	w.Offers = offer.Evaluate(in).Offers
	l.SetPod(capacity.Pod{Key: "p", Node: "n", Requests: capacity.Amounts{capacity.CPU: 800}})
	w.Content = l.Copy()
	return w
}

func TestARehearsalGoesOnUntilNothingChanges(t *testing.T) {
	cpu := func(of offer.Offers) int64 { return place{"", capacity.CPU}.in(of.Default).value }
	o := rehearse.Rehearse(busyNode(), &rehearse.Change{}, never)
	if got := []int64{cpu(o.World.Offers), cpu(o.Without.Offers), cpu(o.With.Offers)}; !cmp.Equal(got, []int64{10_000, 9200, 9200}) {
		t.Errorf("published, without and with a change of nothing: %v", got)
	}
	if changes := slices.Collect(offerChanges(o)); len(changes) > 0 {
		t.Errorf("a change of nothing changes %v", changes)
	}
	// The level of an edited policy starts at what there is.
	next := all("2")
	next.Parsed.Nodes = &offer.Nodes{Percent: 50}
	o = rehearse.Rehearse(busyNode(), &rehearse.Change{Apply: []table.Policy{next}}, never)
	changes := slices.Collect(offerChanges(o))
	want := []rest.OfferChange{{
		Anyone: true, Resource: capacity.CPU, Now: "10", Then: "4600m",
		Because: "cpu 4.6: 50% of 9.2 is a pool of 4.6, 0 committed, 4.6 remaining; it has 0",
	}}
	s := &rest.Simulation{}
	if diff := cmp.Diff(want, changes); diff != "" || len(bounded(s, "offers", offerChanges(o), 1)) != 1 || s.Truncated != nil {
		t.Errorf("an edit: truncated are %v, %s", s.Truncated, diff)
	}
}

func TestWithoutAPastWhatFollowsWithoutTheChangeIsPublished(t *testing.T) {
	w := busyNode()
	w.Offers, w.Levels = offer.Offers{}, offer.Stabilizer{}
	o := rehearse.Rehearse(w, &rehearse.Change{Delete: []string{"all"}}, never)
	changes := slices.Collect(offerChanges(o))
	want := []rest.OfferChange{{
		Anyone: true, Resource: capacity.CPU, Now: "9200m", Then: "0", Because: "cpu 0: not offered any more: policy all is gone or invalid",
	}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreDecidedOnByTheTermsOfTheChange(t *testing.T) {
	w := busyNode()
	request := func(uid, class string, with func(*grant.Slice)) table.DecidedSlice {
		s := grant.Slice{Key: "ns/" + uid, Consumer: "rome", Class: class, Request: capacity.Amounts{capacity.CPU: 2000}}
		if with != nil {
			with(&s)
		}
		return table.DecidedSlice{Namespace: "ns", Name: uid, UID: uid, Slice: s}
	}
	w.Slices = rehearse.Requests{
		request("asks", "gold", nil),
		request("waits", "gold", func(s *grant.Slice) { s.Frozen = true }),
		request("elsewhere", "silver", nil),
	}
	gold := all("1")
	gold.Name, gold.Parsed.Name, gold.Parsed.Class = "gold", "gold", "gold"
	changes := slices.Collect(sliceChanges(rehearse.Rehearse(w, &rehearse.Change{Apply: []table.Policy{gold}}, never)))
	want := []rest.SliceChange{{
		Namespace: "ns", Name: "asks", Consumer: "rome", Class: "gold", Then: Amounts(capacity.Amounts{capacity.CPU: 2000}),
		Because: "granted by policy gold, but a virtual node without memory and pods runs no pods; only the provider can add memory and pods to policy gold",
	}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
}

func TestARehearsalSaysWhatIsWrongWithARequest(t *testing.T) {
	w := busyNode()
	w.Slices = rehearse.Requests{{Namespace: "ns", Name: "s", UID: "u", Problem: "asks for 500m nvidia.com/gpu", Slice: grant.Slice{
		Key: "ns/s", Consumer: "rome", Class: "gold", Invalid: true,
	}}}
	gold := all("1")
	gold.Name, gold.Parsed.Name, gold.Parsed.Class = "gold", "gold", "gold"
	for s := range rehearse.Rehearse(w, &rehearse.Change{Apply: []table.Policy{gold}}, never).With.Slices.All {
		if got := s.Because(); got != "denied: asks for 500m nvidia.com/gpu" {
			t.Errorf("got %q", got)
		}
	}
}

// The gates and records of a snapshot are not known, but the rules of the operator are the same.
func TestRequestsAreDecidedOnByTheRulesOfTheOperator(t *testing.T) {
	cpu := func(amount int64) capacity.Amounts { return capacity.Amounts{capacity.CPU: amount, capacity.Memory: 1} }
	grants := func(class string, most int64) table.Policy {
		return table.Policy{Name: class, Parsed: &offer.Policy{Name: class, Class: class, Version: "1", Fixed: capacity.Amounts{capacity.CPU: most, capacity.Memory: 2}}}
	}
	had := func(in string, amount int64) grant.Slice {
		return grant.Slice{Consumer: "rome", Class: in, Request: cpu(4000), Granted: cpu(amount), GrantedBy: "gold", GrantedIn: in}
	}
	moved, kept := had("gold", 4000), had("gold", 1500)
	moved.Class, kept.Pinned, kept.Request = "platinum", true, nil
	for name, tc := range map[string]struct {
		slices []grant.Slice
		class  string
		then   int64
	}{
		"a request": {[]grant.Slice{{Consumer: "rome", Class: "gold", Request: cpu(4000)}}, "gold", 2000},
		"a request in the class that Liqo answers": {[]grant.Slice{{Consumer: "rome", Request: cpu(4000)}}, "", 0},
		"a grant": {[]grant.Slice{had("gold", 4000)}, "gold", 2000},
		"a slice that has moved where nobody answers":     {[]grant.Slice{moved}, "gold", 2000},
		"a slice beside what cannot be taken back of one": {[]grant.Slice{had("gold", 1000), kept}, "gold", 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := busyNode()
			var all rehearse.Requests
			for i, s := range tc.slices {
				s.Key = "ns/" + strconv.Itoa(i)
				all = append(all, table.DecidedSlice{Namespace: "ns", Name: strconv.Itoa(i), UID: strconv.Itoa(i), Slice: s})
			}
			w.Slices = all
			o := rehearse.Rehearse(w, &rehearse.Change{Apply: []table.Policy{grants("gold", 2000), grants("", 2000)}}, never)
			for s := range o.With.Slices.All {
				switch got := s.After()[capacity.CPU]; {
				case s.Pinned && got != 1500:
					t.Errorf("%d of 1500 counts that cannot be taken back", got)
				case !s.Pinned && (s.Class != tc.class || got != tc.then):
					t.Errorf("%d of %q, want %d of %q", got, s.Class, tc.then, tc.class)
				}
			}
		})
	}
}

func TestPodsOfADrainedNodeHoldNothing(t *testing.T) {
	l := capacity.NewLedger()
	l.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 10_000}})
	l.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: 5000}})
	fixed := func(version string, cpu int64) table.Policy {
		return table.Policy{Name: "fixed", Parsed: &offer.Policy{Name: "fixed", Version: version, Fixed: capacity.Amounts{capacity.CPU: cpu}}}
	}
	w := &rehearse.World{Now: time.Unix(1000, 0), Policies: []table.Policy{fixed("1", 8000)}, Content: l.Copy()}
	for _, tc := range []struct {
		drain []string
		then  int64
	}{{nil, 5000}, {[]string{"n"}, 2000}} {
		o := rehearse.Rehearse(w, &rehearse.Change{Apply: []table.Policy{fixed("2", 2000)}, Drain: tc.drain}, never)
		if got := (place{"", capacity.CPU}).in(o.With.Of("rome")).value; got != tc.then {
			t.Errorf("with %v drained: %d cpu, want %d", tc.drain, got, tc.then)
		}
	}
}

func TestAGrantOfWhatNoNodeListsStaysWhilePodsRequestIt(t *testing.T) {
	l := capacity.NewLedger()
	l.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 10_000}})
	l.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: 1000, "example.com/fpga": 2}})
	granted := capacity.Amounts{capacity.CPU: 1000, "example.com/fpga": 2}
	gold := func(version string, cpu int64) table.Policy {
		return table.Policy{Name: "gold", Parsed: &offer.Policy{
			Name: "gold", Version: version, Class: "gold", Fixed: capacity.Amounts{capacity.CPU: cpu},
		}}
	}
	w := &rehearse.World{Now: time.Unix(1000, 0), Policies: []table.Policy{gold("1", 4000)}, Content: l.Copy()}
	w.Slices = rehearse.Requests{{Namespace: "ns", Name: "s", UID: "s", Slice: grant.Slice{
		Key: "ns/s", Consumer: "rome", Class: "gold", Request: granted, Granted: granted, GrantedBy: "gold", GrantedIn: "gold",
	}}}
	for s := range rehearse.Rehearse(w, &rehearse.Change{Apply: []table.Policy{gold("2", 5000)}}, never).With.Slices.All {
		if diff := cmp.Diff(granted, s.After()); diff != "" {
			t.Errorf("%s: %s", s.Because(), diff)
		}
	}
}
