package rest_test

import (
	"testing"

	"proffer.dev/proffer/api/rest"
)

func TestAReasonHasNeitherResourceNorAmount(t *testing.T) {
	lines := []string{"cpu 8: fixed at 8", "memory 4Gi: 100% of 4Gi: that is all"}
	for resource, want := range map[string]string{"cpu": "fixed at 8", "memory": "100% of 4Gi: that is all", "mem": "", "pods": ""} {
		if got := rest.Reason(lines, resource); got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}

func TestASliceSaysWhereItIs(t *testing.T) {
	for want, s := range map[string]rest.Slice{
		"":                                       {},
		"on n1":                                  {Seat: "n1"},
		"on n1, which is cordoned":               {Seat: "n1", SeatState: rest.SeatCordoned},
		"was on n1, which is gone or not usable": {Seat: "n1", SeatState: rest.SeatLost},
	} {
		if got := s.On(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	for n, want := range map[int32]string{
		0: "", 1: "1 ResourceSlice has lost its node and waits for another one.",
		2: "2 ResourceSlices have lost their node and wait for another one.",
	} {
		if got := (rest.Policy{SeatsLost: n}).LostSeats(); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
