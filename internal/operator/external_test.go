package operator

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/internal/table"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// fromMonitor lets a policy offer what a monitor answers.
func fromMonitor(m *externaltest.Monitor, with ...func(*v1alpha1.External)) func(*v1alpha1.ResourcePolicySpec) {
	e := &v1alpha1.External{Address: m.Address}
	for _, f := range with {
		f(e)
	}
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer = v1alpha1.PolicyOffer{External: e} }
}

func zeroOnFailure(e *v1alpha1.External) { e.OnFailure = v1alpha1.OnFailureZero }

// dialLiqoV0 returns a client of the offers, as Liqo v0.10 is, over gRPC.
func dialLiqoV0(t *testing.T, offers *table.Table) wire.ResourceReaderClient {
	t.Helper()
	server, err := resourcereader.New(resourcereader.Options{Table: offers, Endpoints: []resourcereader.Endpoint{{Address: "127.0.0.1:0"}}})
	test.Must(t, err)
	test.Must(t, server.Listen(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		test.Check(t, <-ended)
	})
	return externaltest.Dial(t, server.Addresses()[0].String())
}

// liqoV0 returns what Liqo v0.10 reads, over gRPC.
func liqoV0(t *testing.T, offers *table.Table) func(id string) map[string]map[string]string {
	t.Helper()
	client := dialLiqoV0(t, offers)
	return func(id string) map[string]map[string]string {
		answer, err := client.ReadResources(t.Context(), &wire.ClusterIdentity{ClusterID: id})
		test.Must(t, err)
		pools := map[string]map[string]string{}
		for _, l := range answer.GetResourceLists() {
			pools[l.GetPoolPrefix()] = map[string]string{}
			for name, q := range l.GetResources() {
				pools[l.GetPoolPrefix()][name] = q.GetString_()
			}
		}
		return pools
	}
}

func TestAnExternalSourceAnswersLiqoV0AndLiqoV1(t *testing.T) {
	installSliceCRDs(t)
	m := externaltest.Start(t, externaltest.Pools)
	m.Offer("cpu", "4", "memory", "8Gi", "pods", "20")
	kubetest.Create(t, kubetest.Policy("gold", fromMonitor(m), inClass("gold"), func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Max = kubetest.Quantities("memory", "6Gi")
		s.Overrides = []v1alpha1.Override{{
			Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"oslo"}},
			Offer:     v1alpha1.OverrideOffer{Fixed: kubetest.Quantities("cpu", "1")},
		}}
	}))
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "3", "memory", "7Gi", "pods", "10"))
	o := startOperator(t)
	read := liqoV0(t, o.table)

	awaitAnswer(t, slice, "Accepted Capped cpu=3,memory=6Gi,pods=10")
	want := map[string]map[string]string{"gold": {"cpu": "4", "memory": "6Gi", "pods": "20"}}
	test.Eventually(o.t, func() string { return cmp.Diff(want, read("rome")) })
	want["gold"]["cpu"] = "1"
	test.Eventually(o.t, func() string { return cmp.Diff(want, read("oslo")) })
	awaitReason(t, "gold", v1alpha1.ReasonOffering)

	// A resource that is no longer answered is offered as 0, and one that falls is taken back.
	m.Offer("cpu", "2", "memory", "8Gi")
	test.Eventually(o.t, func() string {
		return cmp.Diff(map[string]map[string]string{"gold": {"cpu": "2", "memory": "6Gi", "pods": "0"}}, read("rome"))
	})
	awaitAnswer(t, slice, "Accepted Capped cpu=2,memory=6Gi,pods=0")
	awaitReason(t, "gold", v1alpha1.ReasonIncomplete)
	if reads := m.Reads(); reads["rome"] == 0 || reads["oslo"] == 0 || reads[""] == 0 || len(reads) != 3 {
		t.Errorf("the monitor was read about %v", reads)
	}
}

