package offer

import (
	"strconv"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestGrantersAreNamedOnceEach(t *testing.T) {
	long := strings.Repeat("a", maxGranters)
	for _, tc := range []struct{ names, others, both string }{
		{"", "", ""}, {"gold", "", "gold"}, {"", "gold", "gold"}, {"gold", "gold", "gold"}, {"gold", "other", "gold,other"},
		{"gold,other", "gold", "gold,other"}, {"gold,other", "third", "gold,other,third"}, {long, "gold", "*"}, {"*", long, "*"}, {"gold", "*", "*"},
	} {
		both := BothGranters(tc.names, tc.others)
		if both != tc.both {
			t.Errorf("%q and %q: %q, want %q", tc.names, tc.others, both, tc.both)
		}
		if !IncludesGranters(both, tc.names) || !IncludesGranters(both, tc.others) {
			t.Errorf("%q does not include %q and %q", both, tc.names, tc.others)
		}
	}
	if IncludesGranters("gold", "gold,other") || IncludesGranters("gold", "*") {
		t.Error("one granter includes others")
	}
}

func TestAPolicyWithOtherNodesIsAnotherGranter(t *testing.T) {
	const a, b = "gold@aaaaaaaa", "gold@bbbbbbbb"
	for _, tc := range []struct {
		names, others    string
		includes, isSame bool
	}{
		{a, a, true, true}, {a, b, false, false}, {a + "," + b, b, true, false}, {"gold", a, true, true}, {a, "gold", true, true},
		{"gold", a + "," + b, true, true}, {"silver", a, false, false}, {"other,gold", a, true, false}, {"*", a, true, false},
		{"gold@none", a, false, false}, {"gold", "gold@none", true, true},
	} {
		if got := IncludesGranters(tc.names, tc.others); got != tc.includes {
			t.Errorf("%s includes %s: %t", tc.names, tc.others, got)
		}
		if got := SameGranters(tc.names, tc.others); got != tc.isSame {
			t.Errorf("%s is %s: %t", tc.names, tc.others, got)
		}
	}
}

func TestGrantersAreRecordedAsPoliciesAndNodes(t *testing.T) {
	for granters, want := range map[string]GranterTexts{
		"": {}, "gold": {Policies: "gold"}, "*": {Policies: "*"}, "gold,other": {Policies: "gold,other"},
		"gold@a,other@b": {Policies: "gold,other", Digests: "a,b"}, "gold@a,gold@b": {Policies: "gold,gold", Digests: "a,b"},
		"fixed,gold@b": {Policies: "fixed,gold", Digests: ",b"}, "gold@b,fixed": {Policies: "gold,fixed", Digests: "b,"},
		"gold@a/n1": {Policies: "gold", Digests: "a", Seats: "n1"}, "gold/n1": {Policies: "gold", Seats: "n1"},
		"gold@a/n1,gold@a/n2":      {Policies: "gold,gold", Digests: "a,a", Seats: "n1,n2"},
		"other@b,gold@a/node.n1-2": {Policies: "other,gold", Digests: "b,a", Seats: ",node.n1-2"},
	} {
		texts := SplitGranters(granters)
		if texts != want {
			t.Errorf("%s: %+v, want %+v", granters, texts, want)
		}
		if got := JoinGranters(texts); got != granters {
			t.Errorf("%+v: %q, want %q", texts, got, granters)
		}
	}
	if got := JoinGranters(GranterTexts{Policies: "gold", Digests: "a,b,c", Seats: "n1,n2"}); got != "gold@a/n1" {
		t.Errorf("got %q", got)
	}
}

func TestAGranterWithASeatIsAnotherOne(t *testing.T) {
	const pool, n1, n2 = "gold@a", "gold@a/n1", "gold@a/n2"
	for _, tc := range []struct {
		names, others                string
		includes, isSame, butForSeat bool
	}{
		{n1, n1, true, true, true}, {n1, n2, false, false, true}, {pool, n1, false, false, true}, {n1, pool, false, false, true},
		{"gold", n1, false, false, true}, {"gold/n1", n1, true, true, true}, {n1 + "," + n2, n2, true, false, true},
		{n1, "gold@b/n1", false, false, false}, {n1, "silver@a/n1", false, false, false},
	} {
		if got := IncludesGranters(tc.names, tc.others); got != tc.includes {
			t.Errorf("%s includes %s: %t", tc.names, tc.others, got)
		}
		if got := SameGranters(tc.names, tc.others); got != tc.isSame {
			t.Errorf("%s is %s: %t", tc.names, tc.others, got)
		}
		if got := SameButSeats(tc.names, tc.others); got != tc.butForSeat {
			t.Errorf("%s is %s, apart from seats: %t", tc.names, tc.others, got)
		}
	}
	if got := WithoutNodes(n1 + "," + n2 + "," + pool + ",gold@b/n1"); got != "gold/n1,gold/n2,gold" {
		t.Errorf("without nodes: %s", got)
	}
	long := Seated("gold@a", strings.Repeat("n", 253))
	both := long
	for i := range maxSeats {
		if both == unknownGranter {
			t.Fatalf("%d seats are too many", i)
		}
		both = BothGranters(both, Seated("gold@a", strings.Repeat("n", 250)+strconv.Itoa(i)))
	}
	if both != unknownGranter {
		t.Errorf("%d seats are not too many: %s", maxSeats+1, both)
	}
}

// The digests are in records: if one changes, all grants are taken to be from nodes that nobody knows.
func TestTheDigestOfASelectionStays(t *testing.T) {
	for want, nodes := range map[string]*Nodes{
		"gold@e3b0c44298fc1c14": {},
		"gold@eca12aa0cfc31b94": {Selection: capacity.Selection{
			Selector: withLabel("zone", "a"), Tolerations: []capacity.Toleration{zoneOf("a"), zoneOf("b")}, Peers: &capacity.Peers{IDs: []string{"rome"}, Depth: 2},
		}},
	} {
		p := Policy{Name: "gold", Nodes: nodes}
		if got := p.Granter(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
