package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// seriesOf returns the number of consumers and the classes, sorted, that metrics have.
func seriesOf(t *testing.T, metrics *prometheus.Registry) (consumers int, classes []string) {
	t.Helper()
	all, err := metrics.Gather()
	test.Must(t, err)
	seen := map[string]bool{}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				switch {
				case l.GetName() == "consumer" && !seen[l.GetValue()]:
					seen[l.GetValue()] = true
				case l.GetName() == "class" && !slices.Contains(classes, l.GetValue()):
					classes = append(classes, l.GetValue())
				}
			}
		}
	}
	slices.Sort(classes)
	return len(seen), classes
}

func TestPeersThatComeAndGoAfterAPolicyIsDeletedLeaveNothing(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	metrics := prometheus.NewPedanticRegistry()
	zoned := func(s *v1alpha1.ResourcePolicySpec) {
		selector := kubetest.Matching(map[string]string{"zone": "a"})
		s.Consumers = &v1alpha1.Consumers{Selector: &selector}
	}
	kubetest.Create(t, kubetest.Policy("standard", kubetest.Fixed("cpu", "2", "memory", "1Gi", "pods", "5")))
	kubetest.Create(t, kubetest.Policy("zoned", kubetest.Fixed("cpu", "1"), inClass("zoned"), zoned))
	trial := kubetest.Create(t, kubetest.Policy("trial", kubetest.Fixed("cpu", "1", "memory", "1Gi"), inClass("trial")))
	kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", nil))
	o := startOperator(t, func(p *parts) { p.metrics = metrics })
	test.Eventually(o.t, func() string {
		return cmp.Diff(capacity.Amounts{"cpu": 1000, "memory": gib}, o.offered("rome")["trial"])
	})
	kubetest.Remove(t, trial)
	zeros := capacity.Amounts{"cpu": 0, "memory": 0}
	test.Eventually(o.t, func() string { return cmp.Diff(zeros, o.offered("rome")["trial"]) })

	awaitKnown := func(want int) {
		t.Helper()
		test.Eventually(o.t, func() string { return cmp.Diff(want, len(consumerIDs(o.table.Current()))) })
	}
	const peers = 200
	var objects []client.Object
	for i := range peers {
		id := fmt.Sprintf("peer-%03d", i)
		object := kubetest.ForeignCluster(t, id, id, map[string]string{"zone": []string{"a", "b"}[i%2]})
		test.Must(t, kubetest.API(t).Create(t.Context(), object))
		objects = append(objects, object)
	}
	awaitKnown(peers + 1)
	for _, object := range objects {
		test.Must(t, kubetest.API(t).Delete(t.Context(), object))
	}
	awaitKnown(1)
	awaitConsumers(t, "standard", 1)
	awaitConsumers(t, "zoned", 0)
	consumers, classes := seriesOf(t, metrics)
	if diff := cmp.Diff([]string{"", "zoned"}, classes); diff != "" || consumers != 1 {
		t.Errorf("metrics have %d consumers, want 1; classes (-want +got):\n%s", consumers, diff)
	}
	if now := o.table.Current(); len(now.Departed) != peers/2 {
		t.Errorf("%d consumers are owed zeros, want the %d that were offered class zoned", len(now.Departed), peers/2)
	}
	if got := o.offered("rome")["trial"]; !cmp.Equal(got, zeros) {
		t.Errorf("rome reads %v in class trial, want zeros", got)
	}
	// A restart owes the same.
	reads := func() (all []map[string]capacity.Amounts) {
		for i := range peers {
			all = append(all, o.offered(fmt.Sprintf("peer-%03d", i)))
		}
		return append(all, o.offered("rome"), o.offered("anybody"))
	}
	before := reads()
	if diff := cmp.Diff(capacity.Amounts{"cpu": 0}, before[0]["zoned"]); diff != "" {
		t.Errorf("peer-000 reads in class zoned (-want +got):\n%s", diff)
	}
	awaitWithdrawn(t, "zoned", peers/2)
	o.stop()
	o = startOperator(t)
	if diff := cmp.Diff(before, reads()); diff != "" || len(o.table.Current().Departed) != peers/2 {
		t.Errorf("a restart remembers %d consumers, and changes the offers (-before +after):\n%s",
			len(o.table.Current().Departed), diff)
	}
}

// awaitWithdrawn waits until the record of what was withdrawn has a class, with the zeros of this many consumers.
func awaitWithdrawn(t *testing.T, class string, zeros int) {
	t.Helper()
	test.Eventually(t, func() string {
		object := offeredRecord(nil)
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		var recorded map[string]struct{ Zeros []string }
		if err := json.Unmarshal([]byte(object.Data["withdrawn.json"]), &recorded); err != nil {
			return err.Error()
		}
		if of, found := recorded[class]; !found || len(of.Zeros) < zeros {
			return fmt.Sprintf("%d consumers of class %s are on record, want %d", len(of.Zeros), class, zeros)
		}
		return ""
	})
}

func TestARestartOffersTheSameAfterAPolicyIsDeleted(t *testing.T) {
	kubetest.Create(t, nodestest.Node("n", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "10")))
	kubetest.Create(t, nodestest.Pod("of-oslo", "n", nodestest.List("cpu", "1", "memory", "1Gi"), nodestest.PodLabel(originLabel, "oslo")))
	kubetest.Create(t, nodestest.Pod("of-lima", "n", nodestest.List("cpu", "2", "memory", "1Gi"), nodestest.PodLabel(originLabel, "lima")))
	kubetest.Create(t, kubetest.Policy("silver", kubetest.Fixed("cpu", "2", "memory", "2Gi"), inClass("silver")))
	trial := kubetest.Create(t, kubetest.Policy("trial", kubetest.Fixed("cpu", "4", "memory", "1Gi"), inClass("trial"), kubetest.ForIDs("lima", "rome")))
	o := startOperator(t)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(4000), o.offered("lima")["trial"]["cpu"]) })
	kubetest.Remove(t, trial)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(2000), o.offered("lima")["trial"]["cpu"]) })
	awaitWithdrawn(t, "trial", 0)
	all := func() map[string]map[string]capacity.Amounts {
		offers := map[string]map[string]capacity.Amounts{}
		for _, id := range []string{"lima", "oslo", "rome", "anybody"} {
			offers[id] = o.offered(id)
		}
		return offers
	}
	awaitConsumers(t, "silver", 2)
	before := all()
	if len(before["oslo"]) != 1 || len(before["rome"]) != 2 {
		t.Errorf("before the restart: %v", before)
	}
	for range 2 {
		o.stop()
		o = startOperator(t)
		if diff := cmp.Diff(before, all()); diff != "" {
			t.Fatalf("a restart changes the offers (-before +after):\n%s", diff)
		}
	}
}
