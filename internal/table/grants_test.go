package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

func TestGrantsCountInTheClassThatTheyWereMadeIn(t *testing.T) {
	line := func(asked, granted int64) []grant.Line {
		return []grant.Line{{Resource: "cpu", Asked: asked, Granted: granted, Listed: true}}
	}
	silver := &offer.Policy{Name: "silver-policy"}
	const silverNow = "silver-policy@none"
	moves := grant.Slice{
		Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 6000}, GrantedIn: "gold", GrantedBy: "gold-policy",
	}
	for name, tc := range map[string]struct {
		slice  grant.Slice
		answer grant.Answer
		what   Counting
		want   map[string]int64 // by class
		slices map[string]int32 // by policy
		by     map[string][]string
	}{
		"a slice that moves": {
			moves, grant.Answer{Verdict: grant.Accept, Policy: silver, Granter: silverNow, Lines: line(6000, 2000)}, GrantedAndDecided,
			map[string]int64{"gold": 6000, "silver": 2000}, map[string]int32{"gold-policy": 1, "silver-policy": 1},
			map[string][]string{"gold": {"gold-policy"}},
		},
		"a slice that moves, at a replica that does not lead": {
			moves, grant.Answer{Verdict: grant.Accept, Policy: silver, Granter: silverNow, Lines: line(6000, 2000)}, GrantedOnly,
			map[string]int64{"gold": 6000, "silver": 0}, map[string]int32{"gold-policy": 1},
			map[string][]string{"gold": {"gold-policy"}},
		},
		"a slice that another policy answers now": {
			grant.Slice{Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 6000}, GrantedIn: "silver", GrantedBy: "gold-policy"},
			grant.Answer{Verdict: grant.Accept, Policy: silver, Granter: silverNow, Lines: line(6000, 2000)}, GrantedAndDecided,
			map[string]int64{"silver": 6000}, map[string]int32{"silver-policy": 1},
			map[string][]string{"silver": {"gold-policy"}},
		},
		"a slice from nodes that the policy does not select now": {
			grant.Slice{Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 6000}, GrantedIn: "silver", GrantedBy: "silver-policy@a," + silverNow},
			grant.Answer{Verdict: grant.Accept, Policy: silver, Granter: silverNow, Lines: line(6000, 2000)}, GrantedAndDecided,
			map[string]int64{"silver": 6000}, map[string]int32{"silver-policy": 1},
			map[string][]string{"silver": {"silver-policy@a", silverNow}},
		},
		"a slice that stays": {
			grant.Slice{Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 6000}, GrantedIn: "silver", GrantedBy: silverNow},
			grant.Answer{Verdict: grant.Accept, Policy: silver, Granter: silverNow, Lines: line(6000, 2000)}, GrantedAndDecided,
			map[string]int64{"silver": 6000}, map[string]int32{"silver-policy": 1},
			nil,
		},
		"a slice on which no policy decides": {
			grant.Slice{Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 6000}, GrantedIn: "silver", GrantedBy: "gold-policy"},
			grant.Answer{Verdict: grant.Accept, Lines: line(6000, 6000)}, GrantedAndDecided,
			map[string]int64{"silver": 6000}, map[string]int32{},
			map[string][]string{"silver": {"gold-policy"}},
		},
		"a slice from which no policy has left anything": {
			grant.Slice{Consumer: "rome", Class: "silver", Granted: capacity.Amounts{"cpu": 0}, GrantedIn: "silver", GrantedBy: "gold-policy"},
			grant.Answer{Verdict: grant.Accept, Lines: line(6000, 0)}, GrantedAndDecided,
			map[string]int64{}, map[string]int32{},
			nil,
		},
		"pods of a slice that is granted nothing": {
			grant.Slice{Consumer: "rome", Class: "silver", Used: capacity.Amounts{"cpu": 1000}},
			grant.Answer{Policy: silver, Lines: line(6000, 0)}, GrantedAndDecided,
			map[string]int64{"silver": 1000}, map[string]int32{},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			counts := CountGrants([]grant.Slice{tc.slice}, []grant.Answer{tc.answer}, tc.what)
			got, counted := map[string]int64{}, map[string]int32{}
			var by map[string][]string
			for class, of := range counts.by {
				by = map[string][]string{class: of["rome"]}
			}
			for class, of := range counts.byClass {
				got[class] = of["rome"]["cpu"]
			}
			for policy, under := range counts.byPolicy {
				counted[policy] = under.Slices
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.slices, counted) + cmp.Diff(tc.by, by); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSlicesThatHaveLostTheirSeatAreCountedUntilTheyHaveAnother(t *testing.T) {
	gold := &offer.Policy{Name: "gold"}
	bound := func(b grant.Bound) []grant.Line {
		return []grant.Line{{Resource: "cpu", Asked: 2, Granted: 1, Bound: b}}
	}
	answers := []grant.Answer{
		{Policy: gold, Seat: &grant.Seat{Node: "n1"}},
		{Policy: gold, Seat: &grant.Seat{Node: "n2", Lost: "n1"}},
		{Policy: gold, Seat: &grant.Seat{Lost: "n1"}},
		{Policy: gold, Seat: &grant.Seat{Lost: "n1"}, Lines: bound(grant.BySeat)},
		{Policy: gold, Seat: &grant.Seat{}, Lines: bound(grant.BySeat)},
		{Policy: gold, Seat: &grant.Seat{Node: "n1", Cordoned: true}, Lines: bound(grant.ByCordon)},
		{Policy: gold},
	}
	got := CountGrants(make([]grant.Slice, len(answers)), answers, GrantedOnly).Under("gold")
	if want := (PolicyGrants{Waiting: 2, SeatsLost: 2}); !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheSeatIsThatOfTheAnswerOrElseOfTheGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		by     string
		answer *grant.Answer
		want   string
		lost   bool
	}{
		"no answer":                    {by: "gold@none/n1", want: "n1"},
		"an answer that moves it":      {by: "gold@none/n1,gold@none/n2", want: "n2"},
		"a pool":                       {by: "gold@none", answer: &grant.Answer{}},
		"nothing":                      {answer: &grant.Answer{Seat: &grant.Seat{}}},
		"a seat":                       {by: "gold@none/n1", answer: &grant.Answer{Seat: &grant.Seat{Node: "n2", Lost: "n1"}}, want: "n2"},
		"a seat that is lost":          {by: "gold@none/n1", answer: &grant.Answer{Seat: &grant.Seat{Lost: "n1"}}, want: "n1", lost: true},
		"a pool in place of the seat":  {by: "gold@none/n1", answer: &grant.Answer{}, want: "n1"},
		"a seat in place of the pool":  {by: "gold@none", answer: &grant.Answer{Seat: &grant.Seat{Node: "n1"}}, want: "n1"},
		"what another class still has": {by: "gold@none/n1", answer: &grant.Answer{Seat: &grant.Seat{}}, want: "n1"},
	} {
		s := DecidedSlice{Slice: grant.Slice{GrantedBy: tc.by}, Answer: tc.answer}
		if got, lost := s.Seat(), s.SeatLost(); got != tc.want || lost != tc.lost {
			t.Errorf("%s: %q, lost %t; want %q, %t", name, got, lost, tc.want, tc.lost)
		}
	}
}
