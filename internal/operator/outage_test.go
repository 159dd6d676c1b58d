package operator

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// outage is the duration of the outage.
const outage = 10 * time.Second

func TestOffersSurviveAnOutageOfTheAPIServer(t *testing.T) {
	kubetest.Create(t, nodestest.Node("stays", nodestest.List("cpu", "4", "memory", "4Gi", "pods", "10")))
	goes := kubetest.Create(t, nodestest.Node("goes", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	gone := kubetest.Create(t, nodestest.Pod("gone", "stays", nodestest.List("cpu", "1")))
	replaced := kubetest.Create(t, nodestest.Pod("replaced", "stays", nodestest.List("cpu", "1")))
	kubetest.Create(t, nodestest.Pod("stays", "stays", nodestest.List("cpu", "500m")))
	p := kubetest.Create(t, kubetest.Policy("p"))
	doomed := kubetest.Create(t, kubetest.Policy("doomed",
		kubetest.Fixed("cpu", "64"), kubetest.ForIDs("oslo"), func(s *v1alpha1.ResourcePolicySpec) { s.Priority = 1 }))
	link, config := newLink(t)
	o := launchOperator(t, config, withElection(shortLease(t)))
	if _, err := o.table.Own().Lookup(t.Context(), "rome"); err != nil {
		t.Fatal(err)
	}
	o.awaitOfferOf("rome", "cpu", 4000+8000-2500)
	o.awaitOfferOf("oslo", "cpu", 64000)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	before := o.table.Current()

	// The operator never sees these events: after the restart, the API server has only the
	// resulting objects. The operator has to compare lists, and its handlers get deletions as
	// tombstones.
	link.cut()
	kubetest.Remove(t, goes)
	kubetest.Remove(t, gone)
	kubetest.Remove(t, replaced)
	kubetest.Remove(t, doomed)
	kubetest.Create(t, nodestest.Pod("replaced", "stays", nodestest.List("cpu", "2")))
	test.Must(t, kubetest.Cluster(t).StopAPIServer())
	// During the outage, readers get the last offers.
	test.Consistently(t, outage, func() error {
		entry, err := o.table.Own().Lookup(t.Context(), "rome")
		if err == nil && !entry.SameAmounts(before.Default) { // rome is not a known consumer.
			err = errors.New("the outage changed an offer")
		}
		return err
	})
	test.Must(t, kubetest.Cluster(t).StartAPIServer())

	// The watches recover on their own, and the leader, which has lost its Lease, competes again.
	link.restore()
	editPolicy(t, p, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("memory", "1Gi") })
	o.awaitOffers("rome", capacity.Amounts{"cpu": 1500, "memory": gib, "pods": 8})
	test.Eventually(o.t, func() string { return cmp.Diff(int64(1500), o.offered("oslo")[""]["cpu"]) })
	test.Eventually(t, func() string { return cmp.Diff(int64(2), statusOfPolicy(t, "p").ObservedGeneration) })
}
