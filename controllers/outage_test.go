package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
)

// outage is how long the API server is away. It is not waited for something: it is the thing itself.
const outage = 10 * time.Second

func TestAnAPIServerThatGoesAwayAndComesBack(t *testing.T) {
	create(t, aNode("stays", list("cpu", "4", "memory", "4Gi", "pods", "10")))
	goes := create(t, aNode("goes", list("cpu", "8", "memory", "8Gi", "pods", "10")))
	gone := create(t, aPod("gone", "stays", list("cpu", "1")))
	replaced := create(t, aPod("replaced", "stays", list("cpu", "1")))
	create(t, aPod("stays", "stays", list("cpu", "500m")))
	p := create(t, aPolicy("p"))
	doomed := create(t, aPolicy("doomed", fixed("cpu", "64"), forIDs("oslo"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	link, config := newLink(t)
	o := launchOperator(t, config, electing(shortLease(t)))
	if _, err := o.table.Lookup(t.Context(), "rome"); err != nil {
		t.Fatal(err)
	}
	o.offersOf("rome", "cpu", 4000+8000-2500)
	o.offersOf("oslo", "cpu", 64000)
	ready(t, "p", v1alpha1.ReasonOffering)
	before := o.table.Current()

	// The operator sees nothing of this, and never will: after the restart, the API server knows only what is left. The operator has
	// to find out by comparing, and what is gone comes to its handlers as a tombstone.
	link.cut()
	remove(t, goes)
	remove(t, gone)
	remove(t, replaced)
	remove(t, doomed)
	create(t, aPod("replaced", "stays", list("cpu", "2")))
	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	<-time.After(outage)
	// Who reads is served all the same, and what is served has not changed.
	entry, err := o.table.Lookup(t.Context(), "rome")
	if err != nil {
		t.Fatal(err)
	}
	if !entry.SameAmounts(before.Anyone) { // Nothing makes rome known.
		t.Error("the outage changed an offer")
	}
	if err := cluster.StartAPIServer(); err != nil {
		t.Fatal(err)
	}

	// The watches come back in their own time, and the leader, which has lost its lease, competes again.
	link.restore()
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = quantitiesOf("memory", "1Gi") })
	o.offers("rome", capacity.Amounts{"cpu": 1500, "memory": gib, "pods": 8})
	o.eventually(func() string { return cmp.Diff(int64(1500), o.offered("oslo")[""]["cpu"]) })
	eventually(t, func() string { return cmp.Diff(int64(2), statusOfPolicy(t, "p").ObservedGeneration) })
}
