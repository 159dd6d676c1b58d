package world

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// evaluatedProvider returns a provider that has evaluated once, with these answers of its source.
func evaluatedProvider(t *testing.T, answers capacity.Answers) *provider {
	t.Helper()
	p := newProvider()
	p.answers = answers
	p.consumers = []offer.Consumer{{ID: "oslo"}, {ID: "rome"}}
	engine.New(p.Config).Evaluate(time.Now())
	return p
}

func TestASnapshotHasWhatExternalSourcesHaveAnswered(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	p := evaluatedProvider(t, capacity.Answers{
		Asked: true, Problem: "for oslo, it answers no resources",
		Distinct: []capacity.Answer{{Amounts: capacity.Amounts{"cpu": 1500}}, {Amounts: capacity.Amounts{"cpu": 4000, "memory": 1 << 30}, Stale: true}},
		Of:       map[string]capacity.Answered{"": {Index: 0, At: at}, "oslo": {Index: 1, Kept: true}, "rome": {Index: 1, At: at}},
	})
	var file bytes.Buffer
	test.Must(t, Encode(&file, p.Table.Current(), p.Ledger.Copy(), "test", nil))
	w, _, err := Decode(&file)
	test.Must(t, err)
	if diff := cmp.Diff(p.Table.Current().Input.External, w.External, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-snapshot +file:\n%s", diff)
	}
}

func TestARehearsalSaysWhichAnswersNobodyKnows(t *testing.T) {
	p := evaluatedProvider(t, capacity.Answers{
		Asked: true, Distinct: []capacity.Answer{{Amounts: capacity.Amounts{"cpu": 4000}}}, Of: map[string]capacity.Answered{"": {}},
	})
	external := func(name, address string) v1alpha1.ResourcePolicy {
		return *kubetest.Policy(name, func(s *v1alpha1.ResourcePolicySpec) {
			s.Class, s.Offer = name, v1alpha1.PolicyOffer{External: &v1alpha1.External{Address: address, Form: v1alpha1.ExternalFormFlat}}
		})
	}
	change := &rest.Change{Apply: []v1alpha1.ResourcePolicy{external("known", "plugin:1"), external("unknown", "plugin:2")}}
	w := rehearse.Of(p.Table.Current(), p.Ledger.Copy())
	parsed, _, err := ChangeOf(change, &w, nil)
	test.Must(t, err)
	got := SimulationOf(rehearse.Rehearse(&w, parsed, never), rest.Evaluated{}, nil, nil)
	want := []string{"what the external source of policy unknown answers, which is not asked here: only what the policy offered before counts"}
	if diff := cmp.Diff(want, got.Unknown); diff != "" {
		t.Error(diff)
	}
	var offered []string
	for _, c := range got.Offers {
		if c.Consumer == "rome" {
			offered = append(offered, c.Class+": "+c.Because)
		}
	}
	if diff := cmp.Diff([]string{"known: cpu 4: kept at 4, which was offered before the operator started, until plugin:1 answers"}, offered); diff != "" {
		t.Error(diff)
	}
	for _, c := range got.Policies {
		if c.Policy == "unknown" && c.Then != v1alpha1.ReasonSourceUnavailable {
			t.Errorf("%+v", c)
		}
	}
}

func TestARehearsalSaysThatDaemonSetsAreNotKnown(t *testing.T) {
	p := evaluatedProvider(t, capacity.Answers{})
	w := rehearse.Of(p.Table.Current(), p.Ledger.Copy())
	parsed, _, err := ChangeOf(&rest.Change{AddNodes: []rest.AddedNodes{{Count: 1, Allocatable: kubetest.Quantities("cpu", "8")}}}, &w, nil)
	test.Must(t, err)
	got := SimulationOf(rehearse.Rehearse(&w, parsed, never), rest.Evaluated{}, nil, nil)
	if !slices.Contains(got.Unknown, daemons) {
		t.Errorf("the answer only says that it does not know %q", got.Unknown)
	}
}

func TestAnAnswerInASnapshotThatIsForNobodyIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"policy":"p","clusterID":"","resources":{"cpu":"1"}}`, `{"policy":"p","clusterID":"rome","anyone":true,"resources":{"cpu":"1"}}`,
		`{"policy":"p","clusterID":"rome","resources":{}}`, `{"policy":"p","clusterID":"rome","resources":{"cpu":"1e-999999999"}}`,
	} {
		if _, _, err := Decode(bytes.NewBufferString(`{"version":1,"answers":[` + text + `]}`)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
