package slice

import (
	"maps"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// requiring is a list of placements that requires these labels of all users.
type requiring map[string]string

func (r requiring) Requires(_ string, labels map[string]string) bool { return maps.Equal(r, labels) }
func (requiring) Full(string, string) bool                           { return false }

func TestAnAnswerThatNamesAnotherSeatWaitsForTheList(t *testing.T) {
	policy := &offer.Policy{Name: "gold", Slices: offer.Slices{EnforcePlacement: true, FitNode: true, NodeKey: "host"}}
	on := func(node string) *grant.Seat { return &grant.Seat{Node: node, Key: "host", Value: node} }
	for name, tc := range map[string]struct {
		granters, listed string
		seat             *grant.Seat
		waits            bool
	}{
		"it has nothing":                         {"", "n1", on("n2"), true},
		"it had another seat":                    {"gold@d/n1", "n1", on("n2"), true},
		"it had another seat, and is listed":     {"gold@d/n1", "n2", on("n2"), false},
		"it was granted from the pool":           {"gold@d", "", on("n2"), true},
		"nobody knows where it was granted from": {"*", "n1", on("n2"), true},
		"its record names the seat":              {"gold@d/n1,gold@d/n2", "n1", on("n2"), false},
		"it keeps its seat":                      {"gold@d/n2", "n1", on("n2"), false},
		"it keeps its seat under an edit":        {"gold@e/n2", "n1", on("n2"), false},
		"it has lost its seat":                   {"gold@d/n1", "n1", &grant.Seat{Key: "host", Value: "none", Lost: "n1"}, false},
		"its policy grants from the pool":        {"gold@d", "n1", nil, false},
	} {
		c := &sliceEntry{slice: slice{name: "s", class: "gold"}, Slice: holding.Slice{Class: "gold"}}
		if tc.granters != "" {
			c.Holds = protocol.Shares{{Class: "gold", Policy: tc.granters, Amounts: capacity.Amounts{"cpu": 1000}}}
		}
		w := &Writer{Placements: requiring{"host": tc.listed}}
		waits, crowded := w.awaitsPlacement(&decisions{entries: []*sliceEntry{c}, Decision: &holding.Decision{
			Input: holding.Input{Consumers: []string{"rome"}}, Verdicts: []holding.Verdict{{}},
			Answers: []grant.Answer{{Verdict: grant.Accept, Policy: policy, Seat: tc.seat}},
		}}, 0)
		if waits != tc.waits || crowded {
			t.Errorf("%s: waits %t, crowded %t", name, waits, crowded)
		}
	}
}
