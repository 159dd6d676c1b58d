package table

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// decided are decisions for a test.
type decided []DecidedSlice

func (decided) Granted() map[string]map[string]capacity.Amounts       { return nil }
func (decided) GrantedBy() map[string]map[string][]string             { return nil }
func (decided) Under(string) PolicyGrants                             { return PolicyGrants{} }
func (d decided) DryRun(func() *offer.AllocationInput) SliceDecisions { return d }
func (d decided) All(yield func(DecidedSlice) bool) {
	for _, s := range d {
		if !yield(s) {
			return
		}
	}
}

func TestExcessesAreWhatPodsRequestBeyondTheGrantsOfTheirUser(t *testing.T) {
	slice := func(consumer, name, class string, granted capacity.Amounts) DecidedSlice {
		return DecidedSlice{
			Name: name, User: name + "@" + consumer, Creator: func() string { return name + "-of-" + consumer },
			Slice: grant.Slice{Consumer: consumer, Class: class, Granted: granted},
		}
	}
	pod := func(consumer, slice string, requests capacity.Amounts) capacity.Pod {
		return capacity.Pod{
			Key: consumer + slice, Node: "n", Consumer: consumer, Creator: slice + "-of-" + consumer, Requests: requests,
		}
	}
	part := func(of DecidedSlice, others bool) DecidedSlice {
		of.Pinned, of.Gone, of.OfOthers = true, true, others
		return of
	}
	others := DecidedSlice{Name: "s", User: "s@rome", Creator: slice("rome", "s", "", nil).Creator, OfOthers: true, Slice: grant.Slice{Consumer: "rome"}}
	four := capacity.Amounts{"cpu": 4000, "memory": 1}
	for name, tc := range map[string]struct {
		slices decided
		pods   []capacity.Pod
		want   []Excess
	}{
		"no pods":      {decided{slice("rome", "s", "gold", four)}, nil, nil},
		"all of it":    {decided{slice("rome", "s", "gold", four)}, []capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 4000})}, nil},
		"without pods": {nil, []capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 4000})}, nil},
		"more": {
			decided{slice("rome", "s", "gold", four)}, []capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 6000, "memory": 1})},
			[]Excess{{"rome", "", "gold", "s", "s@rome", capacity.Amounts{"cpu": 2000}, true}},
		},
		"what is not granted": {
			decided{slice("rome", "s", "gold", four)}, []capacity.Pod{pod("rome", "s", capacity.Amounts{"gpu": 1})},
			[]Excess{{"rome", "", "gold", "s", "s@rome", capacity.Amounts{"gpu": 1}, false}},
		},
		"more pods than granted": {
			decided{slice("rome", "s", "gold", capacity.Amounts{"cpu": 4000, "pods": 0})}, []capacity.Pod{pod("rome", "s", nil)},
			[]Excess{{"rome", "", "gold", "s", "s@rome", capacity.Amounts{"pods": 1}, true}},
		},
		"pods, without a grant of pods": {
			decided{slice("rome", "s", "gold", four)}, slices.Repeat([]capacity.Pod{pod("rome", "s", nil)}, podsWithoutGrant), nil,
		},
		"too many pods, without a grant of pods": {
			decided{slice("rome", "s", "gold", four)}, slices.Repeat([]capacity.Pod{pod("rome", "s", nil)}, podsWithoutGrant+2),
			[]Excess{{"rome", "", "gold", "s", "s@rome", capacity.Amounts{"pods": 2}, true}},
		},
		"within an earlier class": {
			decided{slice("rome", "s", "gold", four), slice("rome", "s", "silver", four)},
			[]capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 8000})}, nil,
		},
		"accepted by another controller": {
			decided{others, part(slice("rome", "s", "gold", capacity.Amounts{"cpu": 1000}), true)},
			[]capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 8000})}, nil,
		},
		"accepted by another controller, and gone": {
			decided{part(slice("rome", "s", "gold", four), true)}, []capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 8000})}, nil,
		},
		"gone": {
			decided{part(slice("rome", "s", "gold", four), false)}, []capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 8000})},
			[]Excess{{"rome", "", "gold", "s", "s@rome", capacity.Amounts{"cpu": 4000}, true}},
		},
		"gone, and one of another controller too": {
			decided{part(slice("rome", "s", "gold", four), false), part(slice("rome", "s", "silver", four), true)},
			[]capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 9000})}, nil,
		},
		"after one of another controller": {
			decided{slice("rome", "s", "silver", four), part(slice("rome", "s", "gold", four), true)},
			[]capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 9000})},
			[]Excess{{"rome", "", "silver", "s", "s@rome", capacity.Amounts{"cpu": 1000}, true}},
		},
		"of another slice and consumer": {
			decided{slice("rome", "s", "gold", four), slice("oslo", "s", "gold", four)},
			[]capacity.Pod{pod("rome", "s", capacity.Amounts{"cpu": 5000}), pod("oslo", "s", capacity.Amounts{"cpu": 5001}), pod("oslo", "t", capacity.Amounts{"cpu": 9000})},
			[]Excess{{"oslo", "", "gold", "s", "s@oslo", capacity.Amounts{"cpu": 1001}, true}, {"rome", "", "gold", "s", "s@rome", capacity.Amounts{"cpu": 1000}, true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := capacity.NewLedger()
			ledger.SetNode(capacity.Node{Name: "n", Allocatable: capacity.Amounts{"gpu": 8}})
			for i, p := range tc.pods {
				p.Key += fmt.Sprint(i)
				ledger.SetPod(p)
			}
			s := Snapshot{Input: offer.Input{View: ledger.View(nil)}}
			if tc.slices != nil {
				s.Slices = tc.slices
			}
			if diff := cmp.Diff(tc.want, s.Excesses()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
