package resourcereader

import "testing"

func TestTheConnectionThatTakesMostOrIsLeastLikeLiqoIsEvicted(t *testing.T) {
	idle := rank{costOfHost: 1, cost: 1, likeness: 0, calls: 0, used: 100}
	with := func(change func(*rank)) rank { r := idle; change(&r); return r }
	for _, tc := range []struct {
		name        string
		first, then rank
	}{
		{"first, a connection of the host with the highest cost", with(func(r *rank) { r.costOfHost, r.likeness = 2, 3 }),
			with(func(r *rank) { r.cost = 5 })},
		{"then the connection with the highest cost", with(func(r *rank) { r.cost, r.likeness = 2, 3 }), idle},
		{"then the connection least like Liqo", idle, with(func(r *rank) { r.likeness, r.calls = 1, 9 })},
		{"then the connection with the most calls", with(func(r *rank) { r.calls, r.used = 2, 200 }), idle},
		{"then the connection whose last call is oldest", idle, with(func(r *rank) { r.used = 101 })},
	} {
		if tc.first.compare(tc.then) >= 0 || tc.then.compare(tc.first) <= 0 {
			t.Errorf("%s: %+v is not evicted before %+v", tc.name, tc.first, tc.then)
		}
	}
}
