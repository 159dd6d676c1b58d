package slice

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/protocol"
)

func TestAGrantNamesTheNodesOfEachPolicy(t *testing.T) {
	r := recordOf(5, 1000)
	r.Present.Policy = "gold@a/n1,fixed@none"
	r.Earlier = protocol.Shares{{Class: "silver", Policy: "silver@b", Amounts: capacity.Amounts{capacity.CPU: 1}}}
	g := r.grantObject("proffer-system")
	if s := g.Spec; s.Policy != "gold,fixed" || s.Nodes != "a,none" || s.Seat != "n1," || s.Earlier[0].Policy != "silver" || s.Earlier[0].Nodes != "b" {
		t.Errorf("%+v", s)
	}
	if got := parseGrant(g); !got.Earlier.Same(r.Earlier) || got.Present.Policy != r.Present.Policy {
		t.Errorf("read back: %+v", got)
	}
}
