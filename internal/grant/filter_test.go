package grant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// filtered returns a policy with a filter of requests.
func filtered(f offer.SliceFilter, edits ...func(*offer.Policy)) offer.Policy {
	p := gold(edits...)
	p.Slices.Filters = []offer.SliceFilter{f}
	return p
}

// wantAnswer compares the reason and the explanation of an answer.
func wantAnswer(t *testing.T, a *Answer, want string) {
	t.Helper()
	if got := a.Reason() + ": " + a.Because("the request is not valid"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFilterRefusesARequest(t *testing.T) {
	w := newWorld(filtered(atMost(4, offer.Refused))).node("n", "a", cpu(8)).
		slice(asking("large", "rome", 1, 5)).slice(asking("small", "rome", 2, 4))
	answers := w.settle(t)
	w.want(t, "large -; small cpu=4")
	wantAnswer(t, &answers[0], "Filtered: denied: policy standard refuses this request")
	w.policies[0].Slices.FilterMessage = "ask for at most 4m cpu"
	answers = w.settle(t)
	wantAnswer(t, &answers[0], "Filtered: denied: ask for at most 4m cpu")
	w.slices[0].Request = cpu(3)
	w.settle(t)
	w.want(t, "large cpu=3; small cpu=4")
}

func TestReclaimDecidesWhatASliceKeepsThatAFilterRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reclaim offer.Reclaim
		ruling  offer.Ruling
		want    string
		because string
	}{
		// The pods of rome use 3, those of oslo nothing.
		"Unused": {offer.Unused, offer.Refused, "rome cpu=3; oslo cpu=0", "granted 3m of 5m cpu; nothing more is granted: ask for less"},
		"Evict":  {offer.Evict, offer.Refused, "rome cpu=0; oslo cpu=0", "granted 0 of 5m cpu; nothing more is granted: ask for less"},
		"Retain": {offer.Retain, offer.Refused, "rome cpu=5; oslo cpu=5", "nothing more is granted: ask for less"},
		"undecided": {offer.Evict, offer.Undecided, "rome cpu=5; oslo cpu=5",
			"nothing more is granted: policy standard has not decided about this request yet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(filtered(atMost(4, tc.ruling), func(p *offer.Policy) {
				p.Reclaim, p.Slices.FilterMessage = tc.reclaim, "ask for less"
			})).node("n", "a", cpu(20)).pod("p", "n", "rome", cpu(3)).
				slice(having("rome", "rome", 1, 5)).slice(having("oslo", "oslo", 2, 5))
			answers := w.settle(t)
			w.want(t, tc.want)
			wantAnswer(t, &answers[0], "Filtered: "+tc.because)
		})
	}
}

// A slice that a filter refuses keeps what its own pods use, and not what those of another slice of its
// consumer use, which that one has.
func TestASliceThatAFilterRefusesKeepsNothingForOthers(t *testing.T) {
	for used, want := range map[int64]string{0: "old cpu=1; young cpu=4", 4: "old cpu=4; young cpu=4"} {
		old := having("old", "rome", 1, 5)
		old.Used = cpu(used)
		w := newWorld(filtered(atMost(4, offer.Refused))).node("n", "a", cpu(20)).pod("p", "n", "rome", cpu(4)).
			slice(old).slice(having("young", "rome", 2, 4))
		w.step()
		w.want(t, want)
	}
}

// A consumer must not keep what its policy takes back by keeping a slow filter from deciding.
func TestAFilterThatHasNotDecidedShieldsNothing(t *testing.T) {
	w := newWorld(filtered(atMost(0, offer.Undecided), func(p *offer.Policy) {
		p.Reclaim, p.Max = offer.Evict, cpu(2)
	})).node("n", "a", cpu(20)).slice(having("s", "rome", 1, 5))
	w.settle(t)
	w.want(t, "s cpu=2")
	w.policies[0].Max = nil
	w.settle(t)
	w.want(t, "s cpu=2")
}

func TestAFilterSeesTheRequest(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 59, 999, time.UTC)
	var seen []offer.Request
	filter := sliceFilter(func(r *offer.Request) (offer.Ruling, string) {
		seen = append(seen, *r)
		return offer.Refused, "why"
	})
	p := filtered(filter, func(p *offer.Policy) { p.Slices.Defaults = capacity.Amounts{"cpu": 1, "memory": 2, "gpu": 3} })
	of := func(key string, created int64, granted capacity.Amounts, invalid bool) Slice {
		return Slice{
			Key: key, Consumer: "rome", Class: "gold", Created: now.Unix() + created, Request: cpu(7), Granted: granted,
			GrantedBy: "standard", GrantedIn: "gold", Invalid: invalid, Labels: map[string]string{"team": "a"},
		}
	}
	tooMany := of("labels", 0, nil, false)
	tooMany.Labels = map[string]string{}
	for i := range offer.MaxRequestLabels + 1 {
		tooMany.Labels[string(rune('a'+i))] = ""
	}
	pinned := of("pinned", 0, cpu(1), false)
	pinned.Pinned = true
	w := newWorld(p).node("n", "a", capacity.Amounts{"cpu": 8, "memory": 8})
	w.consumers = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "gold"}}}
	view := w.ledger.View(offer.Selections(w.policies))
	terms := offer.NewAllocationInput(offer.Input{Policies: w.policies, Consumers: w.consumers, View: view, Now: now})
	answers := Allocate(terms, []Slice{
		of("new", 0, nil, false), of("old", -3600, nil, false), of("invalid", 0, cpu(4), true), of("nothing", 0, nil, true), pinned, tooMany,
	})
	var want []offer.Request
	for _, r := range []offer.Request{
		{Key: "new", Resources: capacity.Amounts{"cpu": 7, "memory": 2}},
		{Key: "old", Resources: capacity.Amounts{"cpu": 7, "memory": 2}, Age: 59*time.Minute + time.Second},
		{Key: "invalid", Resources: cpu(4)},
	} {
		r.Consumer, r.Labels = w.consumers[0], map[string]string{"team": "a"}
		want = append(want, r)
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	wantAnswer(t, &answers[0], "Filtered: denied: policy standard refuses this request (why)")
	wantAnswer(t, &answers[3], "InvalidRequest: denied: the request is not valid")
	wantAnswer(t, &answers[5], "Filtered: denied: policy standard refuses this request (it has more than 64 labels)")
	if got := terms.Again(); got != time.Second-999 {
		t.Errorf("ages change in %v", got)
	}
	if got := w.terms().Again(); got != time.Minute { // At the zero time.
		t.Errorf("ages change in %v", got)
	}
	if got := newWorld(gold()).terms().Again(); got != 0 {
		t.Errorf("without filters ages change in %v", got)
	}
}