func TestALostExternalSourceIsKeptOrZeroedAndComesBack(t *testing.T) {
	m := externaltest.Start(t, externaltest.Flat)
	flat := func(e *v1alpha1.External) { e.Form = v1alpha1.ExternalFormFlat }
	m.Offer("cpu", "4", "memory", "8Gi", "pods", "20")
	kubetest.Create(t, kubetest.Policy("keep", fromMonitor(m, flat), kubetest.ForIDs("rome")))
	kubetest.Create(t, kubetest.Policy("zero", fromMonitor(m, flat, zeroOnFailure), inClass("zero"), kubetest.ForIDs("rome")))
	other := kubetest.Create(t, kubetest.Policy("other", kubetest.Fixed("cpu", "1"), inClass("other")))
	o := startOperator(t)
	full := capacity.Amounts{"cpu": 4000, "memory": 8 * gib, "pods": 20}
	none := capacity.Amounts{"cpu": 0, "memory": 0, "pods": 0}
	await := func(keep, zero, other capacity.Amounts) {
		t.Helper()
		want := map[string]capacity.Amounts{"": keep, "zero": zero, "other": other}
		test.Eventually(o.t, func() string { return cmp.Diff(want, o.offered("rome")) })
	}
	await(full, full, capacity.Amounts{"cpu": 1000})

	m.Kill()
	await(full, none, capacity.Amounts{"cpu": 1000})
	for name, want := range map[string]string{
		"keep": "What it answered last is kept, by spec.offer.external.onFailure.",
		"zero": "What it answered last is offered as 0, within spec.reclaim, by spec.offer.external.onFailure.",
	} {
		c := awaitReason(t, name, v1alpha1.ReasonSourceUnavailable)
		if !contains(c.Message, "The external source "+m.Address+" is unavailable: ") || !contains(c.Message, want) || c.Status != "False" {
			t.Errorf("%s: %s %q", name, c.Status, c.Message)
		}
		expectEvent(t, name, v1alpha1.ReasonSourceUnavailable, want)
	}
	// The others are evaluated as ever.
	editPolicy(t, other, kubetest.Fixed("cpu", "2"))
	await(full, none, capacity.Amounts{"cpu": 2000})

	// A replica that starts meanwhile goes on from what is recorded.
	o.stop()
	o = startOperator(t)
	await(full, none, capacity.Amounts{"cpu": 2000})

	m.Restart()
	m.Offer("cpu", "3", "memory", "8Gi", "pods", "20")
	now := capacity.Amounts{"cpu": 3000, "memory": 8 * gib, "pods": 20}
	await(now, now, capacity.Amounts{"cpu": 2000})
	awaitReason(t, "zero", v1alpha1.ReasonOffering)
}

func TestNothingIsOfferedOfASourceThatHasNeverAnswered(t *testing.T) {
	m := externaltest.Start(t, externaltest.Pools)
	kubetest.Create(t, kubetest.Policy("silent", fromMonitor(m), inClass("gold"), kubetest.ForIDs("rome")))
	kubetest.Create(t, kubetest.Policy("other", kubetest.Fixed("cpu", "1")))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 1000})
	c := awaitReason(t, "silent", v1alpha1.ReasonSourceUnavailable)
	if want := "for rome, it answers no pools. Nothing is offered from it until it answers."; !contains(c.Message, want) {
		t.Errorf("got the message %q, want %q", c.Message, want)
	}
	if gold, offered := o.offered("rome")["gold"]; offered {
		t.Errorf("rome is offered %v", gold)
	}
	m.Offer("cpu", "4")
	test.Eventually(o.t, func() string { return cmp.Diff(capacity.Amounts{"cpu": 4000}, o.offered("rome")["gold"]) })
}

// A monitor that says nothing holds up the first offers of a replica for a moment, and nothing else.
func TestASilentSourceHoldsUpNobodyForLong(t *testing.T) {
	silent := externaltest.Start(t, externaltest.Pools)
	silent.Answer(func(ctx context.Context, _ string) (*wire.PoolResourceList, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	kubetest.Create(t, kubetest.Policy("silent", fromMonitor(silent, func(e *v1alpha1.External) { e.TimeoutSeconds = new(int32(30)) }), inClass("gold")))
	other := kubetest.Create(t, kubetest.Policy("other", kubetest.Fixed("cpu", "1")))
	start := time.Now()
	o := startOperator(t)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the first offers came after %v", took)
	}
	o.awaitOffers("rome", capacity.Amounts{"cpu": 1000})
	editPolicy(t, other, kubetest.Fixed("cpu", "2"))
	o.awaitOffers("rome", capacity.Amounts{"cpu": 2000})
	c := awaitReason(t, "silent", v1alpha1.ReasonSourceUnavailable)
	if want := "it has not answered yet. Nothing is offered from it until it answers."; !contains(c.Message, want) {
		t.Errorf("got the message %q, want %q", c.Message, want)
	}
}

func TestAnotherAddressKeepsTheLastAnswersUntilThereAreNewOnes(t *testing.T) {
	first, second := externaltest.Start(t, externaltest.Pools), externaltest.Start(t, externaltest.Pools)
	first.Offer("cpu", "4")
	p := kubetest.Create(t, kubetest.Policy("p", fromMonitor(first), kubetest.ForIDs("rome")))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 4000})
	editPolicy(t, p, fromMonitor(second)) // It answers no pools.
	c := awaitReason(t, "p", v1alpha1.ReasonSourceUnavailable)
	if !contains(c.Message, second.Address) || !contains(c.Message, "What it answered last is kept") {
		t.Errorf("got the message %q", c.Message)
	}
	o.awaitOffers("rome", capacity.Amounts{"cpu": 4000})
	second.Offer("cpu", "5")
	o.awaitOffers("rome", capacity.Amounts{"cpu": 5000})
	test.Eventually(o.t, func() string { return cmp.Diff(0, first.Subscribers()) })
}

