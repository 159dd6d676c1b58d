package offer

import (
	"strings"
	"testing"
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
