package grant

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// A policy that no longer decides has granted what is on its nodes: classes on other nodes keep what they have,
// and may have more.
func TestWhatADryRunHasGrantedCountsOnItsNodesAlone(t *testing.T) {
	in := func(class, zone string) offer.Policy {
		return offer.Policy{Name: class, Class: class, Reclaim: offer.Retain, Nodes: &offer.Nodes{Percent: 100, Selection: inZone(zone)}}
	}
	of := func(key, consumer, class string, age, request, granted int64) Slice {
		s := Slice{Key: key, Consumer: consumer, Class: class, Created: age, Request: cpu(request)}
		if granted > 0 {
			s.Granted, s.GrantedBy, s.GrantedIn = cpu(granted), class, class
		}
		return s
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
