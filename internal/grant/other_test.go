package grant

import (
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// ofZone returns a policy of a class on the nodes of a zone.
func ofZone(name, class, zone string) offer.Policy {
	return offer.Policy{Name: name, Class: class, Nodes: &offer.Nodes{Percent: 100, Selection: inZone(zone)}}
}

// grantedBy returns a slice with a grant by these policies in its class, or without one.
func grantedBy(by, key, consumer, class string, age, request, granted int64) Slice {
	s := Slice{Key: key, Consumer: consumer, Class: class, Created: age, Request: cpu(request)}
	if granted > 0 {
		s.Granted, s.GrantedBy, s.GrantedIn = cpu(granted), by, class
	}
	return s
}

// A policy that no longer decides has granted what is on its nodes: classes on other nodes keep what they have,
// and may have more.
func TestWhatADryRunHasGrantedCountsOnItsNodesAlone(t *testing.T) {
	in := func(class, zone string) offer.Policy {
		p := ofZone(class, class, zone)
		p.Reclaim = offer.Retain
		return p
	}
	of := func(key, consumer, class string, age, request, granted int64) Slice {
		return grantedBy(class, key, consumer, class, age, request, granted)
	}
	w := newWorld(in("gold", "a"), in("same", "a"), in("silver", "b")).
		node("a1", "a", capacity.Amounts{"cpu": 8}).node("b1", "b", capacity.Amounts{"cpu": 4}).
		slice(of("held", "rome", "gold", 1, 6, 6)).slice(of("elsewhere", "oslo", "silver", 2, 3, 3)).
		slice(of("more elsewhere", "paris", "silver", 3, 4, 0)).slice(of("beside", "paris", "same", 4, 4, 0))
	w.settle(t)
	const want = "held cpu=6; elsewhere cpu=3; more elsewhere cpu=1; beside cpu=2"
	w.want(t, want)
	w.policies[0].DryRun = true
	w.settle(t)
	w.want(t, want)
}

// A grant that may be on the nodes of two policies counts on both, and has no claim to those of the second that
// others have not given up yet.
func TestAGrantByEitherOfTwoPoliciesCountsOnTheNodesOfBoth(t *testing.T) {
	other := ofZone("other", "gold", "b")
	other.Priority, other.Consumers = 1, offer.Scope{IDs: map[string]struct{}{"rome": {}}}
	for _, tc := range []struct {
		by   string
		left int64
		want string
	}{
		{"gold", 8, "0 0 0"}, {"gold,other", 8, "0 0 0"}, {"gold,other", 0, "8 0 0"}, {"other", 0, "8 8 0"},
	} {
		w := newWorld(ofZone("gold", "gold", "a"), other, ofZone("silver", "silver", "b")).
			node("a1", "a", cpu(8)).node("b1", "b", cpu(8)).
			slice(grantedBy(tc.by, "passes", "rome", "gold", 1, 8, 8)).slice(grantedBy("", "beside", "oslo", "gold", 2, 8, 0)).
			slice(grantedBy("silver", "leaves", "paris", "silver", 3, 0, tc.left))
		var got []string
		for _, a := range Allocate(w.terms(), w.slices) {
			got = append(got, fmt.Sprint(a.Amounts()["cpu"]))
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("granted by %s, with %d not given up: %s, want %s", tc.by, tc.left, text, tc.want)
		}
	}
}
