package operator

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// reading is what a client read after a notification.
type reading struct{ ID, CPU string }

// watchLiqoV0 subscribes like Liqo v0.10, and reads what it is notified of: the unnamed ID stands for all
// of these. It returns what was read so far.
func watchLiqoV0(t *testing.T, client wire.ResourceReaderClient, class string, all ...string) func() []reading {
	t.Helper()
	stream, err := client.Subscribe(t.Context(), &wire.Empty{})
	test.Must(t, err)
	var mu sync.Mutex
	var readings []reading
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			notified, err := stream.Recv()
			if err != nil {
				return // The test has ended.
			}
			ids := all
			if id := notified.GetClusterID(); id != "" {
				ids = []string{id}
			}
			for _, id := range ids {
				answer, err := client.ReadResources(t.Context(), &wire.ClusterIdentity{ClusterID: id})
				if err != nil {
					return
				}
				r := reading{ID: id}
				for _, l := range answer.GetResourceLists() {
					if l.GetPoolPrefix() == class {
						r.CPU = l.GetResources()["cpu"].GetString_()
					}
				}
				mu.Lock()
				readings = append(readings, r)
				mu.Unlock()
			}
		}
	})
	t.Cleanup(reader.Wait)
	return func() []reading {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(readings)
	}
}

// As kubectl replace --force does it.
func TestLiqoV0ReadsNothingLowerWhileAPolicyIsReplaced(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", nil))
	gold := func() *v1alpha1.ResourcePolicy {
		return kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold"), func(s *v1alpha1.ResourcePolicySpec) {
			s.Reclaim = v1alpha1.ReclaimEvict
			s.Overrides = []v1alpha1.Override{{ // It alone makes oslo known.
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"oslo"}},
				Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "3")},
			}}
		}))
	}
	policy := gold()
	o := startOperator(t, func(p *parts) { p.replaceGrace = offer.ReplaceGrace })
	decided := func(want bool) {
		t.Helper()
		test.Eventually(t, func() string {
			offers := o.table.Current().Of("rome").Offers
			return cmp.Diff(want, len(offers) == 1 && !offers[0].Withdrawn())
		})
	}
	decided(true)
	readings := watchLiqoV0(t, dialLiqoV0(t, o.table), "gold", "rome", "oslo")
	first := []reading{{"rome", "4"}, {"oslo", "3"}}
	test.Eventually(t, func() string { return cmp.Diff(first, readings()) })

	for range 3 {
		kubetest.Remove(t, policy)
		decided(false)
		policy = gold()
		decided(true)
	}
	editPolicy(t, policy, kubetest.Fixed("cpu", "5"))
	test.Eventually(t, func() string {
		got := slices.DeleteFunc(readings(), func(r reading) bool { return r.ID != "rome" })
		return cmp.Diff([]reading{{"rome", "4"}, {"rome", "5"}}, got)
	})
	for _, r := range readings() {
		if r.ID == "oslo" && r.CPU != "3" {
			t.Errorf("oslo was offered %q", r.CPU)
		}
	}

	// A policy that stays away takes everything back after the grace.
	removed := time.Now()
	kubetest.Remove(t, policy)
	test.Eventually(t, func() string {
		last := map[string]string{}
		for _, r := range readings() {
			last[r.ID] = r.CPU
		}
		return cmp.Diff(map[string]string{"rome": "0", "oslo": "0"}, last)
	})
	// Times in offers are whole seconds.
	if took := time.Since(removed); took < offer.ReplaceGrace-time.Second {
		t.Errorf("everything was taken back after %v", took)
	}
}

func TestNothingFallsWhileAPolicyOfAnExternalSourceIsReplaced(t *testing.T) {
	installSliceCRDs(t)
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	otherTimeout := func(e *v1alpha1.External) { e.TimeoutSeconds = new(int32(2)) }
	for name, tc := range map[string]struct{ before, after []func(*v1alpha1.External) }{
		"the same monitor":           {},
		"with another timeout":       {after: []func(*v1alpha1.External){otherTimeout}},
		"the same, and zero if lost": {[]func(*v1alpha1.External){zeroOnFailure}, []func(*v1alpha1.External){zeroOnFailure}},
	} {
		t.Run(name, func(t *testing.T) {
			m := externaltest.Start(t, externaltest.Pools)
			m.Offer("cpu", "4", "memory", "8Gi", "pods", "20")
			gold := func(with []func(*v1alpha1.External)) *v1alpha1.ResourcePolicy {
				return kubetest.Create(t, kubetest.Policy("gold", fromMonitor(m, with...), inClass("gold")))
			}
			policy := gold(tc.before)
			rome, lima := newTenancy(t, "rome"), kubetest.Create(t, kubetest.ForeignCluster(t, "lima", "lima", nil))
			slice := rome.ask("s", nodestest.List("cpu", "3", "memory", "1Gi", "pods", "10"))
			o := startOperator(t, func(p *parts) { p.replaceGrace, p.removeAfter = time.Minute, 3*time.Second })
			awaitAnswer(t, slice, "Accepted Granted cpu=3,memory=1Gi,pods=10")
			readings := watchLiqoV0(t, dialLiqoV0(t, o.table), "gold", "rome")
			test.Eventually(t, func() string { return cmp.Diff([]reading{{"rome", "4"}}, readings()) })
			test.Eventually(t, func() string { return cmp.Diff(true, m.Reads()["lima"] > 0) })
			kubetest.Remove(t, lima)
			known := func(want bool) {
				t.Helper()
				test.Eventually(t, func() string { return cmp.Diff(want, o.table.Current().Known("lima")) })
			}
			known(false) // The monitor is told so after removeAfter.

			// From now on the monitor is silent.
			m.Answer(func(ctx context.Context, _ string) (*wire.PoolResourceList, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			for range 3 {
				kubetest.Remove(t, policy)
				test.Eventually(t, func() string { return cmp.Diff(1, len(o.table.Current().Input.Awaited)) })
				policy = gold(tc.after)
				test.Eventually(t, func() string { return cmp.Diff(0, len(o.table.Current().Input.Awaited)) })
			}
			awaitAnswer(t, slice, "Accepted Granted cpu=3,memory=1Gi,pods=10")
			m.Offer("cpu", "5", "memory", "8Gi", "pods", "20")
			test.Eventually(t, func() string { return cmp.Diff([]reading{{"rome", "4"}, {"rome", "5"}}, readings()) })
			test.Eventually(t, func() string { return cmp.Diff([]string{"lima"}, m.Removals()) })
			o.stop()
		})
	}
}