func TestADryRunShowsWhatASourceWouldOffer(t *testing.T) {
	m := externaltest.Start(t, externaltest.Pools)
	m.Offer("cpu", "4", "memory", "1Gi", "pods", "5")
	kubetest.Create(t, kubetest.Policy("next", fromMonitor(m), kubetest.ForIDs("rome"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	kubetest.Create(t, kubetest.Policy("now", kubetest.Fixed("cpu", "1"), kubetest.ForIDs("rome")))
	o := startOperator(t)
	o.awaitOffers("rome", capacity.Amounts{"cpu": 1000})
	test.Eventually(o.t, func() string {
		s := statusOfPolicy(t, "next")
		offer := offerFor(s, "rome")
		return cmp.Diff([]string{"External", "4"}, []string{string(s.Source), offer.Offer.Cpu().String()})
	})
	o.awaitOffers("rome", capacity.Amounts{"cpu": 1000})
}

// Monitors that flood, change all the time, hang and answer nonsense harm the policies that name them.
func TestHostileSourcesHarmTheirPoliciesOnly(t *testing.T) {
	var n atomic.Int64
	flood := func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
		for {
			if err := stream.Send(&wire.ClusterIdentity{}); err != nil {
				return err
			}
		}
	}
	// insist notifies more often than a monitor is read. One flood is enough: four would take all processors.
	insist := func(stream grpc.ServerStreamingServer[wire.ClusterIdentity]) error {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if err := stream.Send(&wire.ClusterIdentity{}); err != nil {
				return err
			}
		}
		return nil
	}
	hostile := map[string]func(ctx context.Context, id string) (*wire.PoolResourceList, error){
		"changing": func(context.Context, string) (*wire.PoolResourceList, error) {
			return externaltest.Unnamed("cpu", strconv.FormatInt(n.Add(7)%1000+1, 10)), nil
		},
		"negative": func(context.Context, string) (*wire.PoolResourceList, error) {
			return externaltest.Unnamed("cpu", "-5"), nil
		},
		"hung": func(ctx context.Context, _ string) (*wire.PoolResourceList, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"huge": func(context.Context, string) (*wire.PoolResourceList, error) {
			return externaltest.Unnamed("example.com/"+strings.Repeat("a", 3<<20), "1"), nil
		},
	}
	for name, answer := range hostile {
		m := externaltest.Start(t, externaltest.Pools)
		m.Answer(answer)
		m.Subscribing(insist)
		if name == "changing" {
			m.Subscribing(flood)
		}
		kubetest.Create(t, kubetest.Policy(name, fromMonitor(m), inClass(name)))
	}
	good := externaltest.Start(t, externaltest.Pools)
	good.Offer("cpu", "1")
	kubetest.Create(t, kubetest.Policy("good", fromMonitor(good), inClass("good")))
	other := kubetest.Create(t, kubetest.Policy("other", kubetest.Fixed("cpu", "1")))
	o := startOperator(t)
	start := time.Now()
	for i := range 10 {
		cpu := strconv.Itoa(i + 2)
		editPolicy(t, other, kubetest.Fixed("cpu", cpu))
		good.Offer("cpu", cpu)
		want := capacity.Amounts{"cpu": int64(i+2) * 1000}
		test.Eventually(o.t, func() string {
			return cmp.Diff([]capacity.Amounts{want, want}, []capacity.Amounts{o.offered("rome")[""], o.offered("rome")["good"]})
		})
	}
	if took := time.Since(start); took > 10*kubetest.Slower(3*time.Second, 3) {
		t.Errorf("10 changes took %v", took)
	}
	for _, name := range []string{"negative", "hung", "huge"} {
		awaitReason(t, name, v1alpha1.ReasonSourceUnavailable)
		if of, offered := o.offered("rome")[name]; offered {
			t.Errorf("%s: rome is offered %v", name, of)
		}
	}
	awaitReason(t, "good", v1alpha1.ReasonIncomplete)
}

func TestAnObserverGoesByWhatIsRecordedAndAsksNoSource(t *testing.T) {
	m := externaltest.Start(t, externaltest.Pools)
	m.Offer("cpu", "4", "memory", "1Gi", "pods", "5")
	kubetest.Create(t, kubetest.Policy("p", fromMonitor(m), kubetest.ForIDs("rome")))
	o := startOperator(t)
	full := capacity.Amounts{"cpu": 4000, "memory": gib, "pods": 5}
	o.awaitOffers("rome", full)
	awaitReason(t, "p", v1alpha1.ReasonOffering)
	o.stop()
	test.Eventually(o.t, func() string { return cmp.Diff(0, m.Subscribers()) })
	before := m.Reads()
	snapshot, _ := observe(t)
	if diff := cmp.Diff(full, amountsOf(snapshot)["rome"][""]); diff != "" {
		t.Errorf("-recorded +observed:\n%s", diff)
	}
	if diff := cmp.Diff(before, m.Reads()); diff != "" {
		t.Errorf("the source was asked: %s", diff)
	}
}

func TestAnExternalSourceIsToldOnceThatAConsumerIsGone(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	m := externaltest.Start(t, externaltest.Pools)
	m.Answer(func(_ context.Context, id string) (*wire.PoolResourceList, error) {
		if id == "" { // So rome goes on being owed an explicit 0 once it is gone.
			return nil, status.Error(codes.NotFound, "no cluster")
		}
		return externaltest.Unnamed("cpu", "4"), nil
	})
	// Oslo has no object, but the policy names it: the monitor is asked about it as long as that lasts.
	patient := func(e *v1alpha1.External) { e.TimeoutSeconds = new(int32(30)) } // No call is repeated.
	kubetest.Create(t, kubetest.Policy("all", fromMonitor(m, patient), func(s *v1alpha1.ResourcePolicySpec) {
		s.Overrides = []v1alpha1.Override{{
			Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"oslo"}},
			Offer:     v1alpha1.OverrideOffer{Max: kubetest.Quantities("cpu", "1")},
		}}
	}))
	rome := kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", nil))
	o := startOperator(t, func(p *parts) { p.removeAfter = 50 * time.Millisecond })
	o.awaitOffers("rome", capacity.Amounts{"cpu": 4000})
	o.awaitOffers("oslo", capacity.Amounts{"cpu": 1000})
	kubetest.Remove(t, rome)
	test.Eventually(t, func() string { return cmp.Diff([]string{"rome"}, m.Removals()) })
	o.awaitOffers("rome", capacity.Amounts{"cpu": 0})

	// It comes back and leaves again.
	rome = kubetest.Create(t, kubetest.ForeignCluster(t, "rome", "rome", nil))
	o.awaitOffers("rome", capacity.Amounts{"cpu": 4000})
	kubetest.Remove(t, rome)
	test.Eventually(t, func() string { return cmp.Diff([]string{"rome", "rome"}, m.Removals()) })
}

