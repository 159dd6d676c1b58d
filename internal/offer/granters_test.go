package offer

import (
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
	for _, tc := range []struct{ granters, policies, nodes string }{
		{"", "", ""}, {"gold", "gold", ""}, {"gold@a,other@b", "gold,other", "a,b"}, {"gold@a,gold@b", "gold,gold", "a,b"},
		{"fixed,gold@b", "fixed,gold", ",b"}, {"gold@b,fixed", "gold,fixed", "b,"}, {"gold,other", "gold,other", ""}, {"*", "*", ""},
	} {
		policies, nodes := SplitGranters(tc.granters)
		if policies != tc.policies || nodes != tc.nodes {
			t.Errorf("%s: %q and %q", tc.granters, policies, nodes)
		}
		if got := JoinGranters(policies, nodes); got != tc.granters {
			t.Errorf("%q and %q: %q, want %q", policies, nodes, got, tc.granters)
		}
	}
	if got := JoinGranters("gold", "a,b,c"); got != "gold@a" {
		t.Errorf("got %q", got)
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
