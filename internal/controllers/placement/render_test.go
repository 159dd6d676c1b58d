package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

var (
	gold   = &offer.Policy{Name: "gold", Slices: offer.Slices{EnforcePlacement: true, NodeSelector: map[string]string{"zone": "a", "pool": "gold"}}}
	silver = &offer.Policy{Name: "silver", Slices: offer.Slices{NodeSelector: map[string]string{"pool": "silver"}}}
)

func policies(all ...*offer.Policy) (list []table.Policy) {
	for _, p := range all {
		list = append(list, table.Policy{Name: p.Name, Parsed: p})
	}
	return list
}

// accepted is a slice whose answer a policy decides on, nil for none.
func accepted(user string, by *offer.Policy) table.DecidedSlice {
	return table.DecidedSlice{User: user, Slice: grant.Slice{Consumer: "rome"}, Answer: &grant.Answer{Verdict: grant.Accept, Policy: by}}
}

// grantedBy is what a slice holds that is not decided on, such as one that is gone.
func grantedBy(user, policy string) table.DecidedSlice {
	return table.DecidedSlice{
		User: user, Slice: grant.Slice{Consumer: "rome", Pinned: true, Granted: capacity.Amounts{"cpu": 1}, GrantedBy: policy},
	}
}

// standing is a slice that nothing is decided on, and in which an answer stands.
func standing(user string, accepted, ofOthers bool) table.DecidedSlice {
	return table.DecidedSlice{
		User: user, Slice: grant.Slice{Consumer: "rome"}, OfOthers: ofOthers,
		Stands: func() (bool, time.Time) { return accepted, time.Time{} },
	}
}

func of(consumer string, s table.DecidedSlice) table.DecidedSlice {
	s.Slice.Consumer = consumer
	return s
}

