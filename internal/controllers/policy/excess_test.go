package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/table"
)

func TestEachSliceWhosePodsRequestMoreThanItWasGrantedIsReportedOnce(t *testing.T) {
	mine := table.Excess{Consumer: "rome", Slice: "mine", Amounts: capacity.Amounts{"cpu": 2000, "memory": 1 << 30}}
	other := table.Excess{Consumer: "oslo", Slice: "mine", Amounts: capacity.Amounts{"cpu": 500}}
	more := mine
	more.Amounts = capacity.Amounts{"cpu": 3000}
	var known []string
	for i, step := range []struct{ excesses, news []table.Excess }{
		{[]table.Excess{mine}, []table.Excess{mine}},
		{[]table.Excess{more}, nil}, // Another amount is no news.
		{[]table.Excess{other, more}, []table.Excess{other}},
		{nil, nil},
		{[]table.Excess{mine}, []table.Excess{mine}}, // It begins again.
	} {
		news, names := newExcesses(step.excesses, known)
		if diff := cmp.Diff(step.news, news); diff != "" {
			t.Errorf("step %d: -want +got:\n%s", i, diff)
		}
		known = names
	}
}

func TestWithinGrantsListsTheSlicesAndAmounts(t *testing.T) {
	c := withinGrantsOf([]table.Excess{
		{Consumer: "oslo", Slice: "mine", Amounts: capacity.Amounts{"cpu": 500}},
		{Consumer: "rome", Slice: "mine", Amounts: capacity.Amounts{"cpu": 2000, "memory": 1 << 30}},
	})
	const want = "Pods request more than their ResourceSlices were granted: mine of oslo (cpu 500m more), " +
		"mine of rome (cpu 2 more, memory 1Gi more). Either a grant was lowered below what its pods use, " +
		"or Liqo's Quota does not count all that they request: see the component slice-pod-guard."
	if c.Status != "False" || c.Reason != v1alpha1.ReasonExceeded || c.Message != want {
		t.Errorf("got %s %s %q", c.Status, c.Reason, c.Message)
	}
	if c := withinGrantsOf(nil); c.Status != "True" || c.Reason != v1alpha1.ReasonWithin {
		t.Errorf("without an excess: got %s %s", c.Status, c.Reason)
	}
}
