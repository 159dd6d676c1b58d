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
		"it decides in another class, and takes of the same nodes": {[]*offer.Offer{{Policy: "all", Amounts: amounts(4)}, {Class: "gold", Policy: "trial", Amounts: amounts(4)}}, true},
		"it decides instead":           {[]*offer.Offer{{Policy: "trial", Amounts: amounts(4)}}, false},
		"it changes nothing elsewhere": {[]*offer.Offer{{Policy: "all", Amounts: amounts(8)}, {Class: "gold", Policy: "trial", Amounts: amounts(4)}}, false},
	} {
		if got := changesElsewhere("trial", before, &offer.Entry{Offers: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
