package operator

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/trends"
)

func TestASampleIsTakenEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, ring := table.New(), &trends.Ring{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sample(from, ring)(ctx) }()
		ledger := capacity.NewLedger()
		ledger.SetNode(capacity.Node{Name: "n", State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 8000}})
		policies := []offer.Policy{{Name: "gold", Nodes: &offer.Nodes{Percent: 100}}}
		for _, used := range []int64{1000, 2000, 3000} {
			ledger.SetPod(capacity.Pod{Key: "p", Node: "n", Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: used}})
			in := offer.Input{
				Policies: policies, View: ledger.View(offer.Selections(policies)), Grants: map[string]map[string]capacity.Amounts{"": {"rome": {capacity.CPU: 4000}}},
			}
			from.Publish(table.Snapshot{
				Result: offer.Evaluate(in), Input: in, Policies: []table.Policy{{Name: "gold", Parsed: &policies[0]}}, Time: time.Now(),
			})
			time.Sleep(trends.Every) //nolint:forbidigo // the clock of the bubble
			synctest.Wait()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for of, want := range map[trends.Subject][3]float64{
			{Policy: "gold", Resource: capacity.CPU}:   {8000, 4000, 3000},
			{Consumer: "rome", Resource: capacity.CPU}: {-1, 4000, 3000},
		} {
			l, ok := ring.Lines(of, 1440)
			last := len(l.Used) - 1
			if !ok || last < 2 || last > 3 {
				t.Fatalf("%+v: %v %+v", of, ok, l)
			}
			got := [3]float64{-1, l.Committed[last], l.Used[last]}
			if l.Capacity != nil {
				got[0] = l.Capacity[last]
			}
			for i := range got {
				if math.Abs(got[i]-want[i]) > 20 { // They have 8 significant bits.
					t.Errorf("%+v: got %v, want %v", of, got, want)
				}
			}
		}
	})
}