func TestWhatASliceHoldsDecidesWhatItsPodsNeed(t *testing.T) {
	denied := accepted("mine-1", gold)
	denied.Answer = &grant.Answer{Verdict: grant.Deny, Policy: gold}
	fit := *gold
	fit.Name, fit.Slices.FitNode = "fit", true
	seated := accepted("mine-1", &fit)
	seated.Answer.Seat = &grant.Seat{Node: "n1", Key: "host", Value: "h1"}
	waiting := table.DecidedSlice{User: "mine-1", Slice: grant.Slice{Consumer: "rome", GrantedBy: "gold"}}
	present := map[string]string{"mine-1": "pool=gold", "gone-1": "pool=gold"}
	mine := map[string]string{"mine-1": "pool=gold,zone=a"}
	as := map[string]string{"mine-1": "pool=gold"}
	for name, tc := range map[string]struct {
		slices   []table.DecidedSlice
		policies []table.Policy
		want     map[string]string
	}{
		"its policy enforces":                            {[]table.DecidedSlice{accepted("mine-1", gold)}, policies(gold), mine},
		"its policy does not":                            {[]table.DecidedSlice{accepted("mine-1", silver)}, policies(gold, silver), nil},
		"it is denied, and has nothing":                  {[]table.DecidedSlice{denied}, policies(gold), nil},
		"it waits for a gate":                            {[]table.DecidedSlice{waiting}, policies(gold), nil},
		"it has no owner":                                {[]table.DecidedSlice{accepted("", gold)}, policies(gold), nil},
		"its policy is gone":                             {[]table.DecidedSlice{accepted("mine-1", nil)}, nil, as},
		"its policy is invalid":                          {[]table.DecidedSlice{grantedBy("mine-1", "gold")}, []table.Policy{{Name: "gold"}}, as},
		"its policy does not decide, but enforces":       {[]table.DecidedSlice{grantedBy("mine-1", "gold")}, policies(gold), mine},
		"its policy does not decide, nor enforce":        {[]table.DecidedSlice{grantedBy("mine-1", "silver")}, policies(silver), nil},
		"it is gone, and its pods run":                   {[]table.DecidedSlice{grantedBy("gone-1", "")}, nil, map[string]string{"gone-1": "pool=gold"}},
		"only our answer is left":                        {[]table.DecidedSlice{standing("mine-1", true, false)}, nil, as},
		"only our answer is left, which denies":          {[]table.DecidedSlice{standing("mine-1", false, false)}, nil, nil},
		"another controller has accepted it":             {[]table.DecidedSlice{standing("mine-1", true, true)}, nil, nil},
		"an answer is forged, of which nothing is known": {[]table.DecidedSlice{standing("forged-1", true, false)}, nil, nil},
		"it has moved to a policy that does not":         {[]table.DecidedSlice{accepted("mine-1", silver), grantedBy("mine-1", "gold")}, policies(gold, silver), nil},
		"it has moved to a policy that enforces":         {[]table.DecidedSlice{accepted("mine-1", gold), grantedBy("mine-1", "silver")}, policies(gold, silver), mine},
		"it is denied, and pods of an older one run":     {[]table.DecidedSlice{denied, grantedBy("mine-1", "gold")}, policies(gold), mine},
		"it has a seat":                                  {[]table.DecidedSlice{seated}, policies(&fit), map[string]string{"mine-1": "host=h1,pool=gold,zone=a"}},
		"it has a seat and is not decided on":            {[]table.DecidedSlice{grantedBy("mine-1", "fit@a/n1")}, policies(&fit), as},
		"it has moved to a seat, as far as is known":     {[]table.DecidedSlice{grantedBy("mine-1", "gold@a,fit@b/n1")}, policies(gold, &fit), as},
		"it has moved from a seat, as far as is known":   {[]table.DecidedSlice{grantedBy("mine-1", "fit@b/n1,gold@a")}, policies(gold, &fit), mine},
		"the list that named its node is lost":           {[]table.DecidedSlice{grantedBy("lost-1", "fit@a/n1")}, policies(&fit), map[string]string{"lost-1": "?"}},
		"two of one user: one that enforces suffices":    {[]table.DecidedSlice{accepted("mine-1", silver), accepted("mine-1", gold)}, policies(gold, silver), mine},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(slices.Values(tc.slices), tc.policies, present)
			if diff := cmp.Diff(rendered{entries: tc.want}, got, cmp.AllowUnexported(rendered{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// many returns slices of one consumer with long names.
func many(consumer string, n int) (all []table.DecidedSlice) {
	for i := range n {
		all = append(all, of(consumer, accepted(fmt.Sprintf("%s-%04d-%s", consumer, i, strings.Repeat("n", 200)), gold)))
	}
	return all
}

// The list was lost while no operator led, or is new.
func TestWithoutAListItIsUnknownWhatPodsNeedThatNoPolicyDecidesOn(t *testing.T) {
	invalid := append(policies(gold), table.Policy{Name: "broken"})
	got := render(slices.Values([]table.DecidedSlice{
		accepted("withdrawn-1", nil), grantedBy("gone-1", ""), grantedBy("invalid-1", "broken"),
		standing("left-1", true, false), standing("others-1", true, true),
		accepted("gold-1", gold), grantedBy("held-1", "gold"), accepted("silver-1", silver),
	}), invalid, nil)
	want := map[string]string{
		"withdrawn-1": "?", "gone-1": "?", "invalid-1": "?", "left-1": "?", "gold-1": "pool=gold,zone=a", "held-1": "pool=gold,zone=a",
	}
	if diff := cmp.Diff(rendered{entries: want}, got, cmp.AllowUnexported(rendered{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again := render(slices.Values([]table.DecidedSlice{accepted("withdrawn-1", nil), accepted("gone-1", gold)}), policies(gold), got.entries)
	want = map[string]string{"withdrawn-1": "?", "gone-1": "pool=gold,zone=a"}
	if diff := cmp.Diff(rendered{entries: want}, again, cmp.AllowUnexported(rendered{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the next list (-want +got):\n%s", diff)
	}
}

func TestAConsumerWithTooManySlicesHarmsOnlyItself(t *testing.T) {
	all := many("rome", 1000)
	all = append(all, of("oslo", accepted("mine-2", gold)))
	last := all[999].User
	got := render(slices.Values(all), policies(gold), map[string]string{last: "pool=gold"})

	if got.entries["mine-2"] != "pool=gold,zone=a" {
		t.Error("the slice of another consumer has no entry")
	}
	if got.entries[last] != "pool=gold,zone=a" {
		t.Error("a slice that had an entry lost it to others of its consumer")
	}
	if _, marked := got.entries["_rome"]; !marked || got.left == 0 {
		t.Errorf("%d slices left out, marked: %t", got.left, marked)
	}
	if _, marked := got.entries["_oslo"]; marked {
		t.Error("the other consumer is marked")
	}
	if want := 1000 + 1 - got.left + 1; len(got.entries) != want {
		t.Errorf("%d entries, want %d", len(got.entries), want)
	}
	romes := 0
	for user, labels := range got.entries {
		if strings.HasPrefix(user, "rome-") {
			romes += len(user) + len(labels)
		}
	}
	if romes > maxPerConsumer || romes < maxPerConsumer-300 {
		t.Errorf("%d bytes for one consumer, want about %d", romes, maxPerConsumer)
	}
}

func TestTheListIsBounded(t *testing.T) {
	var all []table.DecidedSlice
	for i := range 60 {
		all = append(all, many(fmt.Sprintf("consumer-%d", i), 200)...)
	}
	got, size := render(slices.Values(all), policies(gold), nil), 0
	for user, labels := range got.entries {
		size += len(user) + len(labels)
	}
	if size > 1<<20 || size < maxList-300 {
		t.Errorf("%d bytes, want about %d", size, maxList)
	}
	if _, marked := got.entries["_consumer-59"]; !marked {
		t.Error("a consumer without room is not marked")
	}
}

// The name of a slice can have 253 characters, and a hash follows it.
func TestAUserWhoseNameIsTooLongIsNotListed(t *testing.T) {
	got := render(slices.Values([]table.DecidedSlice{accepted(strings.Repeat("n", 254), gold)}), policies(gold), nil)
	if diff := cmp.Diff(rendered{entries: map[string]string{"_rome": ""}, left: 1}, got, cmp.AllowUnexported(rendered{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
