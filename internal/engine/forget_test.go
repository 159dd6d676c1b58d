package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// inZone selects consumers by a label.
type inZone string

func (z inZone) Matches(labels map[string]string) bool { return labels["zone"] == string(z) }
func (inZone) Keys() []string                          { return []string{"zone"} }
func (z inZone) String() string                        { return "zone=" + string(z) }

func TestTenThousandPeersThatComeAndGoLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInputs()
		policyOf := func(name, class string, scope offer.Scope) table.Policy {
			return table.Policy{Name: name, Parsed: &offer.Policy{
				Name: name, Class: class, Consumers: scope, Fixed: capacity.Amounts{"cpu": 1000, "memory": 1, "pods": 1},
			}}
		}
		standing := []table.Policy{policyOf("standard", "", offer.Scope{}), policyOf("zoned", "zoned", offer.Scope{Selector: inZone("a")})}
		in.policies, in.granted = table.NewPolicyList(append(standing, policyOf("trial", "trial", offer.Scope{}))), nil
		config := configOf(in)
		e := New(config)
		evaluate := func(after time.Duration) *table.Snapshot {
			time.Sleep(after) //nolint:forbidigo // the clock of the bubble
			e.Evaluate(time.Now())
			return config.Table.Current()
		}
		evaluate(0)
		in.policies = table.NewPolicyList(standing)
		evaluate(time.Second)
		standingConsumers := in.consumers
		evaluate(offer.InheritedFor)
		before := test.LiveHeap()
		for batch := range 100 {
			in.consumers = nil
			for i := range 100 {
				id := fmt.Sprintf("peer-%03d-%03d", batch, i)
				in.consumers = append(in.consumers, offer.Consumer{ID: id, Labels: map[string]string{"zone": []string{"a", "b"}[i%2]}})
			}
			in.consumers = append(in.consumers, standingConsumers...)
			if s := evaluate(time.Second); s.Entries.Len() != 101 {
				t.Fatalf("%d consumers are known, want 101", s.Entries.Len())
			}
			in.consumers = standingConsumers
			s := evaluate(time.Second)
			if s.Entries.Len() != 1 || len(s.Departed) > offer.MaxDeparted {
				t.Fatalf("%d consumers are known, and %d have departed", s.Entries.Len(), len(s.Departed))
			}
		}
		s := evaluate(offer.OwedFor)
		if s.Readable().Len() != 1 || len(s.Default.Offers) != 1 {
			t.Errorf("%d consumers are left, and a default offer in %d classes", s.Readable().Len(), len(s.Default.Offers))
		}
		if grown := test.LiveHeap() - before; grown > 1<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		runtime.KeepAlive(e)
	})
}

func TestAnEvaluationFollowsWhenAZeroIsNoLongerOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInputs()
		config := configOf(in)
		config.Grace = offer.ReplaceGrace
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- New(config).Start(ctx) }()
		defer func() {
			cancel()
			test.Check(t, <-ended)
		}()
		synctest.Wait()
		in.policies, in.granted = table.NewPolicyList(nil), nil
		config.Debouncer.WakeNow()
		synctest.Wait()
		for _, tc := range []struct {
			after time.Duration
			want  int
			kept  bool
		}{{time.Second, 1, true}, {offer.ReplaceGrace, 1, false}, {offer.OwedFor + time.Second, 0, false}} {
			time.Sleep(tc.after) //nolint:forbidigo // the clock of the bubble
			synctest.Wait()
			offers := config.Table.Current().Default.Offers
			if len(offers) != tc.want {
				t.Errorf("after %v, the default offer has %d classes, want %d", tc.after, len(offers), tc.want)
			}
			if kept := slices.ContainsFunc(offers, (*offer.Offer).InForce); kept != tc.kept {
				t.Errorf("after %v, the default offer is kept: %v, want %v", tc.after, kept, tc.kept)
			}
		}
	})
}