// Each restart below is one of all replicas: nothing outlives it in memory.
func TestAnExternalSourceIsToldThatAConsumerIsGoneAfterARestart(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, "core.liqo.io_foreignclusters.yaml"))
	m := externaltest.Start(t, externaltest.Pools)
	m.Offer("cpu", "4")
	all := func() client.Object { return kubetest.Create(t, kubetest.Policy("all", fromMonitor(m))) }
	policy := all()
	peers := map[string]client.Object{}
	for _, id := range []string{"lima", "oslo", "rome"} {
		peers[id] = kubetest.Create(t, kubetest.ForeignCluster(t, id, id, nil))
	}
	recorded := func(want ...string) {
		t.Helper()
		test.Eventually(t, func() string {
			object, got := offeredRecord(nil), map[string][]string{}
			if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			if text := object.Data["asked.json"]; text != "" {
				test.Must(t, json.Unmarshal([]byte(text), &got))
			}
			return cmp.Diff(map[string][]string{m.Address: want}, got)
		})
	}
	o := startOperator(t)
	recorded("lima", "oslo", "rome")
	kubetest.Remove(t, peers["rome"]) // It is due in 5 minutes.
	recorded("rome", "lima", "oslo")
	o.stop()
	kubetest.Remove(t, peers["lima"])
	if got := m.Removals(); len(got) > 0 {
		t.Fatalf("removed before it was due: %v", got)
	}

	// The operator starts while the policy is replaced.
	kubetest.Remove(t, policy)
	soon := func(p *parts) { p.removeAfter, p.replaceGrace = 50*time.Millisecond, time.Minute }
	o = startOperator(t, soon)
	test.Eventually(t, func() string { return cmp.Diff(true, o.table.Revision() > 1) }) // As by a new leader.
	all()
	test.Eventually(t, func() string { return cmp.Diff([]string{"lima", "rome"}, m.Removals()) })
	recorded("oslo")
	o.stop()
	startOperator(t, soon)
	kubetest.Remove(t, peers["oslo"])
	test.Eventually(t, func() string { return cmp.Diff([]string{"lima", "rome", "oslo"}, m.Removals()) })
}
