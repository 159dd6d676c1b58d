package grant

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

func TestWhatADeletedPolicyLeavesFallsByItsLastReclaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reclaim offer.Reclaim
		want    string
	}{
		{"Retain", offer.Retain, "used cpu=4,memory=4; unused cpu=4,memory=4"},
		{"Unused", offer.Unused, "used cpu=3,memory=1; unused cpu=0,memory=0"},
		{"Evict", offer.Evict, "used cpu=0,memory=0; unused cpu=0,memory=0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Memory came from the defaults of the deleted policy.
			left := func(name, consumer string, age int64) Slice {
				s := having(name, consumer, age, 4)
				s.Granted = capacity.Amounts{"cpu": 4, "memory": 4}
				s.Reclaim = tc.reclaim
				return s
			}
			w := newWorld().node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8}).pod("p", "n", "rome", cpu(3)).
				slice(left("used", "rome", 1)).slice(left("unused", "oslo", 2))
			answers := w.settle(t)
			w.want(t, tc.want)
			for i := range answers {
				if got := answers[i].Reason(); got != ReasonWithdrawn {
					t.Errorf("got reason %s, want %s", got, ReasonWithdrawn)
				}
			}
		})
	}
}
