package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// inputs are the policies, consumers and slices of a test. The grants do not depend on the terms.
type inputs struct {
	policies  *table.PolicyList
	consumers []offer.Consumer
	granted   map[string]map[string]capacity.Amounts
}

func (in *inputs) List() *table.PolicyList { return in.policies }

func (in *inputs) Resources(names []string) []string { return names }

func (in *inputs) Granters() map[string]struct{} { return nil }

func (in *inputs) Decide(time.Time, func() *offer.AllocationInput) table.SliceDecisions { return in }

func (in *inputs) Granted() map[string]map[string]capacity.Amounts { return in.granted }

func (in *inputs) GrantedBy() map[string]map[string][]string { return nil }

func (in *inputs) Under(string) table.PolicyGrants { return table.PolicyGrants{} }

func (in *inputs) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return in }

func (in *inputs) All(func(table.DecidedSlice) bool) {}

type consumers struct{ *inputs }

func (c consumers) List() []offer.Consumer { return c.consumers }

type source chan struct{}

func (s source) Done() <-chan struct{} { return s }

func newInputs() *inputs {
	return &inputs{
		policies: table.NewPolicyList([]table.Policy{
			{Name: "bad", Problems: []string{"spec.class: write another name"}},
			{Name: "gold", Parsed: &offer.Policy{Name: "gold", Class: "gold", Fixed: capacity.Amounts{"cpu": 4000}}},
		}),
		consumers: []offer.Consumer{{ID: "rome"}},
		granted:   map[string]map[string]capacity.Amounts{"gold": {"rome": {"cpu": 1000}}},
	}
}

func configOf(in *inputs) Config {
	return Config{
		Ledger: capacity.NewLedger(), Policies: in, Consumers: consumers{in}, Slices: in, Previous: func() []offer.PreviousOffers { return nil },
		Debouncer: debounce.New(100 * time.Millisecond), Table: table.New(), Log: logr.Discard(),
	}
}

func TestASnapshotHoldsEverythingThatOneEvaluationCameTo(t *testing.T) {
	in := newInputs()
	config := configOf(in)
	var order []string
	var seen []*table.Snapshot
	for _, name := range []string{"first", "second"} {
		config.Published = append(config.Published, func(s *table.Snapshot) { order, seen = append(order, name), append(seen, s) })
	}
	e, start := New(config), time.Now()
	e.Evaluate(start)
	s := config.Table.Current()
	if s.Time.Before(start) || s.Time.After(time.Now()) {
		t.Errorf("evaluated at %v, started at %v", s.Time, start)
	}
	if diff := cmp.Diff([]string{"first", "second"}, order); diff != "" || seen[0] != s || seen[1] != s {
		t.Errorf("the callbacks were not all called with the published snapshot, in order: %s", diff)
	}
	if got, _ := s.Entries.Of("rome").Offers[0].Amount("cpu"); got != 4000 || s.Revision != 1 {
		t.Errorf("rome is offered %d at revision %d, want 4000 at 1", got, s.Revision)
	}
	if diff := cmp.Diff(in.granted, s.Input.Grants); diff != "" || s.Slices != table.SliceDecisions(in) {
		t.Errorf("the snapshot does not have the decisions and their grants: %s", diff)
	}
	if len(s.Policies) != 2 || s.Reports["gold"] == nil || s.Reports["bad"] != nil || len(s.Input.Consumers) != 1 {
		t.Errorf("policies %+v, reports %+v, consumers %+v", s.Policies, s.Reports, s.Input.Consumers)
	}

	in.policies = table.NewPolicyList(nil)
	e.Evaluate(time.Now())
	if next := config.Table.Current(); next.Revision != 2 || len(next.Policies) != 0 || len(s.Policies) != 2 {
		t.Errorf("revision %d with policies %+v; the previous snapshot has %+v", next.Revision, next.Policies, s.Policies)
	}
}

func TestNothingIsPublishedBeforeEverySourceIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configOf(newInputs())
		nodes, pods := make(source), make(source)
		config.Sources = []Source{nodes, pods}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- New(config).Start(ctx) }()
		close(nodes)
		synctest.Wait()
		if config.Table.Current() != nil {
			t.Error("a snapshot was published before every source was complete")
		}
		close(pods)
		synctest.Wait()
		if s := config.Table.Current(); s == nil || s.Revision != 1 {
			t.Errorf("got snapshot %+v once all sources are complete, want revision 1", s)
		}
		config.Debouncer.WakeNow()
		synctest.Wait()
		if got := config.Table.Revision(); got != 2 {
			t.Errorf("revision %d after a wake-up, want 2", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
