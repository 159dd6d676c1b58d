package policy

import (
	"testing"

	"proffer.dev/proffer/internal/offer"
)

func TestOnlyOffersThatOtherPoliciesDecideOnChangeElsewhere(t *testing.T) {
	amounts := func(cpu int64) []offer.Amount { return []offer.Amount{{Resource: "cpu", Value: cpu}} }
	before := &offer.Entry{Offers: []*offer.Offer{{Policy: "all", Amounts: amounts(8)}}}
	for name, tc := range map[string]struct {
		after []*offer.Offer
		want  bool
	}{
		"the trial decides in another class and lowers the other offer": {[]*offer.Offer{
			{Policy: "all", Amounts: amounts(4)}, {Class: "gold", Policy: "trial", Amounts: amounts(4)},
		}, true},
		"the trial replaces the other policy": {[]*offer.Offer{{Policy: "trial", Amounts: amounts(4)}}, false},
		"the trial decides in another class and changes no other offer": {[]*offer.Offer{
			{Policy: "all", Amounts: amounts(8)}, {Class: "gold", Policy: "trial", Amounts: amounts(4)},
		}, false},
	} {
		if got := changesElsewhere("trial", before, &offer.Entry{Offers: tc.after}); got != tc.want {
			t.Errorf("%s: changesElsewhere is %t, want %t", name, got, tc.want)
		}
	}
}
