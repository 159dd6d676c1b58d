package holding

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
)

func TestAGrantIsDecidedOnWhereItWasMadeUntilAnotherControllerAnswers(t *testing.T) {
	gold := protocol.Share{Class: "gold", Amounts: capacity.Amounts{"cpu": 6000}}
	ours := Answer{Given: true, Accepted: true, Own: true, Amounts: gold.Amounts}
	holds := func(class, present string, a Answer, holds ...protocol.Share) *Slice {
		return &Slice{Class: class, Answer: a, Holds: holds, Present: present, Former: present}
	}
	left := func(class string, a Answer) *Slice { return holds(class, "gold", a, gold) }
	gone := left("platinum", ours)
	gone.RemovedAt = time.Unix(1, 0)
	answered := holds("platinum", "gold", ours, gold)
	answered.Ours = &Answer{Class: "platinum"}
	for name, tc := range map[string]struct {
		slice  *Slice
		served bool
		want   custody
	}{
		"it is in the class of its grant":             {left("gold", ours), true, byClass},
		"no policy serves the class of its grant":     {left("gold", ours), false, byClass},
		"it has moved to a class that is served":      {left("silver", ours), true, byClass},
		"the policy of its new class is gone":         {answered, false, byClass},
		"nobody serves its class":                     {left("platinum", ours), false, byFormerClass},
		"nobody serves its class, and it is denied":   {left("platinum", Answer{Given: true, Own: true}), false, byFormerClass},
		"its answer is gone":                          {left("platinum", Answer{}), false, byFormerClass},
		"another controller has accepted it":          {left("platinum", Answer{Given: true, Accepted: true}), false, byOthers},
		"another controller has denied it":            {left("platinum", Answer{Given: true}), false, byOthers},
		"it has Liqo's class":                         {left(LiqoClass, ours), false, byFormerClass},
		"Liqo has answered it":                        {left(LiqoClass, Answer{Given: true, Accepted: true}), false, byOthers},
		"it has no class":                             {left("", ours), false, byFormerClass},
		"it does not exist":                           {gone, false, byOthers},
		"it was granted nothing":                      {holds("platinum", "", ours), false, byOthers},
		"only its pods hold something in former ones": {holds("platinum", "silver", ours, gold), false, byFormerClass},
		"the policy is gone where it was granted nothing, and its pods hold something": {holds("silver", "silver", ours, gold), false, byClass},
		"it was granted nothing in a class not served":                                 {holds("gold", "", Answer{}), false, byOthers},
	} {
		if got := tc.slice.custody(tc.served); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// The empty class is Liqo's too. A slice that was decided on as if it had not moved could be raised.
func TestASliceOfNoClassHasMoved(t *testing.T) {
	if got := (&Slice{Former: "gold"}).inFormerClass(); got.MovedTo != LiqoClass || got.Class != "gold" {
		t.Errorf("decided on in %q, moved to %q", got.Class, got.MovedTo)
	}
}

// The next decision writes the record again, wherever the slice has moved meanwhile.
func TestASliceWhoseRecordIsDeletedIsDecidedOnWhereItWasAnswered(t *testing.T) {
	share := func(class string) protocol.Share {
		return protocol.Share{Class: class, Amounts: capacity.Amounts{"cpu": 6000}}
	}
	var grants protocol.Entry
	grants.Begin(&protocol.Record{Present: share("silver"), Earlier: protocol.Shares{share("gold")}}, "5")
	grants.RecordSeen(nil, "6")
	s := &Slice{Class: LiqoClass, Answer: Answer{Given: true, Accepted: true, Own: true}}
	s.SetHolds(grants.OnRecord(), &grants)
	if got := s.custody(false); got != byFormerClass || s.Former != "silver" {
		t.Errorf("decided on by %d in %q, want its former class silver", got, s.Former)
	}
}
