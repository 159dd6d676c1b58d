package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// onlyRome has one tenant.
type onlyRome struct{}

func (onlyRome) Tenants() []table.Tenant {
	return []table.Tenant{{Consumer: "rome", Namespace: "tenant-rome", Name: "tenant", UID: "uid"}}
}
func (onlyRome) StorageClasses() []string { return nil }

// catalogOf returns the catalog of a class whose amounts do not depend on pods: only its shapes do.
func catalogOf(l *capacity.Ledger) published {
	policies := []offer.Policy{{Name: "gold", Class: "gold", Nodes: &offer.Nodes{Percent: 100, Count: offer.Allocatable}}}
	in := offer.Input{Policies: policies, Consumers: []offer.Consumer{{ID: "rome"}}, View: l.View(offer.Selections(policies))}
	snapshot := table.New().Publish(table.Snapshot{
		Result: offer.Evaluate(in), Input: in, Policies: []table.Policy{{Name: "gold", Parsed: &policies[0]}}, Peers: onlyRome{},
		Time: time.Now(),
	})
	return published{catalog.New(snapshot, l.Shapes, nil)}
}

// However often pods start and end, an Offer is written once an interval, and not at all if its
// shapes stay.
func TestPodsWriteTheShapesOfAnOfferOncePerInterval(t *testing.T) {
	bubble(t, rate.Inf, func(b *bench) {
		l := capacity.NewLedger()
		for i, cores := range []int64{16, 8} {
			l.SetNode(capacity.Node{Name: fmt.Sprint("n", i), State: capacity.Ready, Allocatable: capacity.Amounts{
				capacity.CPU: cores * 1000, capacity.Memory: cores << 32, capacity.Pods: 110,
			}})
		}
		// event starts a pod, or changes its size, and returns how often the Offer is written in
		// 100 ms after it.
		event := func(node string, milli int64) int {
			l.SetPod(capacity.Pod{Key: node, Node: node, Consumer: "rome", Requests: capacity.Amounts{capacity.CPU: milli}})
			b.compare(catalogOf(l), nil, time.Now())
			b.pass(100 * time.Millisecond)
			return len(b.written())
		}
		start, writes := time.Now(), map[time.Duration]int{}
		for i := range 300 {
			writes[time.Since(start).Truncate(interval)] += event("n0", int64(i%3)*4000+1)
		}
		if diff := cmp.Diff(map[time.Duration]int{0: 1, interval: 1, 2 * interval: 1}, writes); diff != "" {
			t.Errorf("writes by interval (-want +got):\n%s", diff)
		}
		event("n1", 1)
		b.pass(interval)
		b.written()
		for i := range 300 {
			if n := event("n1", int64(1+i%900)); n > 0 {
				t.Fatalf("the Offer is written after event %d, which changes no shape", i)
			}
		}
	})
}
